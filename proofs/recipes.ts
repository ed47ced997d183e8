/** The recipes of recipes/, each by its commands: what they give is what their heads say. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Recipe, readRecipes, runRecipe } from "./lib/recipes.js";
import type { Limit, Metric, Proof } from "./record.js";

const recipes = readRecipes();

async function within<T>(act: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "touchstone-recipes-"));
  try {
    return await act(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const around = (value: number, tolerance: number): Limit => ({ atLeast: value - tolerance, atMost: value + tolerance });

const limitsOf = ({ name, from, expect, tolerance }: Recipe): { [metric: string]: Limit } => ({
  [`${name}: after`]: around(expect, tolerance),
  ...(from !== undefined && { [`${name}: before`]: around(from, tolerance) }),
});

/** What a recipe depends on beside the code. */
const keyOf = ({ name, config, commands }: Recipe): string => `${name}, ${JSON.stringify({ config, commands })}`;

export default {
  claim: "The commands of each recipe give the numbers at its head within its tolerance.",
  limits: { recipes: { equals: recipes.length }, ...Object.assign({}, ...recipes.map(limitsOf)) },

  run: (work) =>
    within(async (folder) => {
      const metrics: { [metric: string]: Metric } = { recipes: recipes.length };
      for (const recipe of recipes) {
        const { before, after, seconds } = await work.part(keyOf(recipe), async () => ({ ...(await runRecipe(recipe.name, folder)) }));
        if (before !== null) metrics[`${recipe.name}: before`] = before;
        metrics[`${recipe.name}: after`] = after;
        work.detail(recipe.name, { seconds: Math.round(seconds) });
      }
      return metrics;
    }),

  short: Object.fromEntries(
    recipes.map((recipe) => [
      recipe.name,
      {
        limits: limitsOf(recipe),
        run: async () => {
          const { before, after } = await within((folder) => runRecipe(recipe.name, folder));
          return { [`${recipe.name}: after`]: after, ...(before !== null && { [`${recipe.name}: before`]: before }) };
        },
      },
    ]),
  ),
} satisfies Proof;
