import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { repository } from "../../test/paths.js";
import { lax } from "../../test/support/lax-task.js";
import { tablePolicy } from "../../test/support/tabular.js";
import { defineMethod } from "../methods/define.js";
import { type Demonstration, defineDemonstration, type Numbers } from "../methods/demonstration.js";
import { areaOf, meanOver, openBench } from "./bench.js";
import { runPart } from "./part.js";

const scratch = (): string => mkdtempSync(join(tmpdir(), "touchstone-bench-"));
const halved = defineMethod({
  name: "halved",
  make: () => ({
    slots: {
      shape: {
        level: "trajectory",
        run: (_, credit) =>
          credit.scaled(
            "trajectory",
            credit.trajectory.map(() => 0.5),
          ),
      },
    },
  }),
});

let demonstration: Demonstration;
beforeAll(async () => {
  demonstration = defineDemonstration({
    paper: "our choice",
    method: "halved",
    testbed: "A low digit.",
    shared: {
      model: await tablePolicy({ order: 1, maxTokens: 8 }),
      task: lax(),
      engine: { name: "table" },
      steps: 6,
      problems: 4,
      group: 4,
      lr: 0.3,
      eval: { every: 3, problems: 4 },
    },
    arms: {
      plain: {},
      halved: { method: ["grpo", halved] },
      own: { run: async (bench) => bench.numbers(await bench.train({ options: { steps: 2 } })) },
    },
    metrics: {
      right: { kind: "avg", problems: 4, samples: 8 },
      "pass@4": { kind: "pass", k: 4, problems: 4, samples: 8 },
      greedy: { kind: "avg", problems: 4, greedy: true },
      zero: { kind: "avg", problems: 1, keep: ({ prompt }) => (prompt[0]?.content ?? "").endsWith("3") },
      reward: { kind: "training", metric: "reward", last: 2 },
      area: { kind: "area" },
      gradient: { kind: "training", metric: "grad_norm", to: 1 },
      steps: { kind: "own", run: ({ steps }) => steps },
      groups: { kind: "own", run: async (trained) => (await trained.groups(1)).length },
      none: { kind: "training", metric: "no_such_number" },
    },
    claims: { same: { kind: "nullDifference", metric: "right", arm: "halved", than: "plain", margin: 1 } },
    quick: { options: { steps: 3 }, heldout: { problems: 2, samples: 4 } },
    minutes: 1,
  });
});

const part = async (arm: string, { seed = 0, quick = false, out = scratch() } = {}): Promise<Numbers> => {
  const { numbers } = await runPart(demonstration, { file: "", arm, seed, quick, out, commit: "" });
  return numbers as Numbers;
};

describe("an arm that is a training run", () => {
  it("has every metric, and the same numbers each time", async () => {
    const numbers = await part("plain");
    expect(numbers).toMatchObject({ steps: 6, groups: 4, none: null });
    for (const name of ["right", "pass@4", "greedy", "zero", "reward", "area"])
      expect([0 <= (numbers[name] as number), (numbers[name] as number) <= 1]).toEqual([true, true]);
    expect(numbers["pass@4"]).toBeGreaterThanOrEqual(numbers.right as number);
    expect(await part("plain")).toEqual(numbers);
    expect(await part("plain", { seed: 1 })).not.toEqual(numbers);
  });

  it("takes methods as modules, composed with others", async () => {
    const [plain, half] = [await part("plain"), await part("halved")];
    // The first batch is the same: seed, problems and policy are. Half of the advantage is half of the gradient.
    expect(plain.gradient).toBeGreaterThan(0);
    expect(half.gradient).toBeCloseTo((plain.gradient as number) / 2, 8);
  });

  it("of a quick run has the quick options, whatever its own are", async () => {
    expect(await part("plain", { quick: true })).toMatchObject({ steps: 3 });
    expect(await part("own", { quick: true })).toMatchObject({ steps: 3 });
  });
});

it("an arm that is a function trains what it likes, and has the demonstration's numbers of it", async () => {
  expect(await part("own")).toMatchObject({ steps: 2, groups: 4 });
});

it("a run in the arm's folder that has ended is read, not made again", async () => {
  const out = scratch();
  const first = await part("plain", { out });
  const folder = join(out, "runs", "plain", "seed-0", "run");
  const before = readdirSync(folder).sort();
  expect(await part("plain", { out })).toEqual(first);
  expect(readdirSync(folder).sort()).toEqual(before);
});

it("models that begin with starters/ are the package's", () => {
  const { bench } = openBench({
    demonstration: { ...demonstration, shared: { model: "starters/chain-100k", roles: { teacher: { model: "starters/chain-1M", lr: 0 } } } },
    arm: "plain",
    seed: 0,
    quick: false,
    out: "",
    folder: "",
  });
  expect(bench.options.model).toBe(join(repository, "starters", "chain-100k"));
  expect(bench.options.roles?.teacher).toEqual({ model: join(repository, "starters", "chain-1M"), lr: 0 });
});

it("warm starts are new policies of a size, or go on with a model, once for a recipe", async () => {
  const out = scratch();
  const { bench, close } = openBench({ demonstration: { ...demonstration, shared: { task: "pair" } }, arm: "plain", seed: 0, quick: false, out, folder: out });
  const recipe = { task: "pair", steps: 1, lr: 1e-3, maxLength: 32 };
  const [small, further] = [await bench.warmStart({ ...recipe, size: "60k" }), await bench.warmStart({ ...recipe, from: "starters/pair-100k" })];
  const width = (folder: string): unknown => JSON.parse(readFileSync(join(folder, "config.json"), "utf8")).hidden_size;
  expect([small, further].map(width)).toEqual([48, 64]);
  const heldout = { problems: 40, samples: 8 };
  const answers = await Promise.all([small, further, join(repository, "starters/pair-100k")].map((model) => bench.measure(model, heldout)));
  const [fresh, after, before] = answers.map(({ avg }) => avg as number) as [number, number, number];
  expect(fresh).toBeLessThan(0.05);
  expect(Math.abs(after - before)).toBeLessThan(0.15);
  expect(await bench.warmStart({ ...recipe, size: "60k" })).toBe(small);
  await expect(bench.warmStart({ ...recipe, from: "starters/chain-100k" })).rejects.toThrow("give the model that was made for this task and its options");
  await close();
});

describe("numbers over steps", () => {
  const points = [1, 2, 4].map((step) => ({ step, value: step * 10 }));

  it("are means over the steps asked for, by hand", () => {
    expect(meanOver(points, {})).toBeCloseTo(70 / 3, 12);
    expect(meanOver(points, { from: 2 })).toBe(30);
    expect(meanOver(points, { to: 2 })).toBe(15);
    expect(meanOver(points, { last: 2 })).toBe(40);
    expect(meanOver(points, { from: 5 })).toBeUndefined();
  });

  it("are areas by trapezoids, a step", () => {
    // 15 over one step and 60 over two, of three.
    expect(areaOf(points)).toBeCloseTo(25, 12);
    expect(areaOf(points.slice(0, 1))).toBeUndefined();
  });
});
