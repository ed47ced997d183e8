/** All cases of test/fixtures/clip-cases.json, through the same slots that a run goes through. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { batch, group, row, scores } from "../../test/support/batch.js";
import type { Trajectory } from "../core/trajectory.js";
import type { Scores } from "../engine/contract.js";
import { aggregator } from "../losses/aggregate.js";
import { clip } from "../losses/clip.js";
import { readStatistics } from "../losses/contract.js";
import { softGate } from "../losses/gate.js";
import { cispo, reinforce } from "../losses/weighted.js";
import { Cells } from "./cell.js";
import { coefficientsOf, lossOf } from "./coefficients.js";
import type { Lab, Method, Slots } from "./contract.js";
import { Credit } from "./credit.js";
import { grpo, grpoOptions } from "./grpo/grpo.js";
import { keepRows } from "./keep.js";
import { klSlots } from "./kl.js";
import { compose, resolve } from "./resolve.js";

interface CaseRow {
  readonly reward: number | null;
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

const makeGrpo = (options: object): Method => grpo.make(grpoOptions.parse(options), new Cells().cell("grpo", grpo.initial));

/** The method of a case: GRPO with its options, and in front of it what the case's method changes. */
function methodOf(c: Case): Method {
  const { options: o, expected } = c;
  const flat = c.groups.flatMap((g) => g.trajectories);
  const clips = { clip_low: Number(o.clip_low), clip_high: Number(o.clip_high) };
  const common = { ...("std" in o ? { std: o.std } : {}), ...("eps" in o ? { eps: o.eps } : {}) };
  const reward: Slots["reward"] = { owns: () => ({ values: (expected.shaped_rewards ?? flat.map((r) => r.reward)).map((r) => r ?? undefined) }) };
  const given: Slots["credit"] = {
    owns: (b) => {
      const all = expected.advantages as number[] | number[][];
      return typeof all[0] === "number"
        ? Credit.zero(b).with("trajectory", Float64Array.from(all as number[]))
        : Credit.zero(b).with(
            "token",
            (all as number[][]).map((a) => Float64Array.from(a)),
          );
    },
  };
  const on = (slots: Slots, options: object = {}) => compose(makeGrpo({ ...common, ...options }), { name: "case", slots: { reward, ...slots } });
  switch (c.method) {
    case "grpo":
      return on({}, { ...clips, kl_coef: o.beta ?? 0 });
    case "dr_grpo":
      return on({}, { ...clips, std: "none", aggregation: "seq-mean-token-sum", aggregation_constant: o.max_tokens });
    case "dapo":
      return on({ keep: { run: (b) => keepRows(b, (_, i) => (expected.kept as boolean[])[i] as boolean) } }, { ...clips, aggregation: "token-mean" });
    case "gspo":
      if (!o.token_variant) return on({ loss: { owns: clip({ ...clips, unit: "sequence" }) } });
      return on({
        loss: { owns: clip({ ...clips, unit: "sequence", gradient: "own" }) },
        credit: {
          owns: (b) =>
            Credit.zero(b).with(
              "token",
              flat.map((r) => Float64Array.from(r.token_advantages as number[])),
            ),
        },
      });
    case "cispo":
      return on(
        { loss: { owns: cispo({ clip_high: Number(o.clip_high), ...(o.clip_low === null ? {} : { clip_low: Number(o.clip_low) }) }) } },
        { aggregation: "token-mean" },
      );
    case "rloo":
      if (o.surrogate === "reinforce") return on({ credit: given, loss: { owns: reinforce() }, aggregate: { owns: aggregator("seq-mean-token-sum") } });
      return on({ credit: given, loss: { owns: clip({ ...clips, unit: "sequence", reduce: "sum" }) } });
    case "reinforce++":
      return on(
        { credit: given, ...klSlots({ coefficient: Number(o.kl_loss ?? 0), estimator: "k2", place: "loss" }).slots },
        { ...clips, aggregation: "token-mean" },
      );
    case "ppo":
      return on({ credit: given }, { ...clips, aggregation: "token-mean" });
    case "sapo":
      return on({ loss: { owns: softGate({ tau_pos: Number(o.tau_pos), tau_neg: Number(o.tau_neg) }) } });
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
    const lab = { score: async (): Promise<Scores[]> => flat.map((t) => scores(t.ref ?? t.old)) } as unknown as Lab;
    const coefficients = await coefficientsOf(resolve(methodOf(c), makeGrpo({})), batch(...groups), lab);
    const result = lossOf(
      coefficients,
      flat.map((_, i) => i),
      flat.map((t) => scores(t.new)),
    );

    if (c.expected.advantages && typeof c.expected.advantages[0] === "number") {
      c.expected.advantages.forEach((a, i) => expect(coefficients.credit.trajectory[i]).toBeCloseTo(a as number, 9));
    }
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
