/** Every method that comes with Touchstone: who judges its answers changes no byte, also where the run was interrupted and resumed. */
import { beforeAll, describe, expect, it } from "vitest";
import { replay } from "../../test/support/replay.js";
import { tablePolicy } from "../../test/support/tabular.js";
import { methodNames } from "./catalogue.js";

let model: string;
beforeAll(async () => {
  model = await tablePolicy();
});

describe("judged by two threads and resumed, a run has the bytes of one that was judged on none", () => {
  it.each(methodNames)("of %s", async (method) => {
    expect(await replay({ method, model, after: 2, workers: 2 })).toMatchObject({ differing: [], reasons: ["interrupted", "done"] });
  });

  it("with refills, a batch drawn ahead, and both", async () => {
    for (const more of [{ problems: 3 }, { overlap: 1 }, { problems: 3, overlap: 1 }])
      expect(await replay({ method: "dapo", model, after: 1, workers: 2, more })).toMatchObject({ differing: [], reasons: ["interrupted", "done"] });
  });
});
