/** A verifier is tried before any work: one that cannot judge would leave a whole run without scores. */
import { ConfigError } from "../core/errors.js";
import type { Problem } from "../core/problem.js";
import { judge, type Verifier } from "./contract.js";

/** Tries of a program outside, which may fail now and then. */
const tries = 3;
/** What a reward itself may leave without a score, on purpose. */
const meant = ["no-score", "no-reference"];

/** Any text gets a verdict: asked of the empty response. Throws ConfigError where it fails, or a program outside gives nothing. */
export async function refuseUnlessTotal(problem: Problem, verifier: Verifier): Promise<void> {
  const { external, deterministic, needsReference = true } = verifier;
  if ((deterministic !== true && !external) || (problem.reference.answer === undefined && needsReference)) return;
  for (let attempt = 1; ; attempt++) {
    const before = external?.faults ?? 0;
    const verdict = await judge(verifier, problem, "");
    if (verdict.kind !== "unscored" || meant.includes(verdict.reason)) return;
    if (external === undefined && verdict.reason !== "verifier-failed") return;
    const failed = external !== undefined && external.faults > before;
    if (failed && attempt < tries) continue;
    await external?.close();
    throw new ConfigError({
      place: `verifier ${verifier.name}`,
      cause: `it fails on an empty response (${verdict.evidence?.message ?? verdict.reason})`,
      mend: external ? "let it give a number, or null, for any text (docs/rewards.md)" : "let it give true, false or a verdict for any text",
    });
  }
}
