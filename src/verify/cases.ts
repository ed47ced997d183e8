/** Labelled cases for verifiers: rows {"gold", "pred", "expected"?, "policy"?, "kind"?} of a file, judged one by one and counted. */
import { ConfigError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import { inWords, type JsonRecord, LineFaults, missingColumn } from "../core/json-lines.js";
import { openRecords } from "../core/records.js";
import type { Verdict } from "../core/verdict.js";
import { namedVerifier } from "./catalogue.js";
import type { Verifier } from "./contract.js";
import { type JudgePool, startPool } from "./pool.js";

/** One row; columns that are not here are passed over. */
export interface Case {
  /** Its line, counted from 1. */
  readonly row: number;
  readonly gold: Json;
  readonly pred: string;
  /** Whether it is to be accepted. */
  readonly expected?: boolean;
  /** The name of the policy on which the label depends, which changes nothing, or values of policies for this row. */
  readonly policy?: string | { readonly [name: string]: Json };
  readonly kind?: "response" | "answer";
  readonly category?: string;
  readonly id?: string;
  /** The problem's text, for verifiers that look into it. */
  readonly problem?: string;
}

/** A case with its verdict and the milliseconds that the verifier itself took. */
export interface JudgedCase {
  readonly case: Case;
  readonly verdict: Verdict;
  readonly ms: number;
}

const kinds: readonly (Json | undefined)[] = ["response", "answer", undefined];

/** The rows of a file. Throws DataError that lists bad ones by number. */
export async function readCases(file: string): Promise<Case[]> {
  const records = await openRecords(file);
  const cases: Case[] = [];
  const faults = new LineFaults(records.word);
  let lines = 0;
  for await (const line of records.rows()) {
    lines++;
    if (line.fault !== undefined) faults.add(line.number, line.fault);
    else {
      const read = caseOf(line.number, line.record);
      if (typeof read === "string") faults.add(line.number, read);
      else cases.push(read);
    }
  }
  if (faults.count > 0) throw faults.error(file, lines, 'give rows such as {"gold": "1/2", "pred": "0.5", "expected": true}');
  return cases;
}

function caseOf(row: number, record: JsonRecord): Case | string {
  for (const column of ["gold", "pred"]) if (!Object.hasOwn(record, column)) return missingColumn(record, column);
  const { gold, pred, expected, policy, kind, category, id, problem } = record as { readonly [column: string]: Json | undefined };
  if (typeof pred !== "string" && typeof pred !== "number") return `its pred is ${inWords(pred as Json)}, not a text`;
  if (expected !== undefined && typeof expected !== "boolean") return `its expected is ${inWords(expected)}, not true or false`;
  if (!kinds.includes(kind)) return `its kind is ${inWords(kind as Json)}, not "response" or "answer"`;
  if (policy !== undefined && typeof policy !== "string" && (typeof policy !== "object" || policy === null || Array.isArray(policy)))
    return `its policy is ${inWords(policy)}, not a name or an object`;
  return {
    row,
    gold: gold as Json,
    pred: String(pred),
    ...(expected !== undefined && { expected: expected as boolean }),
    ...(policy !== undefined && { policy: policy as Case["policy"] & {} }),
    ...(kind !== undefined && { kind: kind as "response" | "answer" }),
    ...(category !== undefined && { category: String(category) }),
    ...(id !== undefined && { id: String(id) }),
    ...(typeof problem === "string" && { problem }),
  };
}

/**
 * Judges cases in order by a verifier of the catalogue or of one's own. A row's kind and policies are options of `math`: a
 * row that says neither is judged as a response where it commits itself like one, else as an answer. Throws ConfigError
 * for policies that another verifier would not know.
 */
export async function* judgeCases(cases: readonly Case[], name: string, options: { readonly [name: string]: Json }): AsyncGenerator<JudgedCase> {
  const judges = new Map<string, Clocked>();
  const pending: Promise<JudgedCase>[] = [];
  try {
    for (const each of cases) {
      const own = optionsFor(each, name, options);
      const key = JSON.stringify(own);
      const judge = judges.get(key) ?? (await clocked(name, own));
      judges.set(key, judge);
      pending.push(judge.judge(each));
      while (pending.length > judge.ahead) yield await (pending.shift() as Promise<JudgedCase>);
    }
    for (const each of pending) yield await each;
  } finally {
    await Promise.all([...judges.values()].map((judge) => judge.close()));
  }
}

function optionsFor({ row, kind, policy }: Case, name: string, options: { readonly [name: string]: Json }): { readonly [name: string]: Json } {
  const values = typeof policy === "object" ? policy : undefined;
  if (name !== "math") {
    if (values === undefined) return options;
    throw new ConfigError({ place: `row ${row}`, cause: `it has values of policies, and ${name} has none`, mend: "judge it by math, or name the policy only" });
  }
  const own: { [name: string]: Json } = { kind: "auto", ...options };
  if (values !== undefined) own.policies = { ...(options.policies as object), ...values };
  if (kind !== undefined) own.kind = kind;
  return own;
}

/** Answers that a program outside or a judge is asked about at once. */
const askedAtOnce = 64;

interface Clocked {
  /** So many may be judged before the first of them is waited for: none where the time of each is its own thread's. */
  readonly ahead: number;
  judge(each: Case): Promise<JudgedCase>;
  close(): Promise<void>;
}

/** A verifier in this thread, stopped at a deadline, whose own time is taken: reading the reference is in it, the deadline's watch is not. */
async function clocked(name: string, options: { readonly [name: string]: Json }): Promise<Clocked> {
  const { verifier } = await namedVerifier(name, options, "verifier");
  let ms = 0;
  const timed: Verifier = {
    ...verifier,
    checkReference(reference) {
      const start = performance.now();
      const fault = verifier.checkReference(reference);
      ms += performance.now() - start;
      return fault;
    },
    verify(input) {
      const start = performance.now();
      const result = verifier.verify(input);
      if (result instanceof Promise) return result.finally(() => (ms += performance.now() - start));
      ms += performance.now() - start;
      return result;
    },
  };
  const pool: JudgePool = await startPool({ verifier: timed, workers: 0 });
  return {
    ahead: verifier.external ? askedAtOnce : 0,
    async judge(each) {
      ms = 0;
      const { row, gold, pred, problem = "" } = each;
      const prompt = [{ role: "user", content: problem } as const];
      const verdict = await pool.judge({ key: String(row), prompt, reference: { state: "gold", answer: gold, version: 0 } }, pred, false);
      return { case: each, verdict, ms: verifier.external ? (verdict.elapsedMs ?? ms) : ms };
    },
    close: () => pool.close(),
  };
}

/** Counts of labelled cases. */
export interface Tally {
  n: number;
  false_accepts: number;
  false_rejects: number;
}
export interface Summary extends Tally {
  readonly unscored: number;
  readonly by_category: { readonly [category: string]: Tally };
  readonly median_ms: number;
  readonly p99_ms: number;
}

/** What was wrong among the cases that have a label, and how long all took; undefined where none has one. A case is accepted by `accept` alone. */
export function summaryOf(judged: readonly JudgedCase[]): Summary | undefined {
  const labelled = judged.filter((each) => each.case.expected !== undefined);
  if (labelled.length === 0) return undefined;
  const total: Tally = { n: 0, false_accepts: 0, false_rejects: 0 };
  const byCategory: { [category: string]: Tally } = {};
  for (const { case: one, verdict } of labelled) {
    const category = one.category ?? "none";
    byCategory[category] ??= { n: 0, false_accepts: 0, false_rejects: 0 };
    const accepted = verdict.kind === "accept";
    for (const tally of [total, byCategory[category]]) {
      tally.n++;
      if (accepted && one.expected === false) tally.false_accepts++;
      if (!accepted && one.expected === true) tally.false_rejects++;
    }
  }
  const ordered = judged.map(({ ms }) => ms).sort((a, b) => a - b);
  const quantile = (share: number): number => ordered[Math.min(ordered.length - 1, Math.floor(share * ordered.length))] as number;
  return {
    ...total,
    unscored: judged.filter(({ verdict }) => verdict.kind === "unscored").length,
    by_category: byCategory,
    median_ms: rounded(quantile(0.5)),
    p99_ms: rounded(quantile(0.99)),
  };
}

const rounded = (ms: number): number => Number(ms.toPrecision(4));
