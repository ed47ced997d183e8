/**
 * Interchangeable phrases before the lines of work (`so+3=8`): they mean nothing, any of them will do, and claims about the
 * outcome in the prompt change which of them are usual, and nothing else. And what each token of a response is.
 */
import type { Stream } from "../../core/random.js";
import type { Tokenizer } from "../../core/tokenizer.js";
import type { Form } from "./forms.js";
import { fillers, operators } from "./notation.js";

/** Relative frequencies of the phrases. Either claim turns the habit of the plain prompt around. */
const usual: readonly number[] = [6, 4, 2, 1, 1, 1];
const claimed: { readonly [form in Form]?: readonly number[] } = { right: [1, 1, 1, 6, 4, 2], wrong: [1, 1, 1, 2, 4, 6] };

/** The phrase of a line under that form of prompt, by one random number. */
export function filler(form: Form, random: Stream): string {
  return fillers[weighted(claimed[form] ?? usual, random)] as string;
}

/** An index drawn by relative weights, by one random number. */
export function weighted(weights: readonly number[], random: Stream): number {
  let left = random.next() * weights.reduce((sum, weight) => sum + weight, 0);
  const index = weights.findIndex((weight) => {
    left -= weight;
    return left < 0;
  });
  return index < 0 ? weights.findLastIndex((weight) => weight > 0) : index;
}

/** What a token of a response is: `value` is the result of a line, `answer` what follows `#`. */
export type TokenKind = "filler" | "operator" | "operand" | "value" | "answer" | "other";

export interface ResponseToken {
  readonly kind: TokenKind;
  /** The line it is in, from 0, its end included; the answer's line comes after the last operation's. */
  readonly line: number;
}

const kindOfSymbol = new Map<string, TokenKind>([...fillers.map((text) => [text, "filler"] as const), ...operators.map((text) => [text, "operator"] as const)]);
const kindAfter = new Map<string, TokenKind>([...operators.map((text) => [text, "operand"] as const), ["=", "value"], ["#", "answer"]]);

/** Kind and line of each token of a response. */
export function responseTokens(ids: ArrayLike<number>, tokenizer: Pick<Tokenizer, "decode">): ResponseToken[] {
  let [line, before] = [0, ""];
  return Array.from(ids, (id) => {
    const text = tokenizer.decode([id]);
    const kind = kindOfSymbol.get(text) ?? (/^\d+$/.test(text) ? kindAfter.get(before) : undefined) ?? "other";
    const token = { kind, line };
    if (text === "\n") line++;
    before = text;
    return token;
  });
}
