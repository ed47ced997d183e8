/** What a reward of one's own gives for an answer, read as a verdict: a number on any scale, true or false, nothing, or an object that says more. */
import { z } from "zod";
import type { Json } from "../../core/json.js";
import { inWords } from "../../core/json-lines.js";
import { accept, type Finding, partial, reject, unscored, type Verdict } from "../../core/verdict.js";

/** Options that all rewards of one's own have. */
export const rewardOptions = z.strictObject({
  range: z
    .tuple([z.number(), z.number()])
    .refine(([low, high]) => low < high, "the first number must be below the second")
    .default([0, 1])
    .describe(
      "What counts as wrong and what as right: a reward up to the first number is a reject, from the second on an accept. Training takes the reward as it is.",
    ),
});
export type Range = z.output<typeof rewardOptions>["range"];

/** Longest text that a verdict carries of what a reward said. */
const longestEvidence = 500;

/**
 * The verdict of a reward's result. A number is mapped from `range` to a score between 0 and 1, and kept as `reward` where
 * that differs. What is missing, not finite or of no form that is known is unscored, never 0.
 */
export function verdictOf(result: unknown, range: Range, also: Finding = {}): Verdict {
  if (result === null || result === undefined) return unscored("no-score", also);
  if (typeof result === "boolean") return result ? accept(also) : reject("wrong", also);
  if (typeof result === "number") return ofNumber(result, range, also, "wrong");
  if (typeof result !== "object" || Array.isArray(result)) return malformed(`a reward gave ${inWords(result as Json)}`, also);
  return ofObject(result as { readonly [name: string]: Json | undefined }, range, also);
}

function ofNumber(value: number, [low, high]: Range, also: Finding, reason: string): Verdict {
  if (!Number.isFinite(value)) return unscored("not-finite", { ...also, evidence: { ...also.evidence, value: String(value) } });
  const score = (value - low) / (high - low);
  const own = (of: number): Finding => (value === of ? also : { ...also, reward: value });
  if (value >= high || score >= 1) return accept(own(1));
  if (value <= low || score <= 0) return reject(reason, own(0));
  return partial(score, own(score));
}

const known = ["reward", "score", "kind", "reason", "unscored", "parts", "evidence"];

function ofObject(result: { readonly [name: string]: Json | undefined }, range: Range, also: Finding): Verdict {
  const { kind, reason } = result;
  const value = result.reward === undefined ? result.score : result.reward;
  const finding = findingOf(result, also);
  const text = typeof reason === "string" && reason !== "" ? reason : undefined;
  if (typeof finding === "string") return malformed(finding, also);
  if (typeof result.unscored === "string") return unscored(result.unscored || "no-score", finding);
  if (kind === "unscored") return unscored(text ?? "no-score", finding);
  if (kind === "accept" || kind === "reject") {
    if (value !== undefined && typeof value !== "number") return malformed(`its reward is ${inWords(value as Json)}, not a number`, finding);
    if (value !== undefined && !Number.isFinite(value)) return ofNumber(value, range, finding, "wrong");
    const own = value === undefined || value === (kind === "accept" ? 1 : 0) ? finding : { ...finding, reward: value };
    return kind === "accept" ? accept(own) : reject(text ?? "wrong", own);
  }
  if (kind !== undefined && kind !== "partial") return malformed(`its kind is ${inWords(kind)}, not accept, reject, partial or unscored`, finding);
  if (value === null) return unscored(text ?? "no-score", finding);
  if (typeof value === "boolean") return value ? accept(finding) : reject(text ?? "wrong", finding);
  if (typeof value === "number") return ofNumber(value, range, finding, text ?? "wrong");
  return malformed(value === undefined ? "it has neither reward nor score" : `its reward is ${inWords(value)}, not a number`, finding);
}

/** Parts and evidence as they are given; what else stands in the object joins them by its kind. */
function findingOf(result: { readonly [name: string]: Json | undefined }, also: Finding): Finding | string {
  const parts: { [name: string]: number } = { ...also.parts };
  const evidence: { [name: string]: Json } = { ...also.evidence };
  for (const [name, value] of Object.entries((result.parts ?? {}) as object)) {
    if (typeof value !== "number" || !Number.isFinite(value)) return `its part ${name} is ${inWords(value as Json)}, not a number`;
    parts[name] = value;
  }
  Object.assign(evidence, result.evidence);
  for (const [name, value] of Object.entries(result)) {
    if (known.includes(name) || value === undefined || value === null) continue;
    if (typeof value === "number" && Number.isFinite(value)) parts[name] = value;
    else evidence[name] = typeof value === "string" ? value.slice(0, longestEvidence) : typeof value === "number" ? String(value) : value;
  }
  return { ...also, ...(Object.keys(parts).length > 0 && { parts }), ...(Object.keys(evidence).length > 0 && { evidence }) };
}

function malformed(message: string, also: Finding): Verdict {
  return unscored("malformed", { ...also, evidence: { ...also.evidence, message } });
}
