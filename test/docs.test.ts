/** Pages that are made from the code, or list what it writes, agree with it. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { optionsTable } from "../src/core/option-table.js";
import { trainConfig } from "../src/train/config.js";
import { RunReader } from "../src/train/store/reader.js";
import { train } from "../src/train/train.js";
import { repository } from "./paths.js";
import { options, tablePolicy } from "./support/tabular.js";

const page = (name: string): string => readFileSync(join(repository, "docs", name), "utf8");

it("docs/configuration.md has every option with its default", () => {
  expect(page("configuration.md")).toContain(optionsTable(trainConfig));
});

it("docs/metrics.md explains every number of a step", async () => {
  const run = options(await tablePolicy(), { steps: 2, eval: { every: 1, problems: 2 }, method: [{ name: "grpo", options: { kl_coef: 0.1 } }, "dapo", "tis"] });
  await train(run);
  const text = page("metrics.md");
  for (const { kind, data, clock } of RunReader.open(run.out).events()) {
    if (kind !== "step") continue;
    const names = [...Object.keys(data.metrics as object), ...Object.keys(clock ?? {}).filter((name) => !name.endsWith("ms"))];
    expect(names.filter((name) => !text.includes(`\`${name}\``))).toEqual([]);
  }
});
