/** How chains are written. Problem `5+3*4-2` (worked from left to right), solution one line an operation (`+3=8`), then `#` and the answer. */
import { alphabetTokenizer } from "../../core/alphabet.js";
import type { Tokenizer } from "../../core/tokenizer.js";

export const operators = ["+", "-", "*"] as const;
export type Operator = (typeof operators)[number];

export interface Operation {
  readonly operator: Operator;
  readonly operand: number;
}

export interface Chain {
  readonly start: number;
  readonly operations: readonly Operation[];
}

/** a ∘ b modulo m, from 0 to m − 1. */
export function apply(operator: Operator, a: number, b: number, modulus: number): number {
  const value = operator === "+" ? a + b : operator === "-" ? a - b : a * b;
  return ((value % modulus) + modulus) % modulus;
}

export function chainText({ start, operations }: Chain): string {
  return start + operations.map(({ operator, operand }) => operator + operand).join("");
}

/** The inverse of `chainText`; undefined for other text. */
export function readChain(text: string): Chain | undefined {
  if (!/^\d{1,4}(?:[+*-]\d{1,4})*$/.test(text)) return undefined;
  const operations = [...text.matchAll(/([+*-])(\d+)/g)].map(([, operator, operand]) => ({ operator: operator as Operator, operand: Number(operand) }));
  return { start: Number.parseInt(text, 10), operations };
}

/** One line of a solution. */
export const lineText = ({ operator, operand }: Operation, result: number): string => `${operator}${operand}=${result}`;

/** The inverse of `lineText`: numbers as they are written, without leading zeros. */
export function readLine(text: string): (Operation & { readonly result: number }) | undefined {
  const match = /^([+*-])(0|[1-9]\d{0,3})=(0|[1-9]\d{0,3})$/.exec(text);
  return match === null ? undefined : { operator: match[1] as Operator, operand: Number(match[2]), result: Number(match[3]) };
}

/** Phrases before lines that mean nothing, one symbol each. */
export const fillers = ["so", "then", "now", "next", "thus", "and"] as const;
const leading = new RegExp(`^(?:${fillers.join("|")})`);

/** A line with or without one of the phrases before it. */
export function readPhrased(text: string): ReturnType<typeof readLine> {
  return readLine(text.replace(leading, ""));
}

/** One symbol a number, so that a line is five tokens and its result is one decision. `more`: further symbols. */
export function chainTokenizer(modulus: number, more: readonly string[] = []): Tokenizer {
  return alphabetTokenizer([...Array.from({ length: modulus }, (_, i) => String(i)), ...operators, "=", "#", "\n", ...more]);
}
