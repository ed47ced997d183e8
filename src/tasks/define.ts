/** `defineTask`: a task from what is its own (how a problem is drawn, or its rows; how an answer is checked). Keys, splits and order are made here. */
import { z } from "zod";
import { ConfigError, DataError, TouchstoneError } from "../core/errors.js";
import { hashJson, type Json, sha256 } from "../core/json.js";
import { describeThrown } from "../core/load.js";
import { parseOptions } from "../core/options.js";
import { notePlace, type Problem } from "../core/problem.js";
import { randomKey, Stream } from "../core/random.js";
import type { Tokenizer } from "../core/tokenizer.js";
import { type Verifier, verifierId } from "../verify/contract.js";
import { type Check, verifierOf } from "../verify/simple.js";
import { checkSpec, rowFault } from "./check.js";
import { type Environment, type Exchange, type Row, type Split, splits, type Task } from "./contract.js";
import { refuseUnlessAlike } from "./repeatable.js";

/** Share of the problems that each split gets; they sum to 1. */
export type Shares = { readonly [split in Split]: number };
const sharesOfDraws: Shares = { eval: 0.1, train: 0.3, warm: 0.6 };
const sharesOfRows: Shares = { eval: 0.1, train: 0.9, warm: 0 };

/** Draws in a row without a new problem, after which a split counts as used up. */
const patience = 50_000;
/** How many bad rows an error lists. */
const listed = 5;

type Options = z.ZodType<{ readonly [name: string]: unknown }>;
type NoOptions = z.ZodObject<Record<never, never>, z.core.$strict>;

interface Common<S extends Options> {
  readonly name: string;
  /** Changes whenever problems change, or what `verify` says of them; default "1". */
  readonly version?: string;
  /** A strict zod object; absent: no options. */
  readonly options?: S;
  readonly shares?: Shares;
  /** A worked solution from a stream of random numbers, for warm starts; absent: the rows' own, as far as they have one. */
  readonly solution?: (problem: Problem, random: Stream, options: z.output<S>) => string;
  /** Response budget in tokens. */
  readonly maxTokens?: number | ((options: z.output<S>) => number);
  readonly tokenizer?: Tokenizer | ((options: z.output<S>) => Tokenizer);
  /** For answers of several turns, in place of `solution`: the next action of a worked solution, undefined where there is none. */
  readonly action?: (problem: Problem, turns: readonly Exchange[], random: Stream, options: z.output<S>) => string | undefined;
  /** Makes an answer a conversation. */
  readonly environment?: Environment<Json> | ((options: z.output<S>) => Environment<Json>);
}
/** Where problems come from: drawn one by one without end, or a list. */
type Source<S extends Options, A extends Json> =
  | { readonly draw: (random: Stream, options: z.output<S>) => Row<A>; readonly rows?: never }
  | { readonly rows: readonly Row<A>[] | ((options: z.output<S>) => readonly Row<A>[]); readonly draw?: never };
/** How answers are checked: by a verifier, or by a function that says true or false. */
type Checked<S extends Options, A extends Json> =
  | { readonly verifier: Verifier | ((options: z.output<S>) => Verifier); readonly verify?: never }
  | { readonly verify: Check<A>; readonly verifier?: never };

export type TaskSpec<S extends Options, A extends Json> = Common<S> & Source<S, A> & Checked<S, A>;

/** Makes the task with its options; knows name and schema before that, for command lines and documentation. */
export interface TaskMaker<S extends Options = Options> {
  (options?: z.input<S>): Task;
  readonly taskName: string;
  readonly schema: S;
}

/**
 * Defines a task.
 *
 *     export default defineTask({
 *       name: "twice",
 *       draw: (random) => {
 *         const n = random.int(1000);
 *         return { prompt: `Twice ${n}:`, answer: 2 * n };
 *       },
 *       verify: ({ response, reference }) => Number(response) === reference,
 *     });
 */
export function defineTask<A extends Json, S extends Options = NoOptions>(spec: TaskSpec<S, A>): TaskMaker<S> {
  checkSpec(spec);
  const schema = spec.options ?? (z.strictObject({}) as unknown as S);
  const shares = spec.shares ?? (spec.draw ? sharesOfDraws : sharesOfRows);
  checkShares(spec.name, shares);
  const make = (given?: z.input<S>): Task => {
    const options = parseOptions(schema, given, `task ${spec.name}`);
    return buildTask(spec, options, shares);
  };
  return Object.assign(make, { taskName: spec.name, schema });
}

function buildTask<S extends Options, A extends Json>(spec: TaskSpec<S, A>, options: z.output<S>, shares: Shares): Task {
  const { version = "1" } = spec;
  const verifier = spec.verify ? verifierOf(spec.name, spec.verify, version) : typeof spec.verifier === "function" ? spec.verifier(options) : spec.verifier;
  const json = JSON.parse(JSON.stringify(options)) as { readonly [name: string]: Json };
  const identity = { name: spec.name, version, options: json, shares, verifier: verifierId(verifier) };
  let read: Map<Split, Problem[]> | undefined;
  const rows = (): Map<Split, Problem[]> => {
    read ??= spec.rows ? readRows(spec.name, rowsOf(spec.name, spec.rows, options), verifier, shares) : new Map();
    return read;
  };
  const { draw, solution, action, maxTokens, tokenizer, environment } = spec;
  const drawing = (name: string, split: Split, n: number, random: Stream, next: NonNullable<typeof draw>): DrawRequest => {
    return { name, split, n, shares, verifier, next: () => called(name, "draw", () => next(random, options)) };
  };
  return {
    name: spec.name,
    id: `${spec.name}:${hashJson(identity).slice(0, 16)}`,
    options: json,
    verifier,
    ...(maxTokens !== undefined && { maxTokens: resolved(maxTokens, options) }),
    ...(tokenizer && { tokenizer: resolved(tokenizer, options) }),
    ...(environment && { environment: resolved(environment, options) }),
    ...(solution && { solution: (problem, key) => solution(problem, new Stream(key), options) }),
    ...(action && { action: (problem, turns, key) => action(problem, turns, new Stream(key), options) }),
    size: (split) => (draw ? (shares[split] > 0 ? Number.POSITIVE_INFINITY : 0) : (rows().get(split)?.length ?? 0)),
    problems(split, n, seed) {
      if (!Number.isSafeInteger(n) || n < 0) throw new RangeError(`a number of problems is a whole number from 0 on, got ${n}`);
      const random = new Stream(randomKey({ seed, purpose: `task/${spec.name}/${split}` }));
      if (draw) {
        const found = atOnce(drawProblems(drawing(spec.name, split, n, random, draw)));
        if (found.length < n) throw tooFew(spec.name, split, n, found.length);
        return found;
      }
      const all = rows().get(split) ?? [];
      if (n > all.length) throw tooFew(spec.name, split, n, all.length);
      return random.shuffle(all).slice(0, n);
    },
    ...(draw && {
      pose: (split, n, seed, onProgress) =>
        withPauses(drawProblems(drawing(spec.name, split, n, new Stream(randomKey({ seed, purpose: `task/${spec.name}/${split}` })), draw)), onProgress),
    }),
  };
}

/** The rows; a function is called twice, because rows that differ from one call to the next make no task. */
function rowsOf<A extends Json, O>(name: string, rows: readonly Row<A>[] | ((options: O) => readonly Row<A>[]), options: O): readonly Row[] {
  if (typeof rows !== "function") return rows;
  const [first, second] = [0, 1].map(() => called(name, "rows", () => rows(options)));
  if (Array.isArray(first) && Array.isArray(second) && first !== second) {
    const texts = (list: readonly Row[]): string[] => list.map((row) => JSON.stringify(row) ?? "");
    refuseUnlessAlike(texts(first), texts(second), `task ${name}, rows`);
  }
  return first as readonly Row[];
}

/** A part that may depend on the options, or not. */
function resolved<T extends object | number, O>(part: T | ((options: O) => T), options: O): T {
  return typeof part === "function" ? part(options) : part;
}

interface DrawRequest {
  readonly name: string;
  readonly split: Split;
  readonly n: number;
  readonly shares: Shares;
  readonly verifier: Verifier;
  next(): Row;
}

/** Draws between two words of how many are found. */
const drawsAtOnce = 64;
/** How long drawing may keep the event loop waiting, in milliseconds. */
const pauseEveryMs = 50;

/** All that are found without a pause. */
function atOnce(work: Generator<number, Problem[]>): Problem[] {
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
  }
}

async function withPauses(work: Generator<number, Problem[]>, onProgress: (found: number) => void = () => undefined): Promise<Problem[]> {
  for (let since = performance.now(); ; ) {
    const { done, value } = work.next();
    if (done) return value;
    if (performance.now() - since < pauseEveryMs) continue;
    onProgress(value);
    await new Promise((resolve) => setImmediate(resolve));
    since = performance.now();
  }
}

/** n different problems, or as many as a long search finds; tells now and then how many there are. */
function* drawProblems({ name, split, n, shares, verifier, next }: DrawRequest): Generator<number, Problem[]> {
  const problems = new Map<string, Problem>();
  for (let misses = 0, draws = 1; problems.size < n; draws++) {
    if (draws % drawsAtOnce === 0) yield problems.size;
    const row = next();
    const unusable = rowFault(row);
    if (unusable !== undefined)
      throw new DataError({ place: `task ${name}, draw`, cause: `it gave a row that cannot be used: ${unusable}`, mend: "correct the task" });
    const problem = problemOf(name, row);
    if (!problems.has(problem.key) && splitOf(problem.key, shares) === split) {
      const fault = faultOf(problem, verifier);
      if (fault !== undefined) {
        throw new DataError({
          place: `task ${name}, problem ${JSON.stringify(problem.prompt.at(-1)?.content)}`,
          cause: `its answer is refused: ${fault}`,
          mend: `return an answer that the verifier ${verifier.name} reads`,
        });
      }
      problems.set(problem.key, problem);
      misses = 0;
    } else if (++misses > patience) break;
  }
  return [...problems.values()];
}

function readRows(name: string, rows: readonly Row[], verifier: Verifier, shares: Shares): Map<Split, Problem[]> {
  const found = new Map<Split, Problem[]>(splits.map((split) => [split, []]));
  const lines = new Map<string, number>();
  const faults: string[] = [];
  if (!Array.isArray(rows)) {
    throw new DataError({ place: `task ${name}, rows`, cause: "it gave no list of rows", mend: "return a list, and no promise of one" });
  }
  for (const [i, row] of rows.entries()) {
    const unusable = rowFault(row);
    if (unusable !== undefined) {
      faults.push(`row ${i + 1}: ${unusable}`);
      continue;
    }
    const problem = problemOf(name, row);
    const earlier = lines.get(problem.key);
    const fault = earlier === undefined ? faultOf(problem, verifier) : `it is the same problem as row ${earlier + 1}`;
    if (fault !== undefined) faults.push(`row ${i + 1}: ${fault}`);
    lines.set(problem.key, earlier ?? i);
    found.get(row.split ?? splitOf(problem.key, shares))?.push(problem);
  }
  if (faults.length === 0) return found;
  const more = faults.length > listed ? ` and ${faults.length - listed} more` : "";
  throw new DataError({
    place: `task ${name}`,
    cause: `${faults.length} of ${rows.length} rows are bad (${faults.slice(0, listed).join("; ")}${more})`,
    mend: "mend or leave out these rows",
    data: { faults },
  });
}

/** What a function of the task's author gives; what it throws is told as his. */
function called<T>(name: string, what: string, make: () => T): T {
  try {
    return make();
  } catch (error) {
    if (error instanceof TouchstoneError) throw error;
    throw new DataError({ place: `task ${name}, ${what}`, cause: `it throws (${describeThrown(error)})`, mend: "correct the task" }, { cause: error });
  }
}

function faultOf(problem: Problem, verifier: Verifier): string | undefined {
  const { answer } = problem.reference;
  return answer === undefined ? undefined : verifier.checkReference(answer);
}

function problemOf(name: string, row: Row): Problem {
  const prompt = typeof row.prompt === "string" ? [{ role: "user", content: row.prompt } as const] : row.prompt;
  const privileged = row.solution === undefined ? row.privileged : { solution: row.solution, ...row.privileged };
  const problem: Problem = Object.freeze({
    key: row.key ?? problemKey(name, prompt),
    prompt,
    reference: row.answer === undefined ? { state: "none", version: 0 } : { state: "gold", answer: row.answer, version: 0 },
    ...(privileged && { privileged }),
    ...(row.tags && { tags: row.tags }),
  } satisfies Problem);
  if (row.place !== undefined) notePlace(problem, row.place);
  return problem;
}

/** The key of a row without one: a hash of task and prompt. */
export function problemKey(task: string, prompt: Row["prompt"]): string {
  const messages = typeof prompt === "string" ? [{ role: "user", content: prompt }] : prompt;
  return hashJson({ task, prompt: messages.map(({ role, content }) => [role, content]) }).slice(0, 20);
}

/** The split of a key: its hash as a number from 0 to 1, against the shares one after another. It depends on no seed, so no two runs can mix splits. */
export function splitOf(key: string, shares: Shares): Split {
  const position = Number.parseInt(sha256(`split/${key}`).slice(0, 12), 16) / 2 ** 48;
  let end = shares.eval;
  if (position < end) return "eval";
  end += shares.train;
  return position < end || shares.warm === 0 ? "train" : "warm";
}

function checkShares(name: string, shares: Shares): void {
  const sum = splits.reduce((total, split) => total + shares[split], 0);
  if (splits.some((split) => !(shares[split] >= 0)) || Math.abs(sum - 1) > 1e-9) {
    throw new ConfigError({
      place: `task ${name}, shares`,
      cause: `they are ${splits.map((split) => `${split} ${shares[split]}`).join(", ")}`,
      mend: "give numbers from 0 on that sum to 1",
    });
  }
}

function tooFew(name: string, split: Split, wanted: number, found: number): DataError {
  return new DataError({
    place: `task ${name}, split ${split}`,
    cause: `${wanted} problems were asked for, and ${found === 0 ? "there are none" : `only ${found} different ones were found`}`,
    mend: "ask for fewer, or widen the task's options or shares",
    data: { split, wanted, found },
  });
}
