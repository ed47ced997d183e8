/**
 * The verifier `math`: whether the answer that a response commits itself to is the reference answer, as mathematics.
 *
 * Two stages, each with a typed result: extraction (extract.ts) says which text is the answer, comparison (compare.ts) says
 * equal, different, unsupported or out of steps. A table (verdicts.ts) makes a verdict of the pair. What can be argued about
 * are policies, which are options and so part of the verifier's identity. Work is bounded by steps, not by a clock.
 */
import { z } from "zod";
import { hashJson, type Json } from "../../core/json.js";
import { parseOptions } from "../../core/options.js";
import { accept, reject, unscored, type Verdict } from "../../core/verdict.js";
import type { Verifier } from "../contract.js";
import { placeSchema, thinkingSchema } from "../extract.js";
import { compare } from "./compare.js";
import { extractAnswer } from "./extract.js";
import { unwrapped } from "./extract-text.js";
import type { Extraction } from "./extract-types.js";
import { policySchema } from "./policies.js";
import { read, spell } from "./read.js";
import { Budget, type Comparison, type Reading } from "./types.js";
import { type ExtractionKind, outcomeOf } from "./verdicts.js";

export const mathOptions = z.strictObject({
  from: placeSchema.optional().describe("Where the answer stands; absent: wherever it is committed."),
  kind: z
    .enum(["response", "answer", "auto"])
    .default("response")
    .describe("Whether the text is a response in which the answer is looked for, the answer itself, or either, told by what stands in it."),
  thinking: thinkingSchema.default("tags").describe("How thinking parts are known; no answer is read in them."),
  truncated: z.enum(["reject", "read"]).default("reject").describe("Whether a response that was cut off by its budget can be right."),
  reference_after: z.string().min(1).optional().describe("The reference is a text with the answer behind the last such marker (#### in GSM8K)."),
  policies: policySchema.prefault({}).describe("What can be argued about, one by one."),
  steps: z.int().min(1000).max(100_000_000).default(400_000).describe("Work that one comparison may take; what needs more is over-budget."),
});
export type MathOptions = z.output<typeof mathOptions>;

const longestEvidence = 200;
/** References that are kept as read: a run asks about the same ones again and again. */
const mostKept = 4096;

/** The reference as read, or why it is refused. */
type ReferenceRead = { readonly reading: Reading; readonly spelling: string; readonly fault?: undefined } | { readonly fault: string };

/** The verifier `math`, with its options. */
export function math(options: z.input<typeof mathOptions> = {}): Verifier {
  const resolved = parseOptions(mathOptions, options, "math()");
  const judge = new Judge(resolved);
  return {
    name: "math",
    version: "3",
    options: resolved as unknown as { readonly [name: string]: Json },
    deterministic: true,
    checkReference: (reference) => judge.reference(reference).fault,
    verify: ({ reference, response, truncated }) => judge.verdict(reference, response, truncated),
    extract: (response) => judge.answer(response),
    same: (a, b) => judge.same(a, b),
    locate(response) {
      const found = judge.extracted(response);
      return found.kind === "found" ? found.span : undefined;
    },
  };
}

class Judge {
  private readonly kept = new Map<Json, ReferenceRead>();
  private readonly policiesHash: string;

  constructor(private readonly options: MathOptions) {
    this.policiesHash = hashJson(options.policies as unknown as Json).slice(0, 8);
  }

  extracted(text: string): Extraction {
    const { kind, thinking, from, policies } = this.options;
    return extractAnswer(text, {
      kind,
      thinking,
      ...(from !== undefined && { from }),
      committed: policies["require-committed-answer"] === "yes",
      unfinished: policies["unfinished-thinking"] === "read",
      unclosed: policies["unclosed-box"] === "read",
    });
  }

  private read(text: string): Reading {
    return read(text, this.options.policies, new Budget(this.options.steps));
  }

  private compare(reference: Reading, answer: Reading): Comparison {
    return compare(reference, answer, this.options.policies, new Budget(this.options.steps));
  }

  reference(reference: Json): ReferenceRead {
    const kept = this.kept.get(reference);
    if (kept !== undefined) return kept;
    const fresh = this.readReference(reference);
    if (this.kept.size >= mostKept) this.kept.delete(this.kept.keys().next().value as Json);
    this.kept.set(reference, fresh);
    return fresh;
  }

  private readReference(reference: Json): ReferenceRead {
    if (typeof reference === "number" && !(Number.isFinite(reference) && (!Number.isInteger(reference) || Number.isSafeInteger(reference))))
      return { fault: `the number ${reference} is not exact; write it as text` };
    if (typeof reference !== "string" && typeof reference !== "number") return { fault: `a text is needed, got ${JSON.stringify(reference)?.slice(0, 40)}` };
    const whole = String(reference);
    const marker = this.options.reference_after;
    const from = marker === undefined ? 0 : whole.lastIndexOf(marker);
    if (from < 0) return { fault: `${JSON.stringify(marker)} does not occur in it` };
    const text = whole.slice(from + (marker?.length ?? 0)).trim();
    if (text === "") return { fault: "it is empty" };
    const reading = this.ofReference(text);
    const spelled = JSON.stringify(text.slice(0, 60));
    if (reading.kind !== "value") return { fault: `${spelled} cannot be read (${reading.reason})` };
    // What cannot even be compared with itself would reject every answer.
    const itself = this.compare(reading, reading);
    return itself.kind === "equal" ? { reading, spelling: spell(reading) } : { fault: `${spelled} cannot be compared (${itself.reason})` };
  }

  /** A reference is an answer; one that is a whole solution has its answer where a response would. */
  private ofReference(text: string): Reading {
    const whole = this.read(unwrapped(text));
    if (isMathematical(whole)) return whole;
    const found = extractAnswer(text, { kind: "auto", thinking: "none", committed: true, unfinished: false, unclosed: false });
    if (found.kind === "none") return whole;
    const readings = found.texts.map((each) => this.read(each));
    return readings.find(isMathematical) ?? (found.rule === "whole" ? whole : (readings[0] as Reading));
  }

  verdict(reference: Json, response: string, truncated: boolean): Verdict {
    const { policiesHash, options } = this;
    const known = this.reference(reference);
    if (known.fault !== undefined) return unscored("bad-reference", { evidence: { fault: known.fault } });
    const found = this.extracted(response);
    const cut = truncated && (options.truncated === "reject" || (found.kind === "found" && found.atEnd));
    const kind: ExtractionKind = cut ? "cut-off" : found.kind === "found" ? "found" : found.fault;
    if (kind !== "found" || found.kind !== "found") {
      const why: { readonly [name: string]: string } =
        found.kind === "found" ? { text: found.texts[0].slice(0, longestEvidence), rule: found.rule } : { why: found.why };
      return verdictOf(kind, "none", { expected: known.spelling, ...why, policies: policiesHash });
    }
    const { reading, text, comparison } = this.compared(known.reading, found.texts);
    return verdictOf(kind, comparison.kind, {
      expected: known.spelling,
      text: text.slice(0, longestEvidence),
      rule: found.rule,
      span: [found.span.start, found.span.end],
      ...(reading.kind === "value" && { read: spell(reading).slice(0, longestEvidence) }),
      decided: comparison.rule,
      why: comparison.reason.slice(0, longestEvidence),
      policies: policiesHash,
    });
  }

  /** The comparison with the first spelling of the answer that is more than words; with all of them where none is. */
  private compared(
    reference: Reading,
    texts: readonly [string, ...string[]],
  ): { readonly reading: Reading; readonly text: string; readonly comparison: Comparison } {
    const readings = texts.map((text) => ({ text, reading: this.read(text) }));
    const found = readings.find(({ reading }) => isMathematical(reading));
    const tried = found === undefined ? readings : [found];
    const results = tried.map((each) => ({ ...each, comparison: this.compare(reference, each.reading) }));
    return results.find(({ comparison }) => comparison.kind === "equal") ?? (results[0] as (typeof results)[number]);
  }

  /** The committed answer in a standard spelling; undefined where there is none or it cannot be read. */
  answer(response: string): string | undefined {
    const found = this.extracted(response);
    if (found.kind === "none") return undefined;
    const readings = found.texts.map((text) => this.read(text));
    const reading = readings.find(isMathematical) ?? readings[0];
    return reading?.kind === "value" ? spell(reading) : undefined;
  }

  same(a: string, b: string): boolean {
    if (a === b) return true;
    const [left, right] = [this.read(a), this.read(b)];
    // Some policies let the reference's side have more; between two answers neither side is it.
    return this.compare(left, right).kind === "equal" && this.compare(right, left).kind === "equal";
  }
}

const isMathematical = (reading: Reading): boolean => reading.kind === "value" && reading.value.kind !== "text";

function verdictOf(extraction: ExtractionKind, compared: Comparison["kind"] | "none", evidence: { readonly [name: string]: Json }): Verdict {
  const outcome = outcomeOf("read", extraction, compared);
  if (outcome.kind === "accept") return accept({ evidence });
  return outcome.kind === "reject" ? reject(outcome.reason, { evidence }) : unscored(outcome.reason, { evidence });
}
