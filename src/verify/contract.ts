/**
 * The verifier contract. A verifier judges one response: pure (unless it says otherwise), total (any string gives a
 * verdict), and bounded in its work. It is known by name, version and options, whose hash goes into every record.
 */
import { userFrame } from "../core/frames.js";
import { hashJson, type Json } from "../core/json.js";
import { describeThrown } from "../core/load.js";
import type { Problem } from "../core/problem.js";
import { type Finding, reject, unscored, type Verdict } from "../core/verdict.js";

/** Why a response was rejected, for every verifier of ours; a verifier of one's own may add names. */
export const rejectReasons = {
  wrong: "an answer was read, and it is another",
  "no-answer": "nothing stands where the answer was to stand",
  unreadable: "what stands there is not of a form that the verifier understands",
  ambiguous: "several different answers, a hedge or a retraction",
  format: "the response is not laid out as the task demands",
  "unfinished-thinking": "the response ends within its thinking part",
  truncated: "the response was cut off by its token budget",
  "over-budget": "reading or comparing it would exceed a fixed limit of work",
} as const;
export type RejectReason = keyof typeof rejectReasons;

/** `reject` with a reason of the closed set. */
export const rejectFor = (reason: RejectReason, finding?: Finding): Verdict => reject(reason, finding);

/** What a verifier sees of one response. */
export interface VerifierInput {
  /** The reference answer, as `checkReference` accepted it. */
  readonly reference: Json;
  readonly response: string;
  readonly problem: Problem;
  /** The response ended because its token budget was used up. */
  readonly truncated: boolean;
}

/** A program outside that judges. */
export interface External {
  /** Answers so far that have no score because the program failed: what it would have said is not repeatable. */
  readonly faults: number;
  /** Ends it; it starts again when it is asked again. */
  close(): Promise<void>;
}

export interface Verifier {
  readonly name: string;
  /** Changes whenever some response could get another verdict. */
  readonly version: string;
  /** As resolved, defaults included. */
  readonly options: { readonly [name: string]: Json };
  /** `true`: the same input gives the same verdict, always. A `judge` is a model, `measured` is time or memory, `external` a program of which nothing is known. */
  readonly deterministic: true | "judge" | "measured" | "external";
  /** What is wrong with a reference, in one clause; asked of every row when a data set loads. */
  checkReference(reference: Json): string | undefined;
  /** `false`: it judges without a reference too; one that is missing is then null in its input. */
  readonly needsReference?: boolean;
  verify(input: VerifierInput): Verdict | Promise<Verdict>;
  /** Present where a program outside judges: it keeps its own deadline, takes answers in batches, and is to be ended. */
  readonly external?: External;
  /** The committed answer in a standard spelling, without a reference; undefined where there is none (C17). */
  extract?(response: string): string | undefined;
  /** Whether two extracted answers are the same answer. */
  same?(a: string, b: string): boolean;
  /** Where the committed answer stands, what closes it included: first character and one past the last; undefined where there is none. */
  locate?(response: string): AnswerRange | undefined;
}

/** A range of characters of a response. */
export interface AnswerRange {
  readonly start: number;
  readonly end: number;
}

/** How answers are told apart without a reference (C17). */
export type AnswerClasses = Required<Pick<Verifier, "extract" | "same">> & Pick<Verifier, "locate">;

/** The classes of a verifier that has them. */
export function answerClasses(verifier: Verifier): AnswerClasses | undefined {
  const { extract, same, locate } = verifier;
  if (extract === undefined || same === undefined) return undefined;
  return { extract: extract.bind(verifier), same: same.bind(verifier), ...(locate && { locate: locate.bind(verifier) }) };
}

/** Identity of a verifier with its options: name and hash. */
export function verifierId(verifier: Pick<Verifier, "name" | "version" | "options">): string {
  const { name, version, options } = verifier;
  return `${name}:${hashJson({ name, version, options }).slice(0, 16)}`;
}

const kinds: ReadonlySet<unknown> = new Set(["accept", "reject", "partial", "unscored"]);

/** What keeps a value from being a verdict. */
export function faultOfVerdict(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null || !kinds.has((value as Verdict).kind)) return `it returned ${shown(value)}, not true, false or a verdict`;
  const verdict = value as Verdict;
  if (verdict.kind === "partial" && !(verdict.score > 0 && verdict.score < 1)) return `it returned a partial score of ${verdict.score}`;
  return verdict.reward === undefined || Number.isFinite(verdict.reward) ? undefined : `it returned a reward of ${verdict.reward}`;
}

/** A reason is a name that answers are counted by, not a text of any length. */
const longestReason = 120;

function bounded(verdict: Verdict): Verdict {
  if (!("reason" in verdict) || String(verdict.reason).length <= longestReason) return verdict;
  return { ...verdict, reason: `${String(verdict.reason).slice(0, longestReason)}…` };
}

function shown(value: unknown): string {
  if (typeof value === "string") return `the text ${JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value)}`;
  return typeof value === "object" && value !== null ? `${Array.isArray(value) ? "a list" : "an object"} that is none` : String(value);
}

/**
 * The verdict on one response of a problem: the one way to call a verifier. Without a reference, or when the run
 * withholds it, `unscored("no-reference")` (C17), unless the verifier needs none; a reference that cannot be read, or a verifier that throws or returns
 * something else, is our fault and unscored too.
 */
export async function judge(verifier: Verifier, problem: Problem, response: string, truncated = false): Promise<Verdict> {
  const { state, answer } = problem.reference;
  const known = state !== "none" && state !== "withheld" && answer !== undefined;
  if (!known && verifier.needsReference !== false) return unscored("no-reference");
  try {
    const fault = known ? verifier.checkReference(answer) : undefined;
    if (fault !== undefined) return unscored("bad-reference", { evidence: { fault } });
    const verdict: unknown = await verifier.verify({ reference: known ? answer : null, response, problem, truncated });
    const wrong = faultOfVerdict(verdict);
    return wrong === undefined ? bounded(verdict as Verdict) : unscored("verifier-failed", { evidence: { verifier: verifier.name, message: wrong } });
  } catch (error) {
    const at = userFrame(error);
    return unscored("verifier-failed", { evidence: { verifier: verifier.name, message: describeThrown(error), ...(at !== undefined && { at }) } });
  }
}
