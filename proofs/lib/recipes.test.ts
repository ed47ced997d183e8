import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { trainConfig } from "../../src/train/config.js";
import { readConfigFile } from "../../src/train/config-file.js";
import { loadProof, type Recorded, recordsFolder } from "../record.js";
import { readRecipes, recipesFolder, recipesPage, wordsOf } from "./recipes.js";

const recipes = readRecipes();

it("a command is read as a shell reads it", () => {
  expect(wordsOf(`touchstone sample a --task-options '{"modulus": 7}' --n 8`)).toEqual([
    "touchstone",
    "sample",
    "a",
    "--task-options",
    '{"modulus": 7}',
    "--n",
    "8",
  ]);
});

describe("each recipe", () => {
  it.each(recipes)("$name has only options that there are, and ends where it is looked for", async ({ name, commands }) => {
    const { model, out, ...config } = await readConfigFile(join(recipesFolder, `${name}.yaml`));
    expect(trainConfig.safeParse({ model, out, ...config }).error?.issues ?? []).toEqual([]);
    expect(out).toBe(join(recipesFolder, "..", "runs", "recipes", name));
    expect(commands.at(-1)).toContain(`recipes/${name}.yaml`);
  });

  it("says at its head what the record has", async () => {
    const { metrics, details } = JSON.parse(readFileSync(join(recordsFolder, "recipes.json"), "utf8")) as Recorded;
    expect(Object.keys(details).sort()).toEqual(recipes.map(({ name }) => name));
    for (const { name, from, expect: after, seconds } of recipes) {
      expect(after, name).toBeCloseTo(metrics[`${name}: after`] as number, 3);
      if (from !== undefined) expect(from, name).toBeCloseTo(metrics[`${name}: before`] as number, 3);
      expect({ seconds }, name).toEqual(details[name]);
    }
    expect((await loadProof("recipes")).limits.recipes).toEqual({ equals: recipes.length });
  });

  it("has its line in recipes/README.md", () => {
    expect(readFileSync(join(recipesFolder, "README.md"), "utf8")).toBe(recipesPage(recipes));
  });
});
