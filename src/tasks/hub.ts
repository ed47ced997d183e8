/** Data folders as the Hugging Face hub lays them out: which files belong to a split. */
import { readdirSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { DataError } from "../core/errors.js";
import { suggestion } from "../core/options.js";

/** Files of records, by their endings. */
const ending = /\.(?:parquet|jsonl|ndjson)$/;
/** Words of file and folder names that say a split, as the hub reads them. */
const words: { readonly [split: string]: readonly string[] } = {
  train: ["train", "training"],
  validation: ["validation", "valid", "dev", "val"],
  test: ["test", "testing", "eval", "evaluation"],
};
const deepest = 4;

interface Found {
  readonly path: string;
  readonly split: string | undefined;
  /** What is left of its folder's path without `data` and the split: a data set may have several subsets. */
  readonly subset: string;
}

/** Whether a path is a folder. */
export const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;

/**
 * The files of a split, in the order of their names: `data/train-00000-of-00002.parquet`, `train.jsonl`, `train/0000.parquet`.
 * A single file that names no split is `train`. Throws DataError for a split that is not there, and for several subsets.
 */
export function hubFiles(folder: string, split: string): string[] {
  const files = [...filesOf(folder)];
  if (files.length === 0) {
    throw new DataError({ place: folder, cause: "it holds no file of records", mend: "give a folder with .parquet or .jsonl files, or a file" });
  }
  const found = files.length === 1 && files[0]?.split === undefined ? files.map((file) => ({ ...file, split: "train" })) : files;
  const own = found.filter((file) => file.split === split);
  if (own.length === 0) {
    const splits = [...new Set(found.flatMap((file) => file.split ?? []))].sort();
    const none = splits.length === 0;
    throw new DataError({
      place: folder,
      cause: none ? "no name of its files says a split" : `it has no split "${split}"`,
      mend: none ? "name one of its files instead" : suggestion(split, splits, "its splits"),
      data: { splits },
    });
  }
  const subsets = [...new Set(own.map(({ subset }) => subset))].sort();
  if (subsets.length > 1) {
    const names = subsets.map((subset) => (subset === "" ? folder : join(folder, subset)));
    throw new DataError({
      place: folder,
      cause: `it holds ${subsets.length} subsets with the split ${split}`,
      mend: `give one of them: ${names.slice(0, 8).join(", ")}`,
      data: { subsets },
    });
  }
  return own.map(({ path }) => path).sort();
}

function* filesOf(root: string, inside: readonly string[] = []): Generator<Found> {
  const folder = join(root, ...inside);
  for (const name of readdirSync(folder).sort()) {
    if (name.startsWith(".")) continue;
    if (ending.test(name)) {
      // `data/train_sft-00000-of-00002.parquet`: whatever stands before the number of the piece is the split.
      const [, exact] = /^(.+?)-\d+-of-\d+\./.exec(name) ?? [];
      const split = (exact === undefined ? undefined : (wordOf(exact) ?? exact)) ?? splitOf(basename(name).replace(ending, "")) ?? splitOf(inside.at(-1) ?? "");
      yield { path: join(folder, name), split, subset: inside.filter((part) => part !== "data" && splitOf(part) === undefined).join("/") };
    } else if (inside.length < deepest && isFolder(join(folder, name))) yield* filesOf(root, [...inside, name]);
  }
}

const wordOf = (word: string): string | undefined => Object.keys(words).find((split) => words[split]?.includes(word.toLowerCase()));

/** The split that a name says by one of its words. */
function splitOf(name: string): string | undefined {
  for (const word of name.split(/[^A-Za-z0-9]+|(?<=[A-Za-z])(?=\d)/)) {
    const split = wordOf(word);
    if (split !== undefined) return split;
  }
  return undefined;
}
