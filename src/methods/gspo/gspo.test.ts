import { describe, expect, it } from "vitest";
import { batch, group, row } from "../../../test/support/batch.js";
import { lossAt, made } from "../../../test/support/method.js";
import { accept, reject } from "../../core/verdict.js";
import { Credit } from "../credit.js";
import { grpo } from "../grpo/grpo.js";
import { compose } from "../resolve.js";
import { gspo, gspoOptions } from "./gspo.js";

const two = batch(group("p", [row("p", 0, { old: [-1, -1], verdict: accept() }), row("p", 1, { old: [-1], verdict: reject("no") })]));
const plain = (options: object = {}) => compose(made(grpo, { std: "none" }), made(gspo, options));

describe("GSPO, by hand", () => {
  it("the ratio of an answer is the geometric mean of its tokens': (4 * 1)^(1/2) = 2, and each token has half of its slope", async () => {
    const { value, d } = await lossAt(plain({ clip_low: 5, clip_high: 5 }), two, [[-1 + Math.log(4), -1], [-1]]);
    // A = 1/2 and -1/2.
    expect(value).toBeCloseTo(-0.5 * (2 * 0.5 - 0.5), 12);
    [-0.25, -0.25, 0.25].forEach((x, i) => expect(d.flat()[i]).toBeCloseTo(x, 12));
  });

  it("with the paper's bounds a good answer at 1.0005 is cut whole, at 1.0003 not", async () => {
    const at = (ratio: number) => lossAt(plain(), two, [[-1 + Math.log(ratio), -1 + Math.log(ratio)], [-1]]);
    expect((await at(1.0005)).d[0]?.map(Math.abs)).toEqual([0, 0]);
    expect((await at(1.0003)).d[0]?.[0]).toBeCloseTo(-1.0003 / 8, 12);
  });

  it("GSPO-token has the same gradient where an answer has one advantage, and each token its own where they differ", async () => {
    const now = [[-1 + Math.log(1.2), -1], [-1]];
    const [whole, token] = await Promise.all([false, true].map((t) => lossAt(plain({ clip_low: 5, clip_high: 5, token: t }), two, now)));
    whole?.d.flat().forEach((x, i) => expect(token?.d.flat()[i]).toBeCloseTo(x, 12));
    const own = {
      name: "own",
      slots: { credit: { owns: (b: typeof two) => Credit.zero(b).with("token", [Float64Array.of(1, 0), Float64Array.of(0)]) } },
    };
    const of = async (t: boolean) => (await lossAt(compose(made(gspo, { clip_low: 5, clip_high: 5, token: t }), own), two, now)).d[0] as number[];
    const s = Math.sqrt(1.2);
    (await of(true)).forEach((x, i) => expect(x).toBeCloseTo([-s / 4, 0][i] as number, 12));
    (await of(false)).forEach((x) => expect(x).toBeCloseTo(-s / 8, 12));
  });
});

it("has the paper's bounds as defaults", () => expect(gspoOptions.parse({})).toEqual({ clip_low: 3e-4, clip_high: 4e-4, token: false }));
