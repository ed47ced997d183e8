/** A verifier is tried before any work: one that cannot judge would leave a whole run without scores. */
import { ConfigError } from "../core/errors.js";
import type { Problem } from "../core/problem.js";
import type { Verdict } from "../core/verdict.js";
import { judge, type Verifier } from "./contract.js";
import { causeOf } from "./faults.js";

/** Tries of a program outside, which may fail now and then. */
const tries = 3;
/** Faults of the verifier itself. */
const ofVerifier = ["verifier-failed", "starved", "worker-lost"];
/** What a reward itself may leave without a score, on purpose. */
const meant = ["no-score", "no-reference"];

/** Asks of a verifier what it is asked in the run, where it is asked then. */
type Ask = (problem: Problem, response: string, truncated: boolean) => Promise<Verdict>;

/** Any text gets a verdict: asked of the empty response. Throws ConfigError where it fails or does not end, or a program outside gives nothing. */
export async function refuseUnlessTotal(
  problem: Problem,
  verifier: Verifier,
  ask: Ask = (given, response, truncated) => judge(verifier, given, response, truncated),
): Promise<void> {
  const { external, deterministic, needsReference = true } = verifier;
  if ((deterministic !== true && !external) || (problem.reference.answer === undefined && needsReference)) return;
  for (let attempt = 1; ; attempt++) {
    const before = external?.faults ?? 0;
    const verdict = await ask(problem, "", false);
    if (verdict.kind !== "unscored" || meant.includes(verdict.reason)) return;
    if (external === undefined && !ofVerifier.includes(verdict.reason)) return;
    const failed = external !== undefined && external.faults > before;
    if (failed && attempt < tries) continue;
    await external?.close();
    const away = verdict.reason === "unreachable";
    throw new ConfigError({
      place: `verifier ${verifier.name}${verdict.evidence?.at === undefined ? "" : `, ${String(verdict.evidence.at)}`}`,
      cause: `${away ? "it cannot be reached" : "it fails on an empty response"} (${causeOf(verdict) ?? verdict.reason})`,
      mend: away
        ? "start the server, or correct its address"
        : external
          ? "let it give a number, or null, for any text (docs/rewards.md)"
          : "let it give true, false or a verdict for any text",
    });
  }
}
