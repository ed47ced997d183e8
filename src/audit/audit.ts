/**
 * The audit of a verifier (P21): how often it rejects answers that are right by construction, accepts ones that are wrong by
 * construction, or fails to judge; by category, with Wilson intervals. A verdict is one of four: accept, reject, error, timeout.
 */
import type { Problem } from "../core/problem.js";
import type { Verdict } from "../core/verdict.js";
import { wilson } from "../core/wilson.js";
import { type Verifier, verifierId } from "../verify/contract.js";
import { type JudgePool, startPool } from "../verify/pool.js";
import type { VerifierSource } from "../verify/source.js";
import { type Contract, isPromised } from "./contracts.js";
import { type Hack, hacksOf } from "./hacks.js";
import { drawGolds, type Gold } from "./value.js";
import { type Category, categories, mutantsOf, type Pair, variantsOf } from "./variants.js";

/** A verifier to be audited. */
export interface Audited {
  readonly name: string;
  readonly verifier: Verifier;
  readonly source?: VerifierSource;
}

export interface AuditOptions {
  readonly audited: Audited;
  /** Another verifier or configuration, on the same pairs. */
  readonly other?: Audited;
  readonly contract: Contract;
  readonly golds: number;
  readonly seed: number;
  /** What stands around each answer, `{}` for it; absent: nothing. */
  readonly frame?: string;
  readonly deadlineMs?: number;
  /** Threads that judge; 0: this one. Default 1 where the verifier can be made in one. */
  readonly workers?: number;
  readonly onProgress?: (done: number, total: number) => void;
}

export type Outcome = "accept" | "reject" | "error" | "timeout";

/** A share with its 95 % interval (Wilson). */
export interface Share {
  readonly share: number;
  readonly low: number;
  readonly high: number;
}

/** What became of the variants of one category, within what the verifier promises or beyond it. */
export interface Cell {
  readonly category: Category;
  readonly promised: boolean;
  readonly n: number;
  readonly accept: number;
  readonly reject: number;
  readonly error: number;
  readonly timeout: number;
  readonly reject_rate: Share;
  readonly exec_fail_rate: Share;
}

/** Answers that are wrong by construction, of one kind. */
export interface WrongCell {
  readonly kind: string;
  readonly n: number;
  readonly accepted: number;
  readonly accept_rate: Share;
}

/** Whole numbers of a size against their neighbours. */
export interface StepCell {
  readonly value: string;
  readonly one_less: Outcome;
  readonly one_more: Outcome;
}

export interface Example {
  readonly gold: string;
  readonly text: string;
  readonly of: string;
  readonly outcome: Outcome;
  readonly reason?: string;
  /** What a verifier said that failed to judge. */
  readonly message?: string;
}

export interface AuditReport {
  readonly verifier: string;
  readonly id: string;
  readonly other?: string;
  readonly seed: number;
  readonly golds: number;
  readonly verdicts: number;
  /** References that are accepted against themselves, as written. */
  readonly self_validation: Share & { readonly n: number; readonly accepted: number };
  readonly cells: readonly Cell[];
  /** Failures within the contract, and each category's share of them. */
  readonly in_contract: { readonly n: number; readonly failures: number; readonly budget: { readonly [category: string]: number } };
  readonly mutants: readonly WrongCell[];
  readonly hacks: readonly WrongCell[];
  readonly off_by_one: readonly StepCell[];
  /** Variants on which the two verifiers differ in whether they accept. */
  readonly disagreement?: Share & { readonly n: number; readonly differ: number };
  readonly examples: { readonly rejected: readonly Example[]; readonly accepted: readonly Example[] };
  readonly median_ms: number;
  readonly p99_ms: number;
}

/** Examples that are kept of a category or kind. */
const mostExamples = 3;
/** Pairs that are under way at once, where not this thread judges. */
const batch = 512;
const deadline = 10_000;

/** Audits a verifier. Throws ConfigError where its threads cannot be started. */
export async function audit(options: AuditOptions): Promise<AuditReport> {
  const { audited, other, contract, seed, onProgress } = options;
  const golds = drawGolds(options.golds, seed);
  const pairs = golds.flatMap((gold) => [...variantsOf(gold), ...mutantsOf(gold)]);
  const hacks = golds.flatMap(hacksOf);
  const steps = stepsOf();
  const asked: readonly Asked[] = [...pairs, ...hacks, ...steps];
  const right = pairs.filter(({ equal }) => equal);
  const total = asked.length + (other ? right.length : 0);
  let done = 0;
  const tell = (): void => onProgress?.(++done, total);
  const judged = await judgeAll(audited, asked, options, tell);
  const first = judged.slice(0, pairs.length);
  const others = other && (await judgeAll(other, right, options, tell));
  const variants = pairs.flatMap((pair, i) => (pair.equal ? [{ pair, ...(first[i] as Judged) }] : []));
  const mutants = pairs.flatMap((pair, i) => (pair.equal ? [] : [{ ...pair, of: pair.rule, ...(first[i] as Judged) }]));
  const hacked = hacks.map((hack, i) => ({ ...hack, of: hack.hack, ...(judged[pairs.length + i] as Judged) }));
  const stepped = judged.slice(pairs.length + hacks.length);
  const itself = variants.filter(({ pair }) => pair.category === "identity" && pair.setting === "bare");
  const promised = variants.filter(({ pair }) => isPromised(contract, pair));
  const failures = promised.filter(({ outcome }) => outcome !== "accept");
  const ms = judged.map((each) => each.ms).sort((a, b) => a - b);
  const accepted = itself.filter(({ outcome }) => outcome === "accept").length;
  const differ = others?.filter((each, i) => (each.outcome === "accept") !== (variants[i]?.outcome === "accept")).length ?? 0;
  return {
    verifier: audited.name,
    id: verifierId(audited.verifier),
    ...(other && { other: `${other.name} (${verifierId(other.verifier)})` }),
    seed,
    golds: golds.length,
    verdicts: total,
    self_validation: { ...shareOf(accepted, itself.length), n: itself.length, accepted },
    cells: cellsOf(variants, contract),
    in_contract: { n: promised.length, failures: failures.length, budget: budgetOf(failures.map(({ pair }) => pair.category)) },
    mutants: wrongCells(mutants),
    hacks: wrongCells(hacked),
    off_by_one: stepCells(stepped),
    ...(others && { disagreement: { ...shareOf(differ, others.length), n: others.length, differ } }),
    examples: {
      rejected: examplesOf(failures.map(({ pair, ...rest }) => ({ ...pair, ...rest, of: `${pair.category}: ${pair.rule}` }))),
      accepted: examplesOf([...mutants, ...hacked].filter(({ outcome }) => outcome === "accept")),
    },
    median_ms: at(ms, 0.5),
    p99_ms: at(ms, 0.99),
  };
}

/** Whether a report has nothing to object to: no wrong answer accepted, and at most this share of the promised ones not accepted. */
export function isClean({ mutants, hacks, off_by_one, in_contract }: AuditReport, most: number): boolean {
  const wrong =
    [...mutants, ...hacks].some(({ accepted }) => accepted > 0) || off_by_one.some((step) => step.one_less === "accept" || step.one_more === "accept");
  return !wrong && in_contract.failures <= most * in_contract.n;
}

type Asked = Pick<Pair | Hack, "gold" | "text">;

interface Judged {
  readonly outcome: Outcome;
  readonly reason?: string;
  readonly message?: string;
  readonly ms: number;
}

async function judgeAll({ verifier, source }: Audited, asked: readonly Asked[], options: AuditOptions, tell: () => void): Promise<Judged[]> {
  const { frame, workers, deadlineMs = deadline } = options;
  const pool = await startPool({ verifier, ...(source && { source }), ...(workers !== undefined && { workers }), deadlineMs });
  const found: Judged[] = [];
  const here = verifier.external === undefined && (source === undefined || workers === 0);
  const size = here ? 1 : batch;
  try {
    for (let from = 0; from < asked.length; from += size)
      found.push(...(await Promise.all(asked.slice(from, from + size).map((each, i) => judgeOne(pool, each, from + i, frame).finally(tell)))));
  } finally {
    await pool.close();
  }
  return found;
}

async function judgeOne(pool: JudgePool, { gold, text }: Asked, number: number, frame: string | undefined): Promise<Judged> {
  const problem: Problem = {
    key: `audit-${number}`,
    prompt: [{ role: "user", content: "Give the value." }],
    reference: { state: "gold", answer: gold.text, version: 0 },
  };
  const verdict = await pool.judge(problem, frame?.replace("{}", () => text) ?? text, false);
  const message = verdict.kind === "unscored" ? (verdict.evidence as { readonly message?: unknown } | undefined)?.message : undefined;
  return {
    outcome: outcomeOf(verdict),
    ...("reason" in verdict && { reason: verdict.reason }),
    ...(typeof message === "string" && { message }),
    ms: verdict.elapsedMs ?? 0,
  };
}

/** Only `accept` is acceptance. What was stopped by a clock is apart from what failed otherwise. */
export function outcomeOf(verdict: Verdict): Outcome {
  if (verdict.kind === "accept") return "accept";
  if (verdict.kind !== "unscored") return "reject";
  return verdict.reason === "starved" || verdict.reason === "timeout" ? "timeout" : "error";
}

function shareOf(count: number, n: number): Share {
  if (n === 0) return { share: 0, low: 0, high: 1 };
  const { low, high } = wilson(count, n);
  return { share: count / n, low, high };
}

function cellsOf(variants: readonly ({ readonly pair: Pair } & Judged)[], contract: Contract): Cell[] {
  return categories.flatMap((category) =>
    [true, false].flatMap((promised): Cell[] => {
      const here = variants.filter(({ pair }) => pair.category === category && isPromised(contract, pair) === promised);
      if (here.length === 0) return [];
      const count = (outcome: Outcome): number => here.filter((each) => each.outcome === outcome).length;
      const [reject, error, timeout] = [count("reject"), count("error"), count("timeout")];
      const n = here.length;
      const rates = { reject_rate: shareOf(reject, n), exec_fail_rate: shareOf(error + timeout, n) };
      return [{ category, promised, n, accept: count("accept"), reject, error, timeout, ...rates }];
    }),
  );
}

function budgetOf(failed: readonly Category[]): { [category: string]: number } {
  return Object.fromEntries(
    categories.flatMap((category) => {
      const count = failed.filter((each) => each === category).length;
      return count === 0 ? [] : [[category, count / failed.length]];
    }),
  );
}

function wrongCells(judged: readonly ({ readonly of: string } & Judged)[]): WrongCell[] {
  return [...new Set(judged.map(({ of }) => of))].map((kind) => {
    const here = judged.filter(({ of }) => of === kind);
    const accepted = here.filter(({ outcome }) => outcome === "accept").length;
    return { kind, n: here.length, accepted, accept_rate: shareOf(accepted, here.length) };
  });
}

function examplesOf(judged: readonly ({ readonly gold: Gold; readonly text: string; readonly of: string } & Judged)[]): Example[] {
  const kept = new Map<string, number>();
  return judged.flatMap(({ gold, text, of, outcome, reason, message }) => {
    const count = kept.get(of) ?? 0;
    kept.set(of, count + 1);
    return count < mostExamples
      ? [{ gold: gold.text, text, of, outcome, ...(reason !== undefined && { reason }), ...(message !== undefined && { message }) }]
      : [];
  });
}

/** Sizes at which neighbours are tried: around each power of ten, where a relative tolerance begins to let them through. */
const stepValues: readonly bigint[] = Array.from({ length: 12 }, (_, power) => 10n ** BigInt(power + 1)).flatMap((ten) => [ten - 2n, ten - 1n, ten, ten + 1n]);

function stepsOf(): Asked[] {
  return stepValues.flatMap((value) => {
    const gold: Gold = { form: "integer", value: { kind: "rational", value: { n: value, d: 1n } }, text: String(value) };
    return [
      { gold, text: String(value - 1n) },
      { gold, text: String(value + 1n) },
    ];
  });
}

function stepCells(judged: readonly Judged[]): StepCell[] {
  return stepValues.map((value, i) => ({
    value: String(value),
    one_less: (judged[2 * i] as Judged).outcome,
    one_more: (judged[2 * i + 1] as Judged).outcome,
  }));
}

const at = (sorted: readonly number[], share: number): number => Number((sorted[Math.floor(share * (sorted.length - 1))] ?? 0).toPrecision(4));
