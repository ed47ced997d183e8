/** All cases of test/fixtures/clip-cases.json, through the same slots that a run goes through. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { batch, group, row, scores } from "../../test/support/batch.js";
import type { Json } from "../core/json.js";
import type { Trajectory } from "../core/trajectory.js";
import type { Scores } from "../engine/contract.js";
import { readStatistics } from "../losses/contract.js";
import { anyMethod } from "./catalogue.js";
import { Cells } from "./cell.js";
import { cispo } from "./cispo/cispo.js";
import { coefficientsOf, lossOf } from "./coefficients.js";
import type { Lab, Method, MethodModule, Slots } from "./contract.js";
import { Credit } from "./credit.js";
import { dapo, overlong } from "./dapo/dapo.js";
import { drGrpo } from "./dr-grpo/dr-grpo.js";
import { grpo } from "./grpo/grpo.js";
import { gspo } from "./gspo/gspo.js";
import { keepRows } from "./keep.js";
import { reinforcePp } from "./reinforce-pp/reinforce-pp.js";
import { compose, resolve } from "./resolve.js";
import { rloo } from "./rloo/rloo.js";
import { sapo } from "./sapo/sapo.js";

interface CaseRow {
  readonly reward: number | null;
  /** Of the whole answer, where the case has a part of its tokens. */
  readonly length?: number;
  readonly mask: number[];
  readonly old: number[];
  readonly new: number[];
  readonly ref?: number[];
  readonly token_advantages?: number[];
}
interface Case {
  readonly id: string;
  readonly method: string;
  readonly what: string;
  readonly options: { readonly [name: string]: number | boolean | string | null };
  readonly groups: { readonly trajectories: CaseRow[] }[];
  readonly expected: {
    readonly advantages?: number[] | number[][];
    readonly shaped_rewards?: number[];
    readonly kept?: boolean[];
    readonly loss: number;
    readonly clipped?: boolean[] | boolean[][];
    readonly dloss_dlogp: number[][];
  };
}

const { cases } = JSON.parse(readFileSync(new URL("../../test/fixtures/clip-cases.json", import.meta.url), "utf8")) as { cases: Case[] };

const cells = new Cells();
const make = <O, S extends Json>(module: MethodModule<O, S>, options: object): Method =>
  anyMethod(module).make(
    Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined && value !== null)),
    (name, initial) => cells.cell(name, initial),
    module.name,
  ).method;

/** The method of a case with the case's options, its rewards, and dropped groups where the case has them. */
function methodOf(c: Case): Method {
  const { options: o, expected } = c;
  const flat = c.groups.flatMap((g) => g.trajectories);
  const clips = { clip_low: o.clip_low, clip_high: o.clip_high };
  const punished = (r: CaseRow): number => (o.cache ? overlong(r.length as number, Number(o.max_tokens), Number(o.cache)) : 0);
  const values = flat.map((r) => (r.reward === null ? undefined : r.reward + punished(r)));
  const reward: Slots["reward"] = { owns: () => ({ values }) };
  const of = (method: Method, slots: Slots = {}) => compose(method, { name: "case", slots: { reward, ...slots } });
  /** Methods that leave the advantage, or the bounds, to GRPO take them from its options. */
  const onGrpo = (options: object, method: Method, slots: Slots = {}) => compose(make(grpo, options), of(method, slots));
  switch (c.method) {
    case "grpo":
      return of(make(grpo, { ...clips, std: o.std, eps: o.eps, kl_coef: o.beta }));
    case "dr_grpo":
      return onGrpo(clips, make(drGrpo, { constant: o.max_tokens }));
    case "dapo":
      return of(make(dapo, { ...clips, dynamic_sampling: false, overlong_punishment: 0 }), {
        keep: { run: (b) => keepRows(b, (_, i) => expected.kept?.[i] ?? true) },
      });
    case "gspo":
      if (!o.token_variant) return of(make(gspo, clips));
      return of(make(gspo, { ...clips, token: true }), {
        credit: {
          owns: (b) =>
            Credit.zero(b).with(
              "token",
              flat.map((r) => Float64Array.from(r.token_advantages as number[])),
            ),
        },
      });
    case "cispo":
      return of(make(cispo, clips));
    case "rloo":
      return of(make(rloo, { ...clips, surrogate: o.surrogate, kl_coef: o.beta }));
    case "reinforce++":
      return of(make(reinforcePp, { ...clips, ...(o.baseline ? { baseline: "group", kl_coef: o.kl_loss } : { kl_coef: o.beta }) }));
    case "ppo":
      return of(make(grpo, { ...clips, aggregation: "token-mean" }), {
        credit: {
          owns: (b) =>
            Credit.zero(b).with(
              "token",
              (expected.advantages as number[][]).map((a) => Float64Array.from(a)),
            ),
        },
      });
    case "sapo":
      return of(make(sapo, { tau_pos: o.tau_pos, tau_neg: o.tau_neg }));
    default:
      throw new Error(`no method for ${c.method}`);
  }
}

describe("the 43 published loss cases", () => {
  it("are all there", () => expect(cases.length).toBe(43));

  it.each(cases.map((c) => [c.id, c.what, c] as const))("%s: %s", async (_id, _what, c) => {
    const groups = c.groups.map((g, i) =>
      group(
        `p${i}`,
        g.trajectories.map((t, m): Trajectory => row(`p${i}`, m, { old: t.old, mask: t.mask })),
      ),
    );
    const flat = c.groups.flatMap((g) => g.trajectories);
    const settings = { maxTokens: Number(c.options.max_tokens ?? 100) };
    const lab = { settings, score: async (): Promise<Scores[]> => flat.map((t) => scores(t.ref ?? t.old)) } as unknown as Lab;
    const coefficients = await coefficientsOf(resolve(methodOf(c), make(grpo, {})), batch(...groups), lab);
    const result = lossOf(
      coefficients,
      flat.map((_, i) => i),
      flat.map((t) => scores(t.new)),
    );

    c.expected.advantages?.forEach((a, i) => {
      const got = coefficients.credit.token[i] as Float64Array;
      const mask = coefficients.mask.policy[i] as Uint8Array;
      if (typeof a === "number") expect(coefficients.credit.trajectory[i]).toBeCloseTo(a, 9);
      else a.forEach((x, t) => expect(mask[t] ? got[t] : x).toBeCloseTo(x, 9));
    });
    expect(Math.abs(result.value - c.expected.loss)).toBeLessThan(1e-9);
    c.expected.dloss_dlogp.forEach((expected, i) => {
      const got = result.derivatives[i]?.dLogp as Float64Array;
      expect(got.length).toBe(expected.length);
      expected.forEach((d, t) => expect(Math.abs((got[t] as number) - d)).toBeLessThan(1e-9));
    });
    if (c.expected.clipped && c.method !== "cispo") {
      const inMask = coefficients.mask.policy;
      const trainedTokens = inMask.flatMap((m) => [...m]).reduce((a, b) => a + b, 0);
      const clipped = c.expected.clipped.reduce<number>((n, flag, i) => {
        const tokens = typeof flag === "boolean" ? [...(inMask[i] as Uint8Array)].map((m) => m === 1 && flag) : flag;
        return n + tokens.filter(Boolean).length;
      }, 0);
      const { clip_low = 0, clip_high = 0 } = readStatistics(result.statistics);
      expect((clip_low + clip_high) * trainedTokens).toBeCloseTo(clipped, 9);
    }
  });
});
