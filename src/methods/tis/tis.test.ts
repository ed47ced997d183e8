import { describe, expect, it } from "vitest";
import { batch, group, row, scores } from "../../../test/support/batch.js";
import { lossAt, made, resolved } from "../../../test/support/method.js";
import { options, tablePolicy, tokenizer } from "../../../test/support/tabular.js";
import { note } from "../../core/note.js";
import { plainContext } from "../../core/problem.js";
import type { Trajectory } from "../../core/trajectory.js";
import { accept, reject } from "../../core/verdict.js";
import { TableEngine } from "../../engine/table/engine.js";
import { defineTask } from "../../tasks/define.js";
import { RunReader } from "../../train/store/reader.js";
import { train } from "../../train/train.js";
import type { Step } from "../contract.js";
import { grpo } from "../grpo/grpo.js";
import { compose } from "../resolve.js";
import { tis, tisOptions, truncatedWeights } from "./tis.js";

const grpoTis = (options: object = {}) => compose(made(grpo, { std: "none" }), made(tis, options));

describe("TIS, by hand", () => {
  // Trainer e^-1 a token; sampler e^-1.5, e^-2 and e^-0.5: weights e^0.5 = 1.65, e^1 cut at 2, and e^-0.5.
  const b = batch(
    group("p", [
      row("p", 0, { old: [-1, -1], behaviour: [-1.5, -2], verdict: accept() }),
      row("p", 1, { old: [-1], behaviour: [-0.5], verdict: reject("no") }),
    ]),
  );

  it("coefficients are weighed by min(trainer / sampler, 2), and the ratio is between trainer and trainer", async () => {
    const { c, value, d } = await lossAt(grpoTis(), b, [[-1, -1], [-1]]);
    const w = [Math.exp(0.5), 2, Math.exp(-0.5)] as const;
    [w[0] / 2, w[1] / 2, -w[2] / 2].forEach((x, i) => expect(c.credit.token.flatMap((t) => [...t])[i]).toBeCloseTo(x, 12));
    expect(value).toBeCloseTo(-0.5 * ((w[0] / 2 + w[1] / 2) / 2 - w[2] / 2), 12);
    expect(d[0]?.[0]).toBeCloseTo(-w[0] / 8, 12);
    expect(c.waterfall.map(({ method }) => method)).toEqual(["grpo", "tis"]);
  });

  it("forced and observed tokens have weight 1, whatever their log-probs", () => {
    const forced = { ...row("p", 0, { old: [-1, -1], behaviour: [-1, -9] }), sampled: Uint8Array.of(1, 0) };
    expect([...truncatedWeights(forced, 2)]).toEqual([1, 1]);
  });

  it("leaves alone what was sampled under another context: its ratio is not one of sampler and trainer", () => {
    const off = { ...row("p", 0, { old: [-1, -2], behaviour: [-2, -3] }), sampledUnder: plainContext([1, 2, 3], "guided") };
    expect([...truncatedWeights(off, 2)]).toEqual([1, 1]);
    expect([...truncatedWeights({ ...off, sampledUnder: off.trainedUnder }, 2)]).toEqual([2, 2]);
  });

  it("tells mean weight and share that was cut", () => {
    const observe = resolved(grpoTis()).stages.observe[0]?.run({ batch: b } as never);
    expect(observe?.["tis.weight"]).toBeCloseTo((Math.exp(0.5) + 2 + Math.exp(-0.5)) / 3, 12);
    expect(observe?.["tis.truncated"]).toBeCloseTo(1 / 3, 12);
  });

  it("asks the trainer for log-probs that are missing, of answers to be trained alone, and keeps their notes", async () => {
    const { old: _, ...fresh } = row("p", 0, { old: [-1] });
    const seen = note<number>("seen");
    seen.set(fresh as Trajectory, 3);
    const aux = { ...row("p", 1, { old: [-1], purpose: "aux" }), old: undefined } as unknown as Trajectory;
    const asked: number[] = [];
    const step = {
      settings: { temperature: 1 },
      policy: { role: "policy" },
      async score(sequences: readonly object[]) {
        asked.push(sequences.length);
        return [scores([-0.25])];
      },
    };
    const groups = await resolved(grpoTis()).stages.enrich[0]?.run([group("p", [fresh as Trajectory, aux])], step as unknown as Step);
    const [first, second] = groups?.[0]?.trajectories ?? [];
    expect(asked).toEqual([1]);
    expect(first?.old).toEqual({ values: Float64Array.of(-0.25), conditions: { context: "plain", weights: "policy@0", temperature: 1 } });
    expect(seen.get(first as Trajectory)).toBe(3);
    expect(second?.old).toBeUndefined();
  });
});

describe("TIS in a run", () => {
  const task = defineTask({
    name: "ones",
    rows: () => Array.from({ length: 8 }, (_, i) => ({ prompt: `${i}`, answer: "1", split: "train" as const })),
    verify: ({ response }) => response.includes("1"),
    maxTokens: () => 3,
    tokenizer: () => tokenizer,
  })();
  const metrics = (folder: string) =>
    [...RunReader.open(folder).events()].flatMap(({ kind, data }) => (kind === "step" ? [data.metrics as { [name: string]: number }] : []));

  it("changes nothing but the books where sampler and trainer agree", async () => {
    const model = await tablePolicy();
    const [plain, corrected] = [
      options(model, { task, group: 16, method: "grpo", steps: 2 }),
      options(model, { task, group: 16, method: ["grpo", "tis"], steps: 2 }),
    ];
    await train(plain);
    await train(corrected);
    metrics(corrected.out).forEach((step, i) =>
      expect(step).toMatchObject({ "tis.weight": 1, "tis.truncated": 0, gap_mean: 0, loss: metrics(plain.out)[i]?.loss }),
    );
  });

  it("weighs by what the sampler was off by, and still measures the gap", async () => {
    class Off extends TableEngine {
      override async *sample(...call: Parameters<TableEngine["sample"]>): ReturnType<TableEngine["sample"]> {
        for await (const sample of super.sample(...call)) yield { ...sample, logp: sample.logp.map((x) => x - 0.01) };
      }
    }
    const run = options(await tablePolicy(), { engine: new Off(), task, group: 16, method: ["grpo", "tis"], steps: 1 });
    await train(run);
    const [step] = metrics(run.out);
    expect(step?.["tis.weight"]).toBeCloseTo(Math.exp(0.01), 9);
    expect(step?.gap_mean).toBeCloseTo(0.01, 9);
    expect(step?.ratio_max).toBeCloseTo(1, 9);
  });
});

it("has the documented defaults", () => expect(tisOptions.parse({})).toEqual({ cap: 2 }));
