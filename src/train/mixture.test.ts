/** Several sources in one run: their shares, and a resume that goes on with the same problems. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { snapshot } from "../../test/support/run-writer.js";
import { options, scratch, tablePolicy } from "../../test/support/tabular.js";
import { problemSource } from "./problem-source.js";
import { RunReader } from "./store/reader.js";
import { resume, type TrainOptions, train } from "./train.js";

const folder = scratch();
/** n problems of two digits, the answer the last digit's successor. */
function source(name: string, from: number, n: number): string {
  const file = join(folder, name);
  mkdirSync(dirname(file), { recursive: true });
  const line = (i: number): string => JSON.stringify({ prompt: String(from + i), answer: String((from + i + 1) % 10) });
  writeFileSync(file, Array.from({ length: n }, (_, i) => `${line(i)}\n`).join(""));
  return file;
}

let model: string;
let small: string;
let large: string;
beforeAll(async () => {
  model = await tablePolicy();
  small = source("small.jsonl", 10, 6);
  large = source("large.jsonl", 30, 40);
});

const settings = (more: Partial<TrainOptions> = {}): TrainOptions => {
  const { task: _, ...rest } = options(model, {
    data: {
      sources: [
        { file: small, weight: 1 },
        { file: large, weight: 3 },
      ],
    },
    verifier: "exact",
    max_tokens: 3,
    steps: 12,
    ...more,
  });
  return rest;
};
const sourcesOf = async (out: string, steps: number): Promise<string[][]> => {
  const reader = RunReader.open(out);
  const groups = await Promise.all(Array.from({ length: steps }, (_, i) => reader.groups(i + 1)));
  return groups.map((step) => step.map(({ group }) => String(group.problem.tags?.source)));
};

describe("a run on two sources", () => {
  it("takes each place from one of them by the weights, four different problems a step", async () => {
    const run = settings({ steps: 60 });
    await train(run);
    const steps = await sourcesOf(run.out, 60);
    expect(steps.map((names) => names.length)).toEqual(Array(60).fill(4));
    const share = steps.flat().filter((name) => name === "small.jsonl").length / 240;
    // Four standard deviations of 240 places.
    expect(Math.abs(share - 0.25)).toBeLessThan(4 * Math.sqrt((0.25 * 0.75) / 240));
  });

  it("has numbers of each, which add up to those of the batch, in evaluations too", async () => {
    const { data, ...rest } = settings({ steps: 4, eval: { every: 4, problems: 12 } });
    const run = { ...rest, data: { ...data, eval_share: 0.3 } } as TrainOptions;
    await train(run);
    const steps = [...RunReader.open(run.out).events()].flatMap(({ kind, data }) => (kind === "step" ? [data.metrics as { [name: string]: number }] : []));
    expect(steps).toHaveLength(4);
    for (const metrics of steps) {
      const of = (name: string): number[] => ["small.jsonl", "large.jsonl"].map((source) => metrics[`${name}.${source}`] ?? 0);
      const rows = of("rows");
      expect(rows.reduce((a, b) => a + b, 0)).toBeCloseTo(1, 12);
      expect(of("reward").reduce((sum, reward, i) => sum + reward * (rows[i] as number), 0)).toBeCloseTo(metrics.reward as number, 12);
    }
    expect(Object.keys(steps[3]!).filter((name) => name.startsWith("eval.score."))).toEqual(["eval.score.large.jsonl", "eval.score.small.jsonl"]);
  });

  it("that is interrupted goes on to the same bytes, wherever that was, whoever judges, and with a batch drawn ahead", async () => {
    for (const [overlap, cuts] of [
      [
        0,
        [
          { last: 1, verifier_workers: 0 },
          { last: 4, verifier_workers: 0 },
          { last: 7, verifier_workers: 2 },
        ],
      ],
      [1, [{ last: 4, verifier_workers: 0 }]],
    ] as const) {
      const whole = settings({ overlap });
      await train(whole);
      const expected = snapshot(whole.out);
      for (const { last, verifier_workers } of cuts) {
        const controller = new AbortController();
        const onProgress: TrainOptions["onProgress"] = (progress) => progress.kind === "step" && progress.step === last && controller.abort();
        const run = settings({ overlap, verifier_workers, signal: controller.signal, onProgress });
        expect((await train(run)).reason).toBe("interrupted");
        expect((await resume(run.out)).reason).toBe("done");
        const is = snapshot(run.out);
        expect(Object.keys(expected).filter((path) => is[path] !== expected[path])).toEqual([]);
      }
    }
  });

  it("is refused where one has too few problems for its share of a batch", async () => {
    await expect(
      train(
        settings({
          data: {
            sources: [
              { file: small, weight: 4 },
              { file: large, weight: 1 },
            ],
          },
          problems: 10,
        }),
      ),
    ).rejects.toThrow(
      "data.sources[0]: small.jsonl has 6 problems to train on, and its weight gives it 80 % of the 10 places of a batch, where none is twice; lower its weight",
    );
    expect(() => problemSource({ problems: [], mixture: [{ name: "gone", weight: 1 }], batch: 1 })).toThrow("gone has 0 problems to train on");
  });
});
