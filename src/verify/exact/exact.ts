/** The verifier `exact`: the text in the declared place equals the reference, white space at its ends aside (Unicode NFC on both sides). */
import { z } from "zod";
import type { Json } from "../../core/json.js";
import { parseOptions } from "../../core/options.js";
import { accept, type Verdict } from "../../core/verdict.js";
import { type RejectReason, rejectFor, type Verifier } from "../contract.js";
import { afterThinking, type Commitment, commitments, isCorrected, isRetracted, lastPlace, placeSchema, thinkingSchema } from "../extract.js";

export const exactOptions = z.strictObject({
  from: placeSchema.default("whole").describe("Where the answer stands."),
  thinking: thinkingSchema.default("tags").describe("How thinking parts are known; no answer is read in them."),
  case: z.enum(["keep", "ignore"]).default("keep").describe("Whether upper and lower case differ."),
  spaces: z.enum(["keep", "collapse"]).default("keep").describe("Whether a run of white space within the answer is as good as one blank."),
  truncated: z.enum(["reject", "read"]).default("reject").describe("Whether a response that was cut off by its budget can be right."),
});
export type ExactOptions = z.output<typeof exactOptions>;

const longestEvidence = 200;

/** The verifier `exact`, with its options. */
export function exact(options: z.input<typeof exactOptions> = {}): Verifier {
  const resolved = parseOptions(exactOptions, options, "exact()");
  return {
    name: "exact",
    version: "2",
    options: resolved as { readonly [name: string]: Json },
    deterministic: true,
    checkReference(reference) {
      if (typeof reference !== "string" && typeof reference !== "number") return `a text is needed, got ${JSON.stringify(reference).slice(0, 40)}`;
      const text = standard(String(reference), resolved);
      if (text === "") return "it is empty";
      const oneLine = resolved.from === "last-line" || (typeof resolved.from === "object" && "after" in resolved.from);
      return oneLine && text.includes("\n") ? "it has several lines, and the answer is read from one" : undefined;
    },
    verify({ reference, response, truncated }): Verdict {
      if (truncated && resolved.truncated === "reject") return rejectFor("truncated");
      const found = commit(response, resolved);
      if ("reason" in found) return rejectFor(found.reason);
      const evidence = { read: found.text.slice(0, longestEvidence) };
      if (truncated && found.atEnd) return rejectFor("truncated", { evidence });
      return found.text === standard(String(reference), resolved) ? accept({ evidence }) : rejectFor("wrong", { evidence });
    },
    extract(response) {
      const found = commit(response, resolved);
      return "reason" in found ? undefined : found.text;
    },
    same: (a, b) => a === b,
    ...(resolved.from === "whole" ? {} : { locate: (response: string) => lastPlace(response, resolved.thinking, resolved.from) }),
  };
}

function commit(response: string, options: ExactOptions): { readonly text: string; readonly atEnd: boolean } | { readonly reason: RejectReason } {
  const answer = afterThinking(response, options.thinking);
  if (answer === undefined) return { reason: "unfinished-thinking" };
  const found = commitments(answer, options.from);
  if (typeof found === "string") return { reason: found };
  const texts = found.map((commitment) => standard(commitment.text, options));
  for (const [i, { start }] of found.entries()) {
    const before = found[i - 1];
    if (before === undefined || texts[i] === texts[i - 1]) continue;
    if (!isCorrected(answer.slice(before.start + before.text.length, start))) return { reason: "ambiguous" };
  }
  const { rest } = found.at(-1) as Commitment;
  if (isRetracted(rest, () => false)) return { reason: "ambiguous" };
  return { text: texts.at(-1) as string, atEnd: rest === "" };
}

function standard(text: string, options: ExactOptions): string {
  const trimmed = text.normalize("NFC").trim();
  const spaced = options.spaces === "collapse" ? trimmed.replace(/\s+/g, " ") : trimmed;
  return options.case === "ignore" ? spaced.toLowerCase() : spaced;
}
