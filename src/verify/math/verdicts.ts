/**
 * From the two stages to a verdict: one table, with a row for every pair of what extraction and comparison can give, and
 * for both states of the reference. docs/verifiers.md shows it; nothing else decides a verdict of `math`.
 */
import type { RejectReason } from "../contract.js";
import type { ExtractFault } from "./extract-types.js";
import type { ComparisonKind } from "./types.js";

/** The state of the reference: one that cannot be read is refused when the data loads; should it come this far, it is never paid. */
export type ReferenceState = "read" | "unreadable";
/** What the first stage gave: an answer, why there is none, or one that the response's budget may have cut. */
export type ExtractionKind = "found" | "cut-off" | ExtractFault;
/** What the second stage gave; `none` where it was not asked. */
export type ComparedKind = ComparisonKind | "none";

/** The verdict of a pair: `accept`, the reason of a reject, or the fault of ours that leaves it unscored. */
export type Outcome =
  | { readonly kind: "accept" }
  | { readonly kind: "reject"; readonly reason: RejectReason }
  | { readonly kind: "unscored"; readonly reason: "bad-reference" };

export const referenceStates: readonly ReferenceState[] = ["read", "unreadable"];
export const extractionKinds: readonly ExtractionKind[] = ["found", "cut-off", "no-answer", "ambiguous", "unfinished-thinking", "unclosed", "format"];
export const comparedKinds: readonly ComparedKind[] = ["equal", "different", "unsupported", "out-of-steps", "none"];

const no = (reason: RejectReason): Outcome => ({ kind: "reject", reason });
const all = (outcome: Outcome): { readonly [compared in ComparedKind]: Outcome } => ({
  equal: outcome,
  different: outcome,
  unsupported: outcome,
  "out-of-steps": outcome,
  none: outcome,
});
const badReference: Outcome = { kind: "unscored", reason: "bad-reference" };

/** Verdicts where the reference was read: [extraction][comparison]. */
const ofRead: { readonly [extraction in ExtractionKind]: { readonly [compared in ComparedKind]: Outcome } } = {
  found: {
    equal: { kind: "accept" },
    different: no("wrong"),
    // The reference was read, so what is not understood is the response's.
    unsupported: no("unreadable"),
    "out-of-steps": no("over-budget"),
    // An answer without a comparison is not known to be right.
    none: no("unreadable"),
  },
  // Without an answer a comparison says nothing, whatever it says.
  "cut-off": all(no("truncated")),
  "no-answer": all(no("no-answer")),
  ambiguous: all(no("ambiguous")),
  "unfinished-thinking": all(no("unfinished-thinking")),
  unclosed: all(no("no-answer")),
  format: all(no("format")),
};

/** The verdict of a triple. */
export function outcomeOf(reference: ReferenceState, extraction: ExtractionKind, compared: ComparedKind): Outcome {
  return reference === "unreadable" ? badReference : ofRead[extraction][compared];
}
