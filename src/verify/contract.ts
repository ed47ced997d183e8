/**
 * The verifier contract. A verifier judges one response: pure (unless it says otherwise), total (any string gives a
 * verdict), and bounded in its work. It is known by name, version and options, whose hash goes into every record.
 */
import { hashJson, type Json } from "../core/json.js";
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

export interface Verifier {
  readonly name: string;
  /** Changes whenever some response could get another verdict. */
  readonly version: string;
  /** As resolved, defaults included. */
  readonly options: { readonly [name: string]: Json };
  /** `true`: the same input gives the same verdict, always. A `judge` is a model, `measured` is time or memory. */
  readonly deterministic: true | "judge" | "measured";
  /** What is wrong with a reference, in one clause; asked of every row when a data set loads. */
  checkReference(reference: Json): string | undefined;
  /** `false`: it judges without a reference too; one that is missing is then null in its input. */
  readonly needsReference?: boolean;
  verify(input: VerifierInput): Verdict | Promise<Verdict>;
  /** The committed answer in a standard spelling, without a reference; undefined where there is none (C17). */
  extract?(response: string): string | undefined;
  /** Whether two extracted answers are the same answer. */
  same?(a: string, b: string): boolean;
}

/** Identity of a verifier with its options: name and hash. */
export function verifierId(verifier: Pick<Verifier, "name" | "version" | "options">): string {
  const { name, version, options } = verifier;
  return `${name}:${hashJson({ name, version, options }).slice(0, 16)}`;
}

const kinds: ReadonlySet<unknown> = new Set(["accept", "reject", "partial", "unscored"]);

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
    if (typeof verdict === "object" && verdict !== null && kinds.has((verdict as Verdict).kind)) return verdict as Verdict;
    return unscored("verifier-failed", { evidence: { verifier: verifier.name, message: `it returned ${String(verdict)} instead of a verdict` } });
  } catch (error) {
    return unscored("verifier-failed", { evidence: { verifier: verifier.name, message: error instanceof Error ? error.message : String(error) } });
  }
}
