/** Every method that comes with Touchstone: a run that is interrupted and resumed has the bytes of one that was left alone. */
import { beforeAll, describe, expect, it } from "vitest";
import { type Replay, replay } from "../../test/support/replay.js";
import { tablePolicy } from "../../test/support/tabular.js";
import { RunReader } from "../train/store/reader.js";
import { methodNames } from "./catalogue.js";

let model: string;
beforeAll(async () => {
  model = await tablePolicy();
});
const replayed = (method: string, more: Partial<Replay> = {}) => replay({ method, model, after: 2, ...more });
const asIf = { differing: [], reasons: ["interrupted", "done"] };

describe("resumed, a run has the bytes of one that was not interrupted", () => {
  it.each(methodNames)("of %s", async (method) => {
    expect(await replayed(method)).toMatchObject(asIf);
  });

  it("where groups without signal are drawn again", async () => {
    const { out, ...is } = await replayed("dapo", { after: 1, more: { problems: 3 } });
    expect(is).toMatchObject(asIf);
    const refills = [...RunReader.open(out).events()].map(({ data }) =>
      Number((data.metrics as { [name: string]: number } | undefined)?.["dapo.refills"] ?? 0),
    );
    expect(Math.max(...refills)).toBeGreaterThan(0);
  });

  it.each(["dapo", "tis", "rloo", "ppo"])("of %s, with a batch drawn ahead", async (method) => {
    expect(await replayed(method, { more: { overlap: 1 } })).toMatchObject(asIf);
  });
});
