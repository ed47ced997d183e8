/** The task and the configuration of examples/smollm2: what is held out, and that both are taken as they stand. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { loadTask } from "../src/tasks/catalogue.js";
import { parseTrainConfig } from "../src/train/config.js";
import { readConfigFile } from "../src/train/config-file.js";
import { repository } from "./paths.js";

const folder = join(repository, "examples", "smollm2");
const task = await loadTask(join(folder, "boxes.ts"));
const all = (split: "train" | "eval") => task.problems(split, task.size(split), 0);
/** `7x13` of `13x7/2`. */
const pairOf = (key: string): string =>
  (key.split("/")[0] as string)
    .split("x")
    .map(Number)
    .sort((a, b) => a - b)
    .join("x");

it("holds out 400 problems or more, none of whose two numbers is ever trained on", () => {
  const [trained, held] = [all("train"), all("eval")];
  expect(held.length).toBeGreaterThanOrEqual(400);
  expect(new Set([...trained, ...held].map(({ key }) => key)).size).toBe(trained.length + held.length);
  const pairs = new Set(trained.map(({ key }) => pairOf(key)));
  expect(held.filter(({ key }) => pairs.has(pairOf(key)))).toEqual([]);
  // The worked example is in each prompt, so its answer is nobody's problem.
  expect([...trained, ...held].filter(({ key }) => pairOf(key) === "3x12")).toEqual([]);
});

it("asks for the product that it judges by", async () => {
  for (const problem of all("eval").slice(0, 50)) {
    const [first, second] = (problem.key.split("/")[0] as string).split("x").map(Number) as [number, number];
    const question = (problem.prompt as readonly { readonly content: string }[]).at(-1)?.content;
    expect(question).toMatch(new RegExp(`^\\w+ buys ${first} \\w+ of ${second} (\\w+)\\. How many \\1\\?$`));
    expect(problem.reference).toMatchObject({ answer: first * second });
  }
});

it("has a configuration that is whole but for model and folder", async () => {
  const file = join(folder, "boxes.yaml");
  const config = parseTrainConfig({ ...(await readConfigFile(file)), model: "m", out: "o" } as Parameters<typeof parseTrainConfig>[0], file);
  expect(config).toMatchObject({ task: join(folder, "boxes.ts"), lora: { rank: 16 }, eval: { problems: 500 } });
  expect(readFileSync(file, "utf8")).toContain("touchstone train examples/smollm2/boxes.yaml --model");
});
