/** What a run began with, which a resume must find as it was: `run.json`, the data, and the programs that decide rewards. */
import { RunError } from "../../core/errors.js";
import { canonicalJson, type Json } from "../../core/json.js";
import { type CheckpointBody, type RunFile, type RunMeta, withoutClock } from "./schema.js";

/** How many differences a message names. */
const listed = 3;

/** `run.json` without its clock, the run's own folder, which may be moved, and its loggers, which change nothing. */
export function asBegun(run: RunFile): Json {
  const { out: _, loggers: __, ...config } = run.config as { readonly [name: string]: Json };
  return { ...withoutClock(run), config } as Json;
}

/** Throws RunError where `run.json` is not what it was when a checkpoint was written. */
export function refuseEdited(folder: string, run: RunFile, { step, clock }: Pick<CheckpointBody, "step" | "clock">): void {
  if (clock.run === undefined) return;
  const changes = changesOf(clock.run, asBegun(run), "");
  if (changes.length === 0) return;
  const more = changes.length > listed ? ` and ${changes.length - listed} more` : "";
  throw new RunError({
    place: `${folder}/run.json`,
    cause: `it is not what the run began with: ${changes.slice(0, listed).join(", ")}${more}`,
    mend: `write that back, or begin a new run with other options: touchstone train --model ${folder}@${step}`,
    data: { changes },
  });
}

/** Throws RunError where the programs that decide rewards, or the problems, are not those of the run. */
export function refuseUnlessSame(folder: string, run: Pick<RunMeta, "data" | "program">, now: Pick<RunMeta, "data" | "program">): void {
  for (const [what, files] of Object.entries(run.program ?? {})) {
    const is = now.program?.[what] ?? {};
    const changed = [...new Set([...Object.keys(files), ...Object.keys(is)])].filter((name) => files[name] !== is[name]);
    if (changed.length === 0) continue;
    throw new RunError({
      place: folder,
      cause:
        what === "prompts"
          ? `a file of its prompts has changed since it began (${changed.join(", ")}), so the policy would be asked otherwise than before`
          : `the program of its ${what} has changed since it began (${changed.join(", ")}), so answers would be judged otherwise than before`,
      mend: "put it back as it was, or start a new run",
      data: { what, changed },
    });
  }
  if (run.data === now.data) return;
  throw new RunError({
    place: folder,
    cause: "its data set has changed since it began",
    mend: "give the data it began with, or start a new run",
    data: { was: run.data, is: now.data },
  });
}

const isObject = (value: Json | undefined): value is { readonly [key: string]: Json } => typeof value === "object" && value !== null && !Array.isArray(value);

/** What differs between two values, a text for each place: `lr was 0.1 and is 0.2`. */
export function changesOf(was: Json | undefined, is: Json | undefined, path = ""): string[] {
  if (isObject(was) && isObject(is)) {
    const keys = [...new Set([...Object.keys(was), ...Object.keys(is)])].sort();
    return keys.flatMap((key) => changesOf(was[key], is[key], path === "" ? key : `${path}.${key}`));
  }
  const text = (value: Json | undefined): string => (value === undefined ? "absent" : canonicalJson(value));
  return text(was) === text(is) ? [] : [`${path} was ${short(text(was))} and is ${short(text(is))}`];
}

const short = (text: string): string => (text.length > 80 ? `${text.slice(0, 80)}…` : text);
