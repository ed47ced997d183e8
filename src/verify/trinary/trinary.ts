/**
 * The verifier `trinary` (P29 PIRL): right in the demanded form 1, right in another form β, wrong 0, so that a policy is
 * neither paid for form alone nor taught that a right answer in the wrong form is as bad as a wrong one.
 *
 * A strict and a lenient verifier judge the same answer; with equal ones the reward is binary. In the paper's abstract β is
 * dynamic; the schedule is our choice and the method's affair (`middleLevel`), since a verdict depends on no other answer.
 */
import { z } from "zod";
import type { Json } from "../../core/json.js";
import { parseOptions } from "../../core/options.js";
import { accept, type Finding, partial, reject, scoreOf, type Verdict } from "../../core/verdict.js";
import { namedVerifier } from "../catalogue.js";
import { judge, type Verifier, verifierId } from "../contract.js";

const inner = (name: string, options: Record<string, string | boolean>, about: string) =>
  z
    .strictObject({ name: z.string().min(1).describe("A verifier."), options: z.record(z.string(), z.json()).default({}).describe("Its options.") })
    .prefault({ name, options })
    .describe(about);

export const trinaryOptions = z.strictObject({
  strict: inner("math", { from: "boxed" }, "Judges the answer in the demanded form."),
  lenient: inner("math", { committed: false }, "Judges the answer in any form."),
  middle: z.number().gt(0).lt(1).default(0.5).describe("What a right answer in another form earns: β."),
});
export type TrinaryOptions = z.output<typeof trinaryOptions>;

/** The verifier `trinary` of its options. Its parts `strict` and `content` are 1 or 0. Throws ConfigError for verifiers that cannot be made. */
export async function trinary(options: z.input<typeof trinaryOptions> = {}): Promise<Verifier> {
  const resolved = parseOptions(trinaryOptions, options, "trinary()");
  const make = async (which: "strict" | "lenient"): Promise<Verifier> =>
    (await namedVerifier(resolved[which].name, resolved[which].options as Json, `trinary(), option ${which}`)).verifier;
  return trinaryOf(await make("strict"), await make("lenient"), resolved);
}

/** A trinary verifier of two that are made already. */
export function trinaryOf(strict: Verifier, lenient: Verifier, options: Pick<TrinaryOptions, "middle"> & object): Verifier {
  const { middle } = options;
  return {
    name: "trinary",
    version: `1/${verifierId(strict)}/${verifierId(lenient)}`,
    options: options as unknown as { readonly [name: string]: Json },
    deterministic: strict.deterministic === true ? lenient.deterministic : strict.deterministic,
    needsReference: strict.needsReference !== false || lenient.needsReference !== false,
    checkReference: (reference) => strict.checkReference(reference) ?? lenient.checkReference(reference),
    async verify({ problem, response, truncated }) {
      const [form, content] = await Promise.all([judge(strict, problem, response, truncated), judge(lenient, problem, response, truncated)]);
      return threefold(form, content, middle);
    },
    ...(lenient.extract && lenient.same && { extract: lenient.extract.bind(lenient), same: lenient.same.bind(lenient) }),
    ...(lenient.locate && { locate: lenient.locate.bind(lenient) }),
  };
}

function threefold(strict: Verdict, lenient: Verdict, middle: number): Verdict {
  // A fault of ours in either leaves open which of the three it is, unless the strict one accepted.
  if (strict.kind === "unscored") return strict;
  const right = scoreOf(strict) === 1;
  if (!right && lenient.kind === "unscored") return lenient;
  const content = right || scoreOf(lenient) === 1;
  const evidence = { strict: { ...reasonIn(strict), ...strict.evidence }, lenient: { ...reasonIn(lenient), ...lenient.evidence } };
  const finding: Finding = { parts: { strict: right ? 1 : 0, content: content ? 1 : 0 }, evidence };
  if (right) return accept(finding);
  return content ? partial(middle, finding) : reject("reason" in lenient ? lenient.reason : "wrong", finding);
}

const reasonIn = (verdict: Verdict): { readonly reason?: string } => ("reason" in verdict ? { reason: verdict.reason } : {});

/**
 * β for a share of answers in the demanded form (our choice): min + (max − min) · (1 − share), so that a policy which has not
 * learnt the form yet is still paid for being right, and one that has is held to it.
 */
export function middleLevel(formShare: number, { min = 0.2, max = 0.8 }: { readonly min?: number; readonly max?: number } = {}): number {
  return min + (max - min) * (1 - formShare);
}

/** The running share after a batch (our choice): decay · before + (1 − decay) · now. */
export const runningShare = (before: number, now: number, decay = 0.95): number => decay * before + (1 - decay) * now;
