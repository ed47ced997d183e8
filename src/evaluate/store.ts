/**
 * The sample store: what an evaluation drew, as a folder from which other numbers are computed without sampling again
 * (C24). `meta.json` says under which conditions; `problems.jsonl` what was asked; `samples.jsonl` has one sample a line,
 * in the order of problems and members. It depends on no clock: the same evaluation writes the same bytes.
 */
import { lstat, mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { z } from "zod";
import { DataError } from "../core/errors.js";
import { canonicalJson, type Json, sha256 } from "../core/json.js";
import type { Problem } from "../core/problem.js";
import type { Turn } from "../core/trajectory.js";
import { refuseUnlessWritable } from "../core/writable.js";
import { type Verifier, verifierId } from "../verify/contract.js";
import { type EvaluatedSample, publicProblem } from "./samples.js";

const format = "touchstone-samples";
const version = 1;

const count = z.int().min(0);
const json: z.ZodType<Json> = z.json() as z.ZodType<Json>;
/** Rules of a restricted draw. */
export const truncationSchema = z.strictObject({ topP: z.number().optional(), topK: z.number().optional(), minP: z.number().optional() });
const decoderSchema = z.strictObject({
  n: z.int().min(1),
  temperature: z.number(),
  greedy: z.boolean(),
  maxTokens: z.int().min(1),
  stop: z.array(z.string()).optional(),
  truncation: truncationSchema.optional(),
});
const metaSchema = z.strictObject({
  format: z.literal(format),
  version: z.literal(version),
  /** What was evaluated: a path or a name, as the caller wrote it. */
  model: z.string(),
  /** Identity of the weights, as the engine reports it. */
  weights: z.string(),
  tokenizer: z.string(),
  task: z.strictObject({ name: z.string(), id: z.string(), split: z.string() }).optional(),
  verifier: z.strictObject({ name: z.string(), version: z.string(), options: z.record(z.string(), json), id: z.string() }),
  decoder: decoderSchema,
  seed: z.int(),
  purpose: z.string(),
  engine: z.record(z.string(), json),
  problems: count,
  samples: count,
  sha256: z.strictObject({ problems: z.string(), samples: z.string() }),
});
/** The conditions of a store's samples. */
export type StoreMeta = z.output<typeof metaSchema>;
/** What the caller says; the rest follows from problems and samples. */
export type StoreConditions = Omit<StoreMeta, "format" | "version" | "verifier" | "problems" | "samples" | "sha256"> & {
  readonly verifier: Pick<Verifier, "name" | "version" | "options">;
};

const finding = { parts: z.record(z.string(), z.number()).optional(), evidence: z.record(z.string(), json).optional(), reward: z.number().optional() };
const verdictSchema = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("accept"), ...finding }),
  z.strictObject({ kind: z.literal("reject"), reason: z.string(), ...finding }),
  z.strictObject({ kind: z.literal("partial"), score: z.number(), ...finding }),
  z.strictObject({ kind: z.literal("unscored"), reason: z.string(), ...finding }),
]);
const turnSchema = z.strictObject({
  action: z.string(),
  observation: z.string(),
  verdict: verdictSchema.optional(),
  info: z.record(z.string(), z.number()),
  cut: count.optional(),
  fault: z.string().optional(),
});
const sampleSchema = z.strictObject({
  problem: z.string(),
  member: count,
  ids: z.array(z.int()),
  sampled: z.array(z.int().min(0).max(1)).optional(),
  turns: z.array(turnSchema).optional(),
  text: z.string(),
  logp: z.number().nullable(),
  rawLogp: z.number().nullable(),
  entropy: z.number().nullable(),
  stop: z.enum(["eos", "stop", "length", "cancelled"]),
  verdict: verdictSchema,
  answer: z.string().nullable(),
  vote: count.nullable(),
});
const problemSchema = z.strictObject({
  key: z.string(),
  prompt: z.array(z.strictObject({ role: z.enum(["system", "user", "assistant", "tool"]), content: z.string() })),
  reference: z.strictObject({ state: z.enum(["gold", "pseudo", "none", "withheld"]), answer: json.optional(), version: count }),
  tags: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])).optional(),
});

export interface SampleStore {
  readonly meta: StoreMeta;
  readonly problems: readonly Problem[];
  readonly samples: readonly EvaluatedSample[];
}

const files = { meta: "meta.json", problems: "problems.jsonl", samples: "samples.jsonl" } as const;

/** Refuses a folder that exists, before the work begins: a store is written once. Throws DataError. */
export async function checkNewStore(folder: string): Promise<void> {
  // A link that leads nowhere, or in a circle, is something too.
  if ((await lstat(folder).catch(() => undefined)) === undefined) return refuseUnlessWritable(dirname(resolve(folder)));
  throw new DataError({ place: folder, cause: "it exists", mend: "give the name of a new folder for the samples, or read this one by leaving the model out" });
}

/** Writes a store beside its folder and renames it, so that the folder appears whole. Throws DataError when it exists or a sample has no problem. */
export async function writeStore(
  folder: string,
  conditions: StoreConditions,
  problems: readonly Problem[],
  samples: readonly EvaluatedSample[],
): Promise<StoreMeta> {
  await checkNewStore(folder);
  const known = new Set(problems.map(({ key }) => key));
  const stray = samples.find(({ problem }) => !known.has(problem));
  if (stray) throw new DataError({ place: folder, cause: `sample ${stray.problem}/${stray.member} has no problem`, mend: "give the problems of all samples" });
  const beside = `${resolve(folder)}.${process.pid}.part`;
  await mkdir(dirname(beside), { recursive: true });
  await rm(beside, { recursive: true, force: true });
  await mkdir(beside);
  try {
    const verifier = { name: conditions.verifier.name, version: conditions.verifier.version, options: conditions.verifier.options };
    const meta: StoreMeta = {
      format,
      version,
      ...conditions,
      verifier: { ...verifier, id: verifierId(verifier) },
      problems: problems.length,
      samples: samples.length,
      sha256: {
        problems: await writeLines(join(beside, files.problems), problems.map(publicProblem).map(plain)),
        samples: await writeLines(join(beside, files.samples), samples.map(sampleJson)),
      },
    };
    await writeLines(join(beside, files.meta), [plain(meta)]);
    await rename(beside, folder);
    return meta;
  } catch (error) {
    await rm(beside, { recursive: true, force: true });
    throw error;
  }
}

/** A value as JSON carries it: typed arrays as lists, what is undefined left out. */
const plain = (value: object): Json => JSON.parse(JSON.stringify(value)) as Json;

/** A sample as a JSON object; the time that its verdict took is left out, since it depends on a clock. */
export function sampleJson(sample: EvaluatedSample): Json {
  const { elapsedMs: _, ...verdict } = sample.verdict;
  const { sampled, turns, logprobs } = sample;
  const own = { ...(logprobs && { logprobs: [...logprobs] }), ...(sampled && { sampled: [...sampled] }), ...(turns && { turns: turns.map(withoutClock) }) };
  return plain({ ...sample, ...own, ids: [...sample.ids], verdict });
}

function withoutClock({ verdict, ...turn }: Turn): object {
  if (verdict === undefined) return turn;
  const { elapsedMs: _, ...judged } = verdict;
  return { ...turn, verdict: judged };
}

async function writeLines(path: string, lines: readonly Json[]): Promise<string> {
  const text = lines.map((line) => `${canonicalJson(line)}\n`).join("");
  const file = await open(path, "w");
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  return sha256(text);
}

/** Reads a store and checks it against its hashes. Throws DataError for what is missing, damaged or of another format. */
export async function readStore(folder: string): Promise<SampleStore> {
  const place = join(folder, files.meta);
  const text = await readFile(place, "utf8").catch((error: NodeJS.ErrnoException) => {
    throw new DataError({
      place: folder,
      cause: `it is no folder of samples (no ${files.meta}: ${error.code})`,
      mend: "give a folder that touchstone eval --store wrote",
    });
  });
  const meta = parse(place, text, metaSchema);
  const problems = await readLines(folder, files.problems, meta.sha256.problems, problemSchema);
  const samples = await readLines(folder, files.samples, meta.sha256.samples, sampleSchema);
  return {
    meta,
    problems: problems as readonly Problem[],
    samples: samples.map(
      (sample) => ({ ...sample, ids: Int32Array.from(sample.ids), ...(sample.sampled && { sampled: Uint8Array.from(sample.sampled) }) }) as EvaluatedSample,
    ),
  };
}

const damaged = "take the folder from a copy, or sample again";

async function readLines<T>(folder: string, name: string, expected: string, schema: z.ZodType<T>): Promise<T[]> {
  const place = join(folder, name);
  const text = await readFile(place, "utf8").catch((error: NodeJS.ErrnoException) => {
    throw new DataError({ place, cause: `it cannot be read (${error.code})`, mend: damaged });
  });
  if (sha256(text) !== expected) throw new DataError({ place, cause: "its bytes are not those that were written", mend: damaged });
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line, i) => parse(`${place}, line ${i + 1}`, line, schema));
}

function parse<T>(place: string, text: string, schema: z.ZodType<T>): T {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new DataError({ place, cause: "it is not JSON", mend: damaged });
  }
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw new DataError({ place, cause: `${issue.path.join(".") || "its content"}: ${issue.message}`, mend: damaged });
}
