import type { Json } from "./json.js";

/** What a verifier found, with everything that explains it. */
export interface Finding {
  /** Named parts of a composed verdict (format, answer, length), each a number that its verifier documents. */
  readonly parts?: { readonly [name: string]: number };
  /** What was extracted and how it was read: shown in the view. */
  readonly evidence?: { readonly [name: string]: Json };
  /** What training takes instead of the score: the number of a reward with a scale of its own, whatever its size and sign. */
  readonly reward?: number;
  /** Milliseconds that the judging took; depends on a clock, so it is stored apart and decides nothing. */
  readonly elapsedMs?: number;
}

/**
 * The judgement of one response.
 * `reject` is caused by the response (wrong, unreadable, missing, over a deterministic budget).
 * `unscored` is a fault of ours (worker could not run, judge unreachable, reference unreadable, machine starved):
 * it is never 0 and is left out of means and counts.
 */
export type Verdict =
  | ({ readonly kind: "accept" } & Finding)
  | ({ readonly kind: "reject"; readonly reason: string } & Finding)
  | ({ readonly kind: "partial"; readonly score: number } & Finding)
  | ({ readonly kind: "unscored"; readonly reason: string } & Finding);

export const accept = (finding: Finding = {}): Verdict => ({ kind: "accept", ...finding });
export const reject = (reason: string, finding: Finding = {}): Verdict => ({ kind: "reject", reason, ...finding });
export const unscored = (reason: string, finding: Finding = {}): Verdict => ({ kind: "unscored", reason, ...finding });

/** A verdict with a score strictly between 0 and 1; the ends are `accept` and `reject`, so that one outcome has one form. */
export function partial(score: number, finding: Finding = {}): Verdict {
  if (!(score > 0 && score < 1)) throw new RangeError(`a partial verdict needs a score between 0 and 1, got ${score}; use accept() or reject() for the ends`);
  return { kind: "partial", score, ...finding };
}

/** The number that training takes: the verdict's own reward, else its score; undefined for `unscored`. */
export function rewardOf(verdict: Verdict): number | undefined {
  return verdict.kind === "unscored" ? undefined : (verdict.reward ?? scoreOf(verdict));
}

/** 1, 0, the partial score, or undefined for `unscored`: there is no number for a check that failed to run. */
export function scoreOf(verdict: Verdict): number | undefined {
  switch (verdict.kind) {
    case "accept":
      return 1;
    case "reject":
      return 0;
    case "partial":
      return verdict.score;
    case "unscored":
      return undefined;
  }
}
