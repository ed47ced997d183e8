/** The recipes in recipes/: a configuration each, with its commands and what they should give at the head of the file, read and run as they stand there. */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { z } from "zod";
import { RunReader } from "../../src/train/store/reader.js";
import { repository } from "../../test/paths.js";
import { run } from "../../test/run.js";

export const recipesFolder = join(repository, "recipes");

const part = z.number().min(0).max(1);
const head = z.strictObject({
  what: z.string().min(1),
  /** Another recipe whose run must be there. */
  after: z.string().optional(),
  commands: z.array(z.string().startsWith("touchstone ")).min(1),
  /** Part of the held-out problems that are right before; absent where several runs are compared. */
  from: part.optional(),
  /** And at the end, the mean over the runs where there are several. */
  expect: part,
  tolerance: part,
  /** Wall clock of the commands. */
  seconds: z.number().gt(0),
});

export interface Recipe extends z.output<typeof head> {
  readonly name: string;
  /** The configuration as written. */
  readonly config: { readonly [option: string]: unknown };
}

/** All recipes, by name in the order of the alphabet. Throws where the head of a file is no YAML of these keys. */
export function readRecipes(folder: string = recipesFolder): Recipe[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith(".yaml"))
    .sort()
    .map((file) => {
      const text = readFileSync(join(folder, file), "utf8");
      const comment = /^(?:#.*\n)+/.exec(text)?.[0] ?? "";
      const own = head.safeParse(parse(comment.replace(/^# ?/gm, "")));
      if (!own.success) throw new Error(`${file}: ${z.prettifyError(own.error)}`);
      return { name: file.slice(0, -".yaml".length), config: parse(text) as Recipe["config"], ...own.data };
    });
}

/** Words of a command, where single quotes hold some together. */
export const wordsOf = (command: string): string[] => [...command.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare);

export interface Outcome {
  readonly before: number | null;
  readonly after: number;
  readonly seconds: number;
}

/** Runs a recipe in a folder that has nothing but recipes and starters, by its commands; first the one that it needs. */
export async function runRecipe(name: string, folder: string, more: readonly string[] = []): Promise<Outcome> {
  const recipe = readRecipes().find((each) => each.name === name);
  if (recipe === undefined) throw new Error(`there is no recipe ${name}`);
  if (!existsSync(join(folder, "recipes"))) {
    mkdirSync(folder, { recursive: true });
    cpSync(recipesFolder, join(folder, "recipes"), { recursive: true });
    symlinkSync(join(repository, "starters"), join(folder, "starters"));
  }
  if (recipe.after !== undefined && !existsSync(join(folder, "runs", "recipes", recipe.after))) await runRecipe(recipe.after, folder, more);
  const started = performance.now();
  for (const command of recipe.commands) {
    const [, ...words] = wordsOf(command);
    const last = command === recipe.commands.at(-1);
    const args = ["--import", import.meta.resolve("tsx"), join(repository, "src", "cli", "main.ts"), ...words, ...(last ? more : [])];
    const { code, err } = await run(process.execPath, args, { cwd: folder, deadlineMs: 3_600_000 });
    if (code !== 0) throw new Error(`${command} ended with ${code}: ${err}`);
  }
  const seconds = (performance.now() - started) / 1000;
  const scores = runsIn(join(folder, "runs", "recipes", name)).map(scoresOf);
  const mean = (values: readonly number[]): number => values.reduce((sum, x) => sum + x / values.length, 0);
  return { before: recipe.from === undefined ? null : (scores[0][0] as number), after: mean(scores.map((run) => run.at(-1) as number)), seconds };
}

/** The folder, where it is a run, or the runs below it. */
function runsIn(folder: string): string[] {
  if (existsSync(join(folder, "run.json"))) return [folder];
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith("run.json"))
    .map((path) => join(folder, path, ".."));
}

/** What each evaluation of a run found. */
function scoresOf(folder: string): number[] {
  const found = [...RunReader.open(folder).events()].flatMap(({ kind, data }) => (kind === "evaluation" ? [data.score as number] : []));
  if (found.length < 2) throw new Error(`${folder} has ${found.length} evaluations, and one before and one after are due`);
  return found;
}

/** recipes/README.md. */
export function recipesPage(recipes: readonly Recipe[] = readRecipes()): string {
  const percent = (x: number): string => `${(100 * x).toFixed(0)} %`;
  const rows = recipes.map(({ name, what, after, commands, from, expect, tolerance, seconds }) =>
    [
      "",
      `[${name}](${name}.yaml)`,
      `${what}${after === undefined ? "" : ` After [${after}](${after}.yaml).`}`,
      `${commands.map((command) => `\`${command}\``).join("<br>")}`,
      from === undefined ? "" : percent(from),
      `${percent(expect)} ± ${(100 * tolerance).toFixed(0)}`,
      `${seconds.toFixed(0)} s`,
      "",
    ]
      .join(" | ")
      .trim(),
  );
  return `${intro}\n\n| recipe | what | commands, in the folder above | before | after | took |\n| --- | --- | --- | --- | --- | --- |\n${rows.join("\n")}\n\n${closing}\n`;
}

const intro = `# Recipes

Runs to begin one's own with. Each is a configuration with its commands and numbers at the head of the file; flags go over it, as in \`touchstone train recipes/grpo.yaml --steps 150 --out runs/longer\`, and \`--dry-run\` shows what it would do.`;

const closing = `"Before" and "after" are the parts of about 500 held-out problems (of a sweep, the mean over its runs) that are right at temperature 1 at the run's first and last evaluation. The tolerance is for other processors, on which last digits differ and
runs then part: about four standard deviations of drawing 500 problems, which has to hold what seeds add. On the same processor, number of cores and versions the numbers are the same ones again.
The time is the wall clock on two cores of an Intel Xeon that other work filled; \`grpo\` has taken from 22 to 119 s there. \`npm run proofs recipes\` runs them all and holds them to their numbers ([the record](../docs/proofs/recipes.json)), and the slow tests run one at a time in rotation.

\`files/\` has the rewards and the data, which \`npx tsx recipes/files/make.ts\` makes again. This page is made by \`npm run docs\` from the files.`;
