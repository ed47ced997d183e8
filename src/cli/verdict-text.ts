import type { Verdict } from "../core/verdict.js";
import type { Colours } from "./output.js";

/** A verdict in a few words, with what the verifier read as the answer (null: nothing). */
export function verdictText(verdict: Verdict, answer: string | null, paint: Colours): string {
  const read = answer === null || answer.includes("\n") ? "" : `, read ${JSON.stringify(answer)}`;
  if (verdict.kind === "accept") return `${paint.green("accept")}${read}`;
  if (verdict.kind === "reject") return `${paint.red("reject")} (${verdict.reason})${read}`;
  return verdict.kind === "partial" ? `partial ${verdict.score}` : `${paint.yellow("unscored")} (${verdict.reason})`;
}
