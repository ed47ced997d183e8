/**
 * The verifier `formula` (P30 MedCalc-R1): an answer that follows from a known formula, with the formula stated. A response
 * has `<formula>`, `<inputs>` (name = value, one a line or between commas) and `<answer>`. With ŷ the stated answer and y
 * the reference,
 *
 *     R = 0.1 · form + 0.3 · R_k + 0.6 · R_a
 *     R_k = ½ · [stated formula = known formula] + ½ · [|formula(inputs) − ŷ| ≤ 1e-6 · max(1, |ŷ|)]
 *     R_a = hybrid reward of |ŷ − y| / τ (number/hybrid.ts), τ = 0.05 |y|; exact for `rule` items
 *
 * from the paper's abstract; weights, split and shape are our choice, and so is that every input must be a number of the
 * problem: a value from nowhere earns nothing for being computed with. Formulas are equal if they agree at 20 points
 * within 1e-9, so that rewriting one changes nothing.
 */
import { z } from "zod";
import type { Json } from "../../core/json.js";
import { parseOptions } from "../../core/options.js";
import { randomKey, Stream } from "../../core/random.js";
import { accept, partial, reject, type Verdict } from "../../core/verdict.js";
import { rejectFor, type Verifier, type VerifierInput } from "../contract.js";
import { afterThinking, commitments, thinkingSchema } from "../extract.js";
import { hybridOptions, hybridReward } from "../number/hybrid.js";
import { numbersIn, plainText } from "../number/read.js";
import { type Expression, evaluate, nameOf, namesIn, parseFormula } from "./expression.js";

export const formulaOptions = z.strictObject({
  hybrid: hybridOptions.prefault({}).describe("How near answers are paid."),
  weights: z
    .strictObject({ form: z.number().min(0), knowledge: z.number().min(0), answer: z.number().min(0) })
    .refine(({ form, knowledge, answer }) => form + knowledge + answer > 0, "one of them must be above 0")
    .default({ form: 0.1, knowledge: 0.3, answer: 0.6 })
    .describe("What form, formula and answer weigh."),
  inputs: z.enum(["in-problem", "any"]).default("in-problem").describe("Whether each stated input must be a number of the problem."),
  thinking: thinkingSchema.default("tags").describe("How thinking parts are known; no answer is read in them."),
});
export type FormulaOptions = z.output<typeof formulaOptions>;

const referenceSchema = z.strictObject({
  formula: z.string().describe("The known formula."),
  answer: z.number().describe("The right value."),
  kind: z.enum(["equation", "rule"]).default("equation").describe("`rule`: only the exact value is right."),
});
type Reference = z.output<typeof referenceSchema> & { readonly tree: Expression };

const points = 20;
const mostInputs = 64;

/** The verifier `formula`, with its options. */
export function formula(options: z.input<typeof formulaOptions> = {}): Verifier {
  const resolved = parseOptions(formulaOptions, options, "formula()");
  return {
    name: "formula",
    version: "1",
    options: resolved as unknown as { readonly [name: string]: Json },
    deterministic: true,
    checkReference: (reference) => {
      const read = readReference(reference);
      return typeof read === "string" ? read : undefined;
    },
    verify: (input) => verdictOf(input, resolved),
  };
}

function readReference(reference: Json): Reference | string {
  const found = referenceSchema.safeParse(reference);
  if (!found.success) return '{"formula": "weight / height^2", "answer": 24.2} is needed';
  const tree = parseFormula(found.data.formula);
  return tree === undefined ? `its formula ${JSON.stringify(found.data.formula).slice(0, 60)} cannot be read` : { ...found.data, tree };
}

function verdictOf({ reference, response, problem }: VerifierInput, options: FormulaOptions): Verdict {
  const known = readReference(reference);
  if (typeof known === "string") throw new TypeError(`the reference was not checked: ${known}`);
  const answer = afterThinking(response, options.thinking);
  if (answer === undefined) return rejectFor("unfinished-thinking");
  const [stated, inputs, value] = [inTag(answer, "formula"), inTag(answer, "inputs"), inTag(answer, "answer")];
  const tree = stated === undefined ? undefined : parseFormula(stated);
  const values = inputs === undefined ? undefined : readInputs(inputs);
  const said = value === undefined ? undefined : oneNumber(value);
  const form = stated !== undefined && inputs !== undefined && value !== undefined ? 1 : 0;
  const sameFormula = tree !== undefined && agree(tree, known.tree) ? 1 : 0;
  const grounded = values !== undefined && (options.inputs === "any" || inProblem(values, problem)) ? 1 : 0;
  const computed = tree !== undefined && values !== undefined ? evaluate(tree, values) : Number.NaN;
  const consistent = grounded === 1 && said !== undefined && Math.abs(computed - said) <= 1e-6 * Math.max(1, Math.abs(said)) ? 1 : 0;
  const precision = said === undefined ? 0 : precisionOf(said, known, options);
  const { weights } = options;
  const knowledge = 0.5 * sameFormula + 0.5 * consistent;
  const total = weights.form + weights.knowledge + weights.answer;
  const score = (weights.form * form + weights.knowledge * knowledge + weights.answer * precision) / total;
  const evidence: { [name: string]: Json } = {
    expected: known.answer,
    ...(stated !== undefined && { formula: stated.slice(0, 200) }),
    ...(said !== undefined && { read: said }),
    ...(Number.isFinite(computed) && { computed }),
  };
  const finding = { parts: { form, formula: sameFormula, grounded, consistent, knowledge, answer: precision }, evidence };
  if (score <= 0) return reject(form === 0 ? "format" : "wrong", finding);
  return score >= 1 ? accept(finding) : partial(score, finding);
}

/** What stands between a pair of tags that occurs once. */
function inTag(text: string, name: string): string | undefined {
  const found = commitments(text, { between: [`<${name}>`, `</${name}>`] });
  return typeof found === "string" || found.length !== 1 ? undefined : found[0]?.text;
}

const input =
  /^\s*[-*•]?\s*["']?([\p{L}_][\p{L}\p{N}_ -]{0,80}?)["']?\s*[:=]\s*["']?([-+−]?(?:\d[\d,]*(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?)\s*["']?\s*[\p{L}%/²³^\d.]*\s*$/u;

/** Stated inputs by name; undefined where a line is none, or a name comes twice with another value. */
function readInputs(text: string): Map<string, number> | undefined {
  const found = new Map<string, number>();
  for (const line of text.replace(/[{}]/g, "\n").split(/[\n;]|,(?!\d{3}(?!\d))/)) {
    if (line.trim() === "") continue;
    const match = input.exec(line);
    if (match === null || found.size >= mostInputs) return undefined;
    const [name, value] = [nameOf(match[1] as string), Number((match[2] as string).replaceAll(",", "").replace("−", "-"))];
    if (!Number.isFinite(value) || (found.has(name) && found.get(name) !== value)) return undefined;
    found.set(name, value);
  }
  return found.size === 0 ? undefined : found;
}

const valuesIn = (text: string): number[] =>
  [...numbersIn(plainText(text), { percent: "ignore", currency: "ignore" })].flatMap(({ value }) =>
    typeof value === "string" ? [] : [Number(value.n) / Number(value.d)],
  );

/** Whether each input is a number of the problem; signs aside, which words may have given. */
function inProblem(values: ReadonlyMap<string, number>, { prompt }: VerifierInput["problem"]): boolean {
  const there = new Set(prompt.flatMap(({ content }) => valuesIn(content)).map(Math.abs));
  return [...values.values()].every((value) => there.has(Math.abs(value)));
}

/** The one number of an answer; a unit may follow. */
function oneNumber(text: string): number | undefined {
  const found = [...new Set(valuesIn(text))];
  return found.length === 1 && Number.isFinite(found[0]) ? found[0] : undefined;
}

function precisionOf(said: number, { answer, kind }: Reference, { hybrid }: FormulaOptions): number {
  if (said === answer) return 1;
  const tolerance = kind === "rule" ? 0 : hybrid.relative * Math.abs(answer);
  return tolerance === 0 ? 0 : hybridReward(Math.abs(said - answer) / tolerance, hybrid);
}

/** Whether two formulas of the same quantities agree at random points; where neither has a value a point says nothing. */
function agree(a: Expression, b: Expression): boolean {
  const names = [...namesIn(a)].sort();
  if (names.join() !== [...namesIn(b)].sort().join()) return false;
  // The points are the same for every answer: a verdict depends on nothing else.
  const random = new Stream(randomKey({ seed: 30, purpose: "verify/formula" }));
  let compared = 0;
  for (let i = 0; i < points; i++) {
    const values = new Map(names.map((name) => [name, 0.1 + 9.9 * random.next()]));
    const [x, y] = [evaluate(a, values), evaluate(b, values)];
    if (Number.isNaN(x) && Number.isNaN(y)) continue;
    if (!(Math.abs(x - y) <= 1e-9 * Math.max(1, Math.abs(x), Math.abs(y)))) return false;
    compared++;
  }
  return compared > 0;
}
