/** The options of data: files or folders of records, their columns, filters, and how several sources are mixed. */
import { basename, resolve } from "node:path";
import { z } from "zod";
import { ConfigError } from "../core/errors.js";

const name = z.string().min(1);
const scalar = z.union([z.string(), z.number(), z.boolean()]);
const condition = z.union([scalar, z.array(scalar).min(1), z.strictObject({ min: z.number().optional(), max: z.number().optional() })]);
/** What a column must be: a value, one of a list, or a number within limits. */
export type Condition = z.output<typeof condition>;

const aboutFile = "A JSONL or Parquet file, or a folder as the Hugging Face hub lays data sets out.";
const shape = {
  split: name.optional().describe("Of a folder, the split that is read; absent: train, and test for evaluation."),
  eval_split: name.optional().describe("Of a folder, the split that is held out for evaluation."),
  prompt_column: name.default("prompt").describe("Column of the prompt: a text, or a list of messages with role and content."),
  answer_column: name
    .default("answer")
    .describe("Column of the reference answer; dots lead into a column. Where it is missing, reward_model.ground_truth is taken if it is there."),
  key_column: name.optional().describe("Column of a stable, unique key; absent: a hash of the prompt."),
  solution_column: name.optional().describe("Column of a worked solution, which training alone may see."),
  info_columns: z.array(name).min(1).optional().describe("Further columns that a reward of one's own is given; the policy never sees them."),
  system: name.optional().describe("A system message before each prompt."),
  where: z
    .record(name, condition)
    .optional()
    .describe("Rows that are used, by column: a value, a list of values, or {min, max}; all must hold, and dots lead into a column."),
  prompt_chars: z
    .strictObject({
      min: z.int().min(0).optional().describe("Rows are used whose prompt has at least so many characters."),
      max: z.int().min(1).optional().describe("Rows are used whose prompt has at most so many characters."),
    })
    .optional(),
  eval_share: z.number().min(0).max(1).default(0).describe("Share of the problems held out for evaluation, chosen by the hash of their keys."),
  bad_rows: z.enum(["refuse", "skip"]).default("refuse").describe("Whether a line that cannot be used stops the run, or is left out and counted."),
};

/** Absent options of a source are those of the whole. */
const source = z.strictObject({
  file: name.describe(aboutFile),
  name: name.optional().describe("How it is called in records; absent: the name of its file."),
  weight: z.number().gt(0).optional().describe("Its share of the places of a batch, relative to the others."),
  ...z
    .strictObject({ ...shape, prompt_column: name, answer_column: name, eval_share: z.number().min(0).max(1), bad_rows: z.enum(["refuse", "skip"]) })
    .partial().shape,
});

export const dataOptions = z.strictObject({
  file: name.optional().describe(aboutFile),
  sources: z
    .array(source)
    .min(1)
    .optional()
    .describe(
      "Several files instead of one, each with options of its own over those here. With weights each place of a batch draws its source; without, all are one set.",
    ),
  ...shape,
});
export type DataOptions = z.output<typeof dataOptions>;

/** One file or folder with every option that holds for it. */
export type DataSource = Omit<DataOptions, "sources" | "file"> & { readonly file: string; readonly name: string; readonly weight?: number };

/** The sources of a configuration. `place`: where its options stand. Throws ConfigError for what does not go together. */
export function sourcesOf({ file: single, sources, ...shared }: DataOptions, place = "data"): DataSource[] {
  if ((single === undefined) === (sources === undefined)) {
    const both = single !== undefined;
    throw new ConfigError({
      place,
      cause: both ? "both file and sources are given" : "neither file nor sources is given",
      mend: both ? "give one of them" : "give a file",
    });
  }
  const list = sources ?? [{ file: single as string }];
  const all = list.map((own): DataSource => ({ ...shared, ...own, name: ("name" in own ? own.name : undefined) ?? basename(resolve(own.file)) }));
  for (const [i, { name: called, weight, eval_split, eval_share }] of all.entries()) {
    const at = sources === undefined ? place : `${place}.sources[${i}]`;
    const same = all.findIndex((other) => other.name === called);
    if (same < i)
      throw new ConfigError({ place: `${at}.name`, cause: `source ${same + 1} is called ${JSON.stringify(called)} too`, mend: "give each a name of its own" });
    if (weight === undefined && all.some((other) => other.weight !== undefined))
      throw new ConfigError({ place: `${at}.weight`, cause: "it is missing, and another source has one", mend: "give each source a weight, or none" });
    if (eval_split !== undefined && eval_share > 0)
      throw new ConfigError({ place: `${at}.eval_share`, cause: "a split is held out already (eval_split)", mend: "give one of the two" });
  }
  return all;
}

/** The options with each path as `change` gives it. */
export function withPaths<T extends { readonly file?: unknown; readonly sources?: unknown }>(options: T, change: (path: string) => string): T {
  const own = <S>(value: S): S =>
    typeof value === "object" && value !== null && "file" in value && typeof value.file === "string" && value.file !== ""
      ? { ...value, file: change(value.file) }
      : value;
  return { ...own(options), ...(Array.isArray(options.sources) ? { sources: options.sources.map(own) } : {}) };
}

/** How errors and notes call data: its file, or its files. */
export function placeOfData({ file: single, sources = [] }: Pick<DataOptions, "file" | "sources">): string {
  return single ?? sources.map((each) => each.file).join(", ");
}
