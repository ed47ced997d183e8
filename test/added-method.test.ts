/** A method that somebody adds: one folder, and nothing else is touched. It trains, resumes, is listed, and has a demonstration. */
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, expect, it } from "vitest";
import { methodFolders, methodOf } from "../src/methods/catalogue.js";
import { findDemonstration } from "../src/reproduce/find.js";
import { builtMethods, listing } from "../src/reproduce/listing.js";
import { reproduce } from "../src/reproduce/reproduce.js";
import { RunReader } from "../src/train/store/reader.js";
import { resume, train } from "../src/train/train.js";
import { repository } from "./paths.js";
import { run } from "./run.js";
import { lax } from "./support/lax-task.js";
import { options, successor, tablePolicy } from "./support/tabular.js";
import { command } from "./support/touchstone.js";

const method = `/**
 * Counted: advantages fall with the number of steps (P61, our choice).
 *
 *     A_i <- A_i / n                     n: steps so far
 */
import { defineMethod, z } from "touchstone-rl";

export default defineMethod({
  name: "counted",
  paper: "P61 Counted, our choice",
  options: z.strictObject({ by: z.number().default(1).describe("What is added to n at each step.") }),
  initial: { n: 0 },
  make: ({ by }, state) => ({
    needs: [{ for: "training", oneOf: [{ capabilities: ["sample", "train"] }] }],
    slots: {
      shape: {
        level: "trajectory",
        about: "divided by the steps so far",
        run: (_, credit) => {
          state.set({ n: state.get().n + by });
          return credit.scaled("trajectory", credit.trajectory.map(() => 1 / state.get().n));
        },
      },
      observe: { run: () => ({ "counted.n": state.get().n }) },
    },
  }),
});
`;
const demonstration = (model: string): string => `import { defineDemonstration } from "touchstone-rl";
import counted from "./counted.js";

export default defineDemonstration({
  paper: counted.paper,
  method: "counted",
  testbed: "A low digit.",
  shared: { model: ${JSON.stringify(model)}, task: ${JSON.stringify(join(repository, "test", "support", "successor-task.ts"))}, engine: { name: "table" }, steps: 4, problems: 2, group: 4 },
  arms: { grpo: {}, counted: { method: { module: counted, options: { by: 2 } } } },
  metrics: { right: { kind: "avg", problems: 4 }, n: { kind: "training", metric: "counted.n", last: 1 } },
  claims: { counts: { kind: "above", metric: "n", arm: "counted", than: 3 } },
  quick: { options: { steps: 2 }, seeds: 1 },
  minutes: 1,
});
`;

let folder: string;
let file: string;
let model: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "touchstone-added-"));
  model = await tablePolicy();
  file = join(folder, "counted", "counted.ts");
  mkdirSync(join(folder, "counted"));
  writeFileSync(file, method);
  writeFileSync(join(folder, "counted", "demonstration.ts"), demonstration(model));
});

it("is found by its folder, and trains, stops and resumes with its state", async () => {
  const [found] = methodFolders(folder);
  expect(await methodOf(found as Parameters<typeof methodOf>[0])).toMatchObject({ name: "counted" });
  const counts = (out: string): unknown[] =>
    [...RunReader.open(out).events()].flatMap(({ kind, data }) =>
      kind === "step" ? [(data.metrics as { readonly [name: string]: unknown })["counted.n"]] : [],
    );
  const whole = options(model, { method: file, steps: 4, checkpoint: { every: 1 } });
  await train(whole);
  expect(counts(whole.out)).toEqual([1, 2, 3, 4]);
  const stop = new AbortController();
  const cut = options(model, { method: file, steps: 4, checkpoint: { every: 1 } });
  await train({ ...cut, signal: stop.signal, onProgress: ({ kind }) => kind === "step" && stop.abort() });
  expect(counts(cut.out).length).toBeLessThan(4);
  await resume(cut.out, { task: successor() });
  expect(counts(cut.out)).toEqual([1, 2, 3, 4]);
  const weights = (out: string) => readFileSync(join(out, "checkpoints", "00000004", "policy", "model.safetensors"));
  expect(weights(cut.out).equals(weights(whole.out))).toBe(true);
});

it("is listed with what it says of itself", async () => {
  const { papers, families } = listing(await builtMethods(folder), []);
  expect(papers).toHaveLength(60);
  expect(families.find(({ name }) => name === "counted")).toMatchObject({
    built: true,
    method: "counted",
    slots: ["shape", "observe"],
    needs: [],
    demonstration: null,
  });
});

it("has a demonstration that is run by its path", async () => {
  const found = await findDemonstration(join(folder, "counted", "demonstration.ts"));
  expect(found.id).toBe("P61");
  const result = await reproduce(found, { out: join(folder, "out"), atOnce: 0, seeds: 2 });
  expect(result?.arms.map(({ metrics }) => metrics.n?.mean)).toEqual([null, 8]);
  // 8 in both seeds, so that the interval is a point.
  expect(result).toMatchObject({ outcome: "shown", claims: [{ mean: 5, interval: { low: 5, high: 5 } }] });
});

it("stands in the table and on a page of its own", async () => {
  const touchstone = (...args: string[]) => run(process.execPath, [...command, "methods", ...args], { cwd: repository });
  const [list, page] = await Promise.all([touchstone("--methods", folder, "--json"), touchstone("counted", "--methods", folder)]);
  expect(list.code).toBe(0);
  const rows = JSON.parse(list.out) as {
    readonly paper: string | null;
    readonly name: string;
    readonly built: boolean;
    readonly demonstration: string | null;
  }[];
  expect(rows.map(({ paper }) => paper).slice(0, 60)).toEqual(Array.from({ length: 60 }, (_, i) => `P${String(i + 1).padStart(2, "0")}`));
  expect(rows.slice(60).map(({ name }) => name)).toEqual(["counted"]);
  for (const row of rows) expect(row).toMatchObject({ slots: expect.any(Array), needs: expect.any(Array), built: expect.any(Boolean) });
  for (const text of [
    "A_i <- A_i / n",
    "What is added to n at each step.",
    "trajectory level: divided by the steps so far",
    "claim: counts (n: counted - 3 > 0)",
    "none yet",
  ])
    expect(page.out).toContain(text);
});

it("is written outside of the repository as docs/add-a-method.md has it", async () => {
  const page = readFileSync(join(repository, "docs", "add-a-method.md"), "utf8");
  const [, text] = /```ts\n([^`]*(?:`wrong[^`]*`)[^`]*)```/s.exec(page.slice(page.indexOf("## Outside of the repository"))) ?? [];
  mkdirSync(join(folder, "fade"));
  const path = join(folder, "fade", "fade.ts");
  writeFileSync(path, text as string);
  const [found] = methodFolders(folder).filter(({ name }) => name === "fade");
  expect(await methodOf(found as Parameters<typeof methodOf>[0])).toMatchObject({ name: "fade", paper: "our choice" });
  const faded = options(model, { task: lax(), method: { name: path, options: { over: 1 } }, steps: 3 });
  await train(faded);
  // Of the first step nothing is changed; of the third a wrong answer weighs a quarter.
  for (const [step, weight] of [
    [1, 1],
    [3, 0.25],
  ] as const) {
    const advantages = (await RunReader.open(faded.out).groups(step)).flatMap(({ rollouts }) => rollouts.map(({ numbers }) => Number(numbers.advantage)));
    const [up, down] = [1, -1].map((sign) => advantages.reduce((sum, a) => sum + Math.max(0, sign * a), 0)) as [number, number];
    expect(up).toBeGreaterThan(0);
    expect(down).toBeCloseTo(weight * up, 6);
  }
});
