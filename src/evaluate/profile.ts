/**
 * A profile: how often a policy solves each problem of a data set. A JSONL file whose first line says what produced it, and
 * whose other lines are one problem each.
 */
import { z } from "zod";
import { DataError } from "../core/errors.js";
import { canonicalJson, hashJson, type Json } from "../core/json.js";
import { jsonLines } from "../core/json-lines.js";
import type { Problem } from "../core/problem.js";
import { scoreOf } from "../core/verdict.js";
import { byProblem, type EvaluatedSample } from "./samples.js";
import { truncationSchema } from "./store.js";

export const profileVersion = 1;
const count = z.int().min(0);

const headSchema = z.strictObject({
  touchstone_profile: z.literal(profileVersion),
  /** As the caller wrote it. */
  model: z.string(),
  /** SHA-256 over weights and configuration. */
  model_sha256: z.string(),
  tokenizer: z.string(),
  task: z.strictObject({ name: z.string(), id: z.string(), split: z.string() }).optional(),
  /** Name and hash of version and options. */
  verifier: z.string(),
  /** Hashes of the files of a task or reward that a user wrote: a profile is not finished by another program than began it. */
  program: z.record(z.string(), z.record(z.string(), z.string())).optional(),
  k: z.int().min(1),
  temperature: z.number(),
  /** Rules of a restricted draw; absent where answers are drawn from the whole distribution. */
  truncation: truncationSchema.optional(),
  max_tokens: z.int().min(1),
  /** Strings that ended answers. */
  stop: z.array(z.string()).optional(),
  /** Hash of what was said of the chat template: another one, its variables, tools, a system message. */
  chat: z.string().optional(),
  seed: z.int(),
  problems: count,
  /** Hash of the keys, prompts and references in order. */
  problems_sha256: z.string(),
});
/** What produced a profile. */
export type ProfileHead = z.output<typeof headSchema>;

const lineSchema = z.strictObject({
  key: z.string(),
  /** Mean score over the scored answers (accept 1, reject 0, partial its score); null where none is scored. */
  pass: z.number().min(0).max(1).nullable(),
  k: z.int().min(1),
  accepted: count,
  scored: count,
  unscored: count,
  /** Mean tokens an answer: what it costs to ask. */
  tokens: z.number(),
  /** Answers that their budget cut off. */
  truncated: count,
});
export type ProfileLine = z.output<typeof lineSchema>;

export interface Profile {
  readonly head: ProfileHead;
  readonly lines: readonly ProfileLine[];
}

/** Hash of what problems are, in their order. */
export function problemsHash(problems: readonly Problem[]): string {
  return hashJson(problems.map(({ key, prompt, reference }) => ({ key, prompt, answer: reference.answer ?? null })) as unknown as Json);
}

/** One line a problem, in the order of the samples. */
export function profileLines(samples: readonly EvaluatedSample[]): ProfileLine[] {
  return [...byProblem(samples)].map(([key, own]) => {
    const scores = own.flatMap(({ verdict }) => scoreOf(verdict) ?? []);
    const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);
    return {
      key,
      pass: scores.length === 0 ? null : sum(scores) / scores.length,
      k: own.length,
      accepted: own.filter(({ verdict }) => verdict.kind === "accept").length,
      scored: scores.length,
      unscored: own.length - scores.length,
      tokens: sum(own.map(({ ids }) => ids.length)) / own.length,
      truncated: own.filter(({ stop }) => stop === "length").length,
    };
  });
}

/** A line of the file. */
export const profileText = (line: ProfileHead | ProfileLine): string => `${canonicalJson(JSON.parse(JSON.stringify(line)) as Json)}\n`;

const mend = "give a file that touchstone profile wrote";

/** Reads a profile. `partly`: it may lack problems, and end within a line. Throws DataError for anything else. */
export function readProfile(file: string, partly = false): Profile {
  let head: ProfileHead | undefined;
  const lines: ProfileLine[] = [];
  const keys = new Set<string>();
  for (const { number, record, fault } of jsonLines(file)) {
    const read = (head === undefined ? headSchema : lineSchema).safeParse(record);
    if (!read.success) {
      if (head !== undefined && partly) break; // Cut off where it was interrupted.
      const [issue] = read.error.issues;
      const cause = head === undefined ? "it does not begin like a profile" : (fault ?? `${issue?.path.join(".") || "the line"}: ${issue?.message}`);
      throw new DataError({ place: `${file}, line ${number}`, cause, mend });
    }
    if (head === undefined) head = read.data as ProfileHead;
    else {
      const line = read.data as ProfileLine;
      if (keys.has(line.key)) throw new DataError({ place: `${file}, line ${number}`, cause: `the problem ${line.key} is there twice`, mend });
      keys.add(line.key);
      lines.push(line);
    }
  }
  if (head === undefined || (lines.length !== head.problems && !partly))
    throw new DataError({ place: file, cause: `it has ${lines.length} of its ${head?.problems} problems`, mend: "let touchstone profile finish it" });
  return { head, lines };
}
