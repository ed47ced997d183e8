/**
 * What the numbers of a demonstration say about its claims. One rule for all papers (C26): the 95 % interval of the mean over
 * paired seeds, the wider of the bootstrap's and of Student's t; a claim is shown where that interval lies wholly on its side.
 */
import { type PairedInterval, pairedInterval } from "../evaluate/paired.js";
import type { Claim, Demonstration, SeedNumbers } from "../methods/demonstration.js";

export const outcomes = ["shown", "not shown", "reversed"] as const;
export type Outcome = (typeof outcomes)[number];

export interface JudgedClaim {
  readonly claim: string;
  /** What is compared with what, as a formula: `pass@8: hispo - grpo > 0`. */
  readonly statement: string;
  readonly about?: string;
  /** Mean over the pairs of what the statement has on its left; null: no seed has it. */
  readonly mean: number | null;
  /** 95 %; null: fewer than two pairs. */
  readonly interval: PairedInterval | null;
  /** By seed, in order; null where the seed lacks a number. */
  readonly values: readonly (number | null)[];
  readonly outcome: Outcome;
}

/** Numbers of one arm and seed that a run yielded, by metric. */
export type Results = readonly { readonly seed: number; readonly arms: SeedNumbers }[];

/** Judges every claim. The whole is shown where all are, reversed where one is, and otherwise not shown. */
export function judged(claims: Demonstration["claims"], results: Results): { readonly claims: readonly JudgedClaim[]; readonly outcome: Outcome } {
  const list = Object.entries(claims).map(([name, claim]) => judgedClaim(name, claim, results));
  const all = list.every(({ outcome }) => outcome === "shown");
  return { claims: list, outcome: list.some(({ outcome }) => outcome === "reversed") ? "reversed" : all ? "shown" : "not shown" };
}

function judgedClaim(name: string, claim: Claim, results: Results): JudgedClaim {
  const left = results.map(({ arms }) => leftOf(claim, arms));
  const known = left.filter((value) => value !== undefined);
  const interval = pairedInterval(known) ?? null;
  return {
    claim: name,
    statement: statementOf(claim),
    ...(claim.about === undefined ? {} : { about: claim.about }),
    mean: known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0) / known.length,
    interval,
    values: left.map((value) => value ?? null),
    outcome: interval === null ? "not shown" : outcomeOf(claim, interval, results),
  };
}

/** The difference that a claim is about, of one seed; for ratios arm - ratio x than. */
function leftOf(claim: Claim, arms: SeedNumbers): number | undefined {
  if ("of" in claim) {
    const value = claim.of(arms);
    return value === undefined ? undefined : finite(value - claim.than);
  }
  const value = arms[claim.arm]?.[claim.metric];
  const other = typeof claim.than === "string" ? arms[claim.than]?.[claim.metric] : claim.than;
  if (value === undefined || other === undefined) return undefined;
  return finite(value - ("ratio" in claim ? claim.ratio : 1) * other);
}

const finite = (value: number): number | undefined => (Number.isFinite(value) ? value : undefined);

function outcomeOf(claim: Claim, { low, high }: PairedInterval, results: Results): Outcome {
  switch (claim.kind) {
    case "above":
    case "below": {
      const margin = claim.margin ?? 0;
      const up = claim.kind === "above";
      if (up ? low > margin : high < -margin) return "shown";
      return (up ? high < 0 : low > 0) ? "reversed" : "not shown";
    }
    case "notBelow":
    case "notAbove": {
      const up = claim.kind === "notBelow";
      if (up ? low > -claim.margin : high < claim.margin) return "shown";
      return (up ? high < -claim.margin : low > claim.margin) ? "reversed" : "not shown";
    }
    case "nullDifference":
      if (low > -claim.margin && high < claim.margin) return "shown";
      return low > claim.margin || high < -claim.margin ? "reversed" : "not shown";
    case "atLeastRatio":
    case "atMostRatio": {
      const up = claim.kind === "atLeastRatio";
      if (up ? low > 0 : high < 0) return "shown";
      if (!(up ? high < 0 : low > 0)) return "not shown";
      // Less of the effect than claimed is not the opposite of it.
      const plain = pairedInterval(
        results.flatMap(({ arms }) => leftOf({ ...claim, ratio: up ? Math.min(1, claim.ratio) : Math.max(1, claim.ratio) }, arms) ?? []),
      );
      return plain && (up ? plain.high < 0 : plain.low > 0) ? "reversed" : "not shown";
    }
  }
}

/** A claim as a formula. */
export function statementOf(claim: Claim): string {
  const left = "of" in claim ? `the number of the claim${claim.than === 0 ? "" : ` - ${claim.than}`}` : `${claim.metric}: ${claim.arm}${than(claim)}`;
  switch (claim.kind) {
    case "above":
      return `${left} > ${claim.margin ?? 0}`;
    case "below":
      return `${left} < ${minus(claim.margin ?? 0)}`;
    case "notBelow":
      return `${left} > ${minus(claim.margin)}`;
    case "notAbove":
      return `${left} < ${claim.margin}`;
    case "nullDifference":
      return `|${left}| < ${claim.margin}`;
    case "atLeastRatio":
      return `${left} > 0`;
    case "atMostRatio":
      return `${left} < 0`;
  }
}

const minus = (value: number): string => (value === 0 ? "0" : `-${value}`);

function than(claim: Exclude<Claim, { readonly of: unknown }>): string {
  if (typeof claim.than === "number") return claim.than === 0 ? "" : ` - ${claim.than}`;
  return ` - ${"ratio" in claim ? `${claim.ratio} x ` : ""}${claim.than}`;
}
