/** What a user names as a model: the folder of a model, or a run with one of its checkpoints. */
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { ModelError } from "../core/errors.js";
import { checkpointPaths } from "./store/checkpoints.js";
import { RunReader } from "./store/reader.js";

export interface NamedModel {
  /** Folder with config.json and the weights, or that of an adapter. */
  readonly folder: string;
  /** The run it comes from, with the step of its checkpoint. */
  readonly run?: { readonly reader: RunReader; readonly step: number };
}

/** For the help of commands that take one. */
export const modelHelp = "folder of a model or PEFT adapter, GGUF file, hub id (ORGANISATION/NAME), or RUN@CHECKPOINT: a step, first, last (default) or best";

/**
 * Finds a model by what the caller wrote; a checkpoint's files are checked against their hashes. Throws ModelError for what
 * is not there. `what`: how it is called where it was named.
 */
export function namedModel(text: string, what = "model"): NamedModel {
  const at = text.lastIndexOf("@");
  const plain = existsSync(text) || at < 0;
  const path = plain ? text : text.slice(0, at);
  const mark = plain ? undefined : text.slice(at + 1);
  const place = `${what} ${text}`;
  const mend = "give the folder of a model or of a run";
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) throw new ModelError({ place, cause: "there is no such folder", mend });
  if (!found.isDirectory()) throw new ModelError({ place, cause: "it is a file", mend });
  if (existsSync(join(path, "run.json"))) return fromRun(path, mark ?? "last", place);
  if (mark !== undefined) throw new ModelError({ place, cause: `${path} is no run, so it has no checkpoint ${mark}`, mend: "leave @ out" });
  if (!["config.json", "adapter_config.json"].some((name) => existsSync(join(path, name))))
    throw new ModelError({ place, cause: "it has neither config.json nor run.json", mend: ggufIn(path) ?? mend });
  return { folder: path };
}

/** A folder as downloads leave it, with a model in one file. */
function ggufIn(folder: string): string | undefined {
  const found = readdirSync(folder).filter((name) => name.endsWith(".gguf"));
  if (found.length === 0) return undefined;
  return found.length === 1 ? `give the GGUF file in it: ${join(folder, found[0])}` : `give one of the GGUF files in it: ${found.sort().join(", ")}`;
}

function fromRun(path: string, mark: string, place: string): NamedModel {
  const reader = RunReader.open(path);
  const steps = reader.checkpoints.steps();
  const marks = { first: steps[0], last: steps.at(-1), best: mark === "best" ? reader.checkpoints.best() : undefined };
  const step = Object.hasOwn(marks, mark) ? marks[mark as keyof typeof marks] : steps.find((known) => String(known) === mark);
  if (step === undefined) {
    const mend = steps.length === 0 ? "wait for the first one, the run has none yet" : `give one of ${steps.join(", ")}, first, last or best`;
    const cause = mark === "best" && steps.length > 0 ? "no checkpoint has a score, so none is the best" : `there is no checkpoint ${mark}`;
    throw new ModelError({ place, cause, mend });
  }
  return { folder: checkpointPaths(reader.checkpoints.read(step).folder).policy, run: { reader, step } };
}
