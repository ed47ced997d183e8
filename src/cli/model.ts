/** What a command line names as a model: the folder of a model, or a run with one of its checkpoints. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { loadAlphabet } from "../core/alphabet.js";
import { ConfigError } from "../core/errors.js";
import type { Tokenizer } from "../core/tokenizer.js";
import { checkpointPaths } from "../train/store/checkpoints.js";
import { RunReader } from "../train/store/reader.js";

export interface NamedModel {
  /** Folder with config.json and the weights. */
  readonly folder: string;
  readonly tokenizer: Tokenizer;
  /** The run it comes from, with the step of its checkpoint. */
  readonly run?: { readonly reader: RunReader; readonly step: number };
}

/** For the help of commands that take one. */
export const modelHelp = "folder of a model, or RUN@CHECKPOINT: a step, first, last (default) or best";

/** Finds a model by what the caller wrote; a checkpoint's files are checked against their hashes. Throws ConfigError for what is not there. */
export async function namedModel(text: string): Promise<NamedModel> {
  const at = text.lastIndexOf("@");
  const plain = existsSync(text) || at < 0;
  const path = plain ? text : text.slice(0, at);
  const mark = plain ? undefined : text.slice(at + 1);
  if (!existsSync(path)) throw new ConfigError({ place: `model ${text}`, cause: "there is no such folder", mend: "give the folder of a model or of a run" });
  if (existsSync(join(path, "run.json"))) return fromRun(path, mark ?? "last");
  if (mark !== undefined) throw new ConfigError({ place: `model ${text}`, cause: `${path} is no run, so it has no checkpoint ${mark}`, mend: "leave @ out" });
  if (!existsSync(join(path, "config.json"))) {
    throw new ConfigError({ place: `model ${text}`, cause: "it has neither config.json nor run.json", mend: "give the folder of a model or of a run" });
  }
  return { folder: path, tokenizer: await loadAlphabet(path) };
}

async function fromRun(path: string, mark: string): Promise<NamedModel> {
  const reader = RunReader.open(path);
  const steps = reader.checkpoints.steps();
  const marks = { first: steps[0], last: steps.at(-1), best: mark === "best" ? reader.checkpoints.best() : undefined };
  const step = Object.hasOwn(marks, mark) ? marks[mark as keyof typeof marks] : steps.find((known) => String(known) === mark);
  if (step === undefined) {
    const known = steps.length === 0 ? "wait for the first one, the run has none yet" : `give one of ${steps.join(", ")}, first, last or best`;
    const cause = mark === "best" && steps.length > 0 ? "no checkpoint has a score, so none is the best" : `there is no checkpoint ${mark}`;
    throw new ConfigError({ place: `run ${path}`, cause, mend: known });
  }
  const folder = checkpointPaths(reader.checkpoints.read(step).folder).policy;
  return { folder, tokenizer: await loadAlphabet(folder), run: { reader, step } };
}
