/** Reading: a text as a value, whole or not at all. Total, and bounded by its budget. */
import { exceptions, named, undeclared, unnamed, unremarked, withConditions, withOneLetter } from "./clauses.js";
import { Cursor, type Spelling, Unreadable } from "./cursor.js";
import { entry, isSeparator, takeSeparator } from "./entry.js";
import type { Policies } from "./policies.js";
import { type Settled, settle, spelling } from "./settle.js";
import { behindLetter, isOrdinal, phrase, placeOf } from "./texts.js";
import type { Token } from "./token.js";
import { tokenize } from "./tokenize.js";
import { type Budget, OutOfSteps, type Reading, type Value } from "./types.js";
import { asValue } from "./value.js";

export { spell } from "./spell.js";

/** Characters of an answer that are read. */
const longest = 20_000;

/** What a text says as an answer. */
export function read(text: string, _policies: Policies, budget: Budget): Reading {
  if (text.length > longest) return { kind: "over-budget", reason: `it is longer than ${longest} characters`, tokens: text.trim() };
  const raw = tokenize(text);
  const settled = settle(raw, true);
  const tokens = spelling(settled.tokens);
  if (tokens === "") return { kind: "unsupported", reason: "nothing stands there", at: 0, tokens };
  try {
    budget.spend(Math.ceil(text.length / 16));
    return readTokens(raw, settled, tokens, budget);
  } catch (error) {
    if (error instanceof OutOfSteps) return { kind: "over-budget", reason: error.message, tokens };
    throw error;
  }
}

/** Whether two readings are spelled the same, formatting aside. Nothing is identical to a text that says nothing. */
export const identical = (a: Reading, b: Reading): boolean => a.tokens !== "" && a.tokens === b.tokens;

const usual: Spelling = { words: "unit", letters: "variable" };

function readTokens(raw: readonly Token[], settled: Settled, tokens: string, budget: Budget): Reading {
  const special = phrase(settled.tokens);
  const first = parse(settled.tokens, budget, usual);
  if ((special === undefined || special.kind === "text") && (first.value === undefined || isConditional(settled.tokens))) {
    const value = inside(settled.tokens, budget);
    if (value !== undefined) {
      // Beside an answer that declares no letter, the letter is the one that was chosen.
      const declared = undeclared(settled.tokens);
      const chosen = declared && withOneLetter(declared) !== declared.tokens ? parse(declared.tokens, budget, usual).value : undefined;
      return { kind: "value", value, others: [chosen, first.value].filter((other) => other !== undefined), tokens };
    }
  }
  const values: Value[] = special === undefined ? [] : [special];
  if (first.value !== undefined) values.push(first.value);
  const also = (other: readonly Token[], spelled: Spelling): void => {
    const { value } = parse(other, budget, spelled);
    if (value !== undefined) values.push(value);
  };
  // "(D) 17" is 17 as well.
  if (special?.kind === "choice" && special.text !== "") also(behindLetter(settled.tokens), usual);
  const place = placeOf(settled.tokens);
  if (place !== undefined) values.push(place);
  if (settled.grouped) also(settle(raw, false).tokens, usual);
  if (first.met.has("words")) also(settled.tokens, { ...usual, words: "product" });
  if (first.met.has("letters")) also(settled.tokens, { ...usual, letters: "unit" });
  if (first.met.has("counts")) also(settled.tokens, { ...usual, counts: true });
  const [value, ...others] = values;
  if (value !== undefined) return { kind: "value", value, others, tokens };
  if (isWordy(settled.tokens)) return { kind: "value", value: { kind: "text", text: plainText(settled.tokens) }, others: [], tokens };
  return { kind: "unsupported", reason: first.reason, at: first.at, tokens };
}

/** A list that may be a value and where its parameters live. */
const isConditional = (tokens: readonly Token[]): boolean => tokens.some(({ kind, text }) => kind === "sign" && text === "∈") && tokens.length > 4;

/** The value that words around it name or whose parameters they declare, and that cannot be read with them. */
function inside(tokens: readonly Token[], budget: Budget, depth = 0): Value | undefined {
  const read = (some: readonly Token[] | undefined): Value | undefined => {
    if (some === undefined || some.length === 0) return undefined;
    const special = phrase(some);
    if (special !== undefined && special.kind !== "text") return special;
    return parse(some, budget, usual).value ?? (depth < 3 ? inside(some, budget, depth + 1) : undefined) ?? special;
  };
  const declared = undeclared(tokens);
  if (declared !== undefined) return read(withOneLetter(declared));
  for (const right of named(tokens)) {
    const { value } = parse(right, budget, usual);
    if (value !== undefined) return value;
  }
  const left = exceptions(tokens);
  if (left !== undefined) return allBut(read(left));
  return read(unremarked(tokens)) ?? read(unnamed(tokens)) ?? (depth === 0 ? read(withConditions(tokens)) : undefined);
}

/** ℝ without a number or several. */
function allBut(value: Value | undefined): Value | undefined {
  const bare = value?.kind === "assignment" ? value.value : value;
  const items = bare === undefined ? [] : bare.kind === "list" || bare.kind === "set" ? bare.items : [bare];
  const without = items.flatMap((item) => (item.kind === "number" ? [item.expression] : []));
  if (items.length === 0 || without.length !== items.length) return undefined;
  return { kind: "intervals", parts: [{ low: { closed: false }, high: { closed: false } }], points: [], without };
}

interface Parsed {
  readonly value?: Value;
  readonly reason: string;
  readonly at: number;
  readonly met: ReadonlySet<"words" | "letters" | "counts">;
}

function parse(tokens: readonly Token[], budget: Budget, spelled: Spelling): Parsed {
  const cursor = new Cursor(tokens, budget, spelled);
  try {
    return { value: whole(cursor), reason: "", at: 0, met: cursor.met };
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    return { reason: error.reason, at: error.at, met: cursor.met };
  }
}

/** Entries of the whole answer; every token belongs to one. */
function whole(c: Cursor): Value {
  const items = [asValue(entry(c))];
  let word: "and" | "or" | undefined;
  while (isSeparator(c.peek()) || c.isSign("\\\\")) {
    if (!c.takeSign("\\\\")) word = takeSeparator(c) ?? word;
    items.push(asValue(entry(c)));
  }
  if (!c.ended) c.fail(`“${c.peek()?.text}” is left over`);
  const [only] = items as [Value];
  return items.length === 1 ? only : { kind: "list", items, ...(word !== undefined && { word }) };
}

/** Whether there is a word of a language in it. */
const isWordy = (tokens: readonly Token[]): boolean => tokens.some(({ kind, text }) => kind === "word" && text.length > 2);

function plainText(tokens: readonly Token[]): string {
  return spelling(tokens.filter((token, i) => !isOrdinal(token, tokens[i - 1]))).toLowerCase();
}
