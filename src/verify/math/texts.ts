/** Answers that are words, choices and times, told by their tokens. */
import { numberOf } from "./build.js";
import type { Token } from "./token.js";
import type { Value } from "./types.js";
import { combine, isUnit, unitOf } from "./units.js";
import { isFunctionName, numberInWords, partsOfWord, placeInWords, sentenceWords } from "./words.js";

/** The value of an answer of one of these forms; undefined for all others. */
export function phrase(tokens: readonly Token[]): Value | undefined {
  return clock(tokens) ?? circled(tokens) ?? letteredSets(tokens) ?? choice(unbraced(tokens)) ?? words(tokens) ?? wordsAndNumber(tokens);
}

const isSign = (token: Token | undefined, text: string): boolean => token?.kind === "sign" && token.text === text;

/** `\mathbf{(B)} 5` without the braces of what sets its letter. */
const unbraced = (tokens: readonly Token[]): readonly Token[] =>
  tokens[0]?.text === "{" && tokens[1]?.text === "(" && tokens[3]?.text === ")" && tokens[4]?.text === "}"
    ? [...tokens.slice(1, 4), ...tokens.slice(5)]
    : tokens;

/** `5:33`, `12:05:30`, `5:33 PM`: minutes and seconds have two digits. */
function clock(tokens: readonly Token[]): Value | undefined {
  const parts: string[] = [];
  let at = 0;
  while (tokens[at]?.kind === "number" && /^\d{1,2}$/.test((tokens[at] as Token).text)) {
    parts.push((tokens[at] as Token).text);
    at++;
    if (!isSign(tokens[at], ":")) break;
    at++;
  }
  const [hour, ...rest] = parts as [string, ...string[]];
  if (parts.length === 0 || parts.length > 3 || Number(hour) > 24 || rest.some((part) => part.length !== 2 || Number(part) > 59)) return undefined;
  const letters = tokens
    .slice(at)
    .map(({ text }) => text)
    .join("")
    .replaceAll(".", "")
    .toLowerCase();
  if (letters === "o'clock") return { kind: "time", parts };
  if (letters === "") return parts.length > 1 ? { kind: "time", parts } : undefined;
  return letters === "am" || letters === "pm" ? { kind: "time", parts, half: letters } : undefined;
}

/** Events and sets that only have letters, joined by one sign: A ∪ B is B ∪ A. */
function letteredSets(tokens: readonly Token[]): Value | undefined {
  const [, sign] = tokens;
  if (tokens.length < 3 || tokens.length % 2 === 0 || !(isSign(sign, "∪") || isSign(sign, "∩"))) return undefined;
  const isLetter = ({ kind, text }: Token): boolean => kind === "word" && /^[A-Z]$/.test(text);
  if (!tokens.every((token, i) => (i % 2 === 0 ? isLetter(token) : isSign(token, sign?.text as string)))) return undefined;
  const letters = tokens.filter((_, i) => i % 2 === 0).map(({ text }) => text);
  return { kind: "text", text: letters.sort().join(` ${sign?.text} `) };
}

const isCircled = ({ text }: Token): boolean => /^[①-⑳]$/.test(text);

/** Numbered statements: ①②④. */
function circled(tokens: readonly Token[]): Value | undefined {
  const found = tokens.filter(isCircled);
  if (found.length === 0 || tokens.some((token) => !isCircled(token) && !/^(?:[,;、]|and)$/.test(token.text))) return undefined;
  const items = found.map(({ text }): Value => ({ kind: "text", text }));
  return items.length === 1 ? (items[0] as Value) : { kind: "list", items };
}

const letterOf = (token: Token | undefined): string | undefined => (token?.kind === "word" && /^[A-J]$/.test(token.text) ? token.text : undefined);

/** Whether another option follows: "D) or E)". */
const offersAnother = (tokens: readonly Token[]): boolean =>
  tokens.some(
    ({ text }, i) =>
      (text === "or" || text === "and" || text === ",") && letterOf(tokens[i + 1]?.kind === "open" ? tokens[i + 2] : tokens[i + 1]) !== undefined,
  );

/** A letter with the text of its option: `(C) 12`, `C: twelve`, `C.`, `Option C`. */
function choice(tokens: readonly Token[]): Value | undefined {
  if (offersAnother(tokens)) return undefined;
  const [first, second, third] = tokens;
  const named = first?.kind === "word" && /^(?:option|choice|answer)$/i.test(first.text);
  if (named) {
    const inner = choice(tokens.slice(1)) ?? (tokens.length === 2 ? letterOf(second) : undefined);
    return typeof inner === "string" ? { kind: "choice", letter: inner, text: "" } : inner;
  }
  if (first?.kind === "open" && first.text === "(") {
    const letter = letterOf(second);
    if (letter === undefined || third?.kind !== "close" || third.text !== ")") return undefined;
    const rest = tokens.slice(3);
    if (rest.length === 0) return named ? { kind: "choice", letter, text: "" } : undefined;
    const next = rest[0] as Token;
    return next.gap > 0 || isSign(next, ":") || isSign(next, ".") ? { kind: "choice", letter, text: textOf(rest) } : undefined;
  }
  const letter = letterOf(first);
  if (letter === undefined || second === undefined) return undefined;
  const closes = second.kind === "close" && second.text === ")";
  if (!closes && !isSign(second, ":") && !isSign(second, ".")) return undefined;
  const rest = tokens.slice(2);
  if (rest.length === 0) return { kind: "choice", letter, text: "" };
  // "A:B" is a ratio.
  return !closes && rest.length === 1 && rest[0]?.kind === "word" && rest[0].text.length === 1 ? undefined : { kind: "choice", letter, text: textOf(rest) };
}

/** What stands behind the letter of an option. */
export function behindLetter(tokens: readonly Token[]): readonly Token[] {
  const inner = unbraced(tokens);
  const at = inner.findIndex((token) => letterOf(token) !== undefined);
  return inner.slice(at + 1).filter((token, i) => i > 1 || !(token.kind === "close" || isSign(token, ":") || isSign(token, ".")));
}

/** "March 14th" is March 14. */
export const isOrdinal = ({ text }: Token, before: Token | undefined): boolean => before?.kind === "number" && /^(?:st|nd|rd|th)$/.test(text);

/** "4th" as the place that it names. */
export function placeOf(tokens: readonly Token[]): Value | undefined {
  const [number, suffix] = tokens;
  return tokens.length === 2 && suffix !== undefined && isOrdinal(suffix, number) ? { kind: "text", text: `${number?.text}th` } : undefined;
}

/** Words without their punctuation, in small letters. */
export const textOf = (tokens: readonly Token[]): string =>
  tokens
    .filter(({ kind, text }, i) => (kind !== "sign" || !/^[,.;:!?"'*`]$/.test(text)) && !isOrdinal(tokens[i] as Token, tokens[i - 1]))
    .map(({ text }) => text.toLowerCase())
    .join(" ");

const doesNotExist: Value = { kind: "text", text: "does not exist" };

const infinitelyMany: Value = { kind: "text", text: "infinitely many" };

/** Sentences that name a set or a value. */
const nothing: Value = { kind: "set", items: [] };
const everything: Value = { kind: "intervals", parts: [{ low: { closed: false }, high: { closed: false } }], points: [] };
const noSolution =
  /^(?:(?:there (?:is|are)|the (?:equation|system|inequality) has|it has) )?no (?:such |real |integer )?(?:solution|root|value)s?(?: exists?)?$/;
const anyReal = /^(?:x is )?(?:all|any|every|an arbitrary)(?: of)?(?: the)? reals?(?: numbers?| values?)?(?: (?:of )?[a-z])?$/;

/** What a sentence means, where it names a set. */
const meaningOf = (text: string): Value | undefined => (noSolution.test(text) ? nothing : anyReal.test(text) ? everything : meanings[text]);

const meanings: { readonly [text: string]: Value } = {
  "set of all real numbers": everything,
  "empty set": nothing,
  ...Object.fromEntries(
    ["all integers", "integers", "set of integers", "set of all integers", "any integer"].map((text): [string, Value] => [
      text,
      { kind: "text", text: "Integers" },
    ]),
  ),
  "all positive integers": { kind: "text", text: "Integers+" },
  "positive integers": { kind: "text", text: "Integers+" },
  "any positive integer": { kind: "text", text: "Integers+" },
  infinite: infinitelyMany,
  "infinite solutions": infinitelyMany,
  "infinitely many solutions": infinitelyMany,
  "infinite number of solutions": infinitelyMany,
  noon: { kind: "time", parts: ["12", "00"], half: "pm" },
  midnight: { kind: "time", parts: ["12", "00"], half: "am" },
  dne: doesNotExist,
  "doesn t exist": doesNotExist,
};

/** Words of three letters or fewer that are answers by themselves, not products of letters. */
const shortAnswers: ReadonlySet<string> = new Set(
  ["yes", "no", "odd", "DNE"].flatMap((word) => [word, word[0]?.toUpperCase() + word.slice(1), word.toUpperCase()]),
);

/** An answer of words only: a number in words, or a text. Short words of letters that could be variables are left to the parser unless they are text by their setting. */
function words(tokens: readonly Token[]): Value | undefined {
  let plain = false;
  let language = false;
  for (const { kind, text, plain: set } of tokens) {
    if (kind === "word") {
      plain ||= set && text.length > 1;
      language ||= partsOfWord(text) === undefined || shortAnswers.has(text);
      continue;
    }
    if (kind !== "sign" || !/^[-,.;:!?"']$/.test(text)) return undefined;
  }
  const isFunctional = tokens.some(({ text }) => isFunctionName(text));
  if ((!plain && !language) || (isFunctional && !language)) return undefined;
  const said = tokens.flatMap(({ kind, text }) => (kind === "word" ? [text] : []));
  const number = numberInWords(said);
  if (number !== undefined) return { kind: "number", expression: numberOf(number) };
  const place = said.length === 1 ? placeInWords(said[0] as string) : undefined;
  if (place !== undefined) return { kind: "text", text: `${place}th` };
  const counted = tokens.length === said.length ? countedInWords(said) : undefined;
  if (counted !== undefined) return counted;
  const text = textOf(tokens)
    .replace(/^(?:it|this|that) (?:is|was|s) (?!not\b)/, "")
    .replace(/^(?:on |in )?(?:the |a |an )?/, "");
  return meaningOf(text) ?? (listed(tokens) ? undefined : (several(tokens) ?? { kind: "text", text }));
}

/** "five dollars", "three red apples": a number in words, and up to two words for what is counted. */
function countedInWords(said: readonly string[]): Value | undefined {
  const part =
    said.length < 6
      ? /^(half|(?:a|one) (?:half|third|quarter|fourth|fifth)|(?:two|three) (?:thirds|quarters|fourths|fifths))(?: of)? (?:an?|one) (\w+)$/i.exec(
          said.join(" "),
        )
      : null;
  const share = part === null ? undefined : numberInWords((part[1] as string).split(" "));
  if (said.length === 2 && /^(?:an?|one)$/i.test(said[0] as string) && isUnit(said[1] as string))
    return { kind: "quantity", amount: numberOf(1), unit: unitOf(said[1] as string) };
  if (share !== undefined) return { kind: "quantity", amount: numberOf(share), unit: unitOf(part?.[2] as string) };
  for (const nouns of [1, 2]) {
    const [before, behind] = [said.slice(0, -nouns), said.slice(-nouns)];
    const number = behind.some((word) => sentenceWords.has(word.toLowerCase()) || word.length < 3) ? undefined : numberInWords(before);
    if (number !== undefined) return { kind: "quantity", amount: numberOf(number), unit: behind.map(unitOf).reduce((a, b) => combine(a, b, 1)) };
  }
  return undefined;
}

/** "seven (7)". */
function wordsAndNumber(tokens: readonly Token[]): Value | undefined {
  const [open, digits, close] = tokens.slice(-3) as [Token, Token, Token];
  const said = tokens.slice(0, -3);
  if (said.length === 0 || open.kind !== "open" || digits.kind !== "number" || close.kind !== "close" || !/^\d{1,15}$/.test(digits.text)) return undefined;
  const number = said.some(({ kind, text }) => kind !== "word" && text !== "-")
    ? undefined
    : numberInWords(said.flatMap(({ kind, text }) => (kind === "word" ? [text] : [])));
  return number !== undefined && number.d === 1n && String(number.n) === digits.text ? { kind: "number", expression: numberOf(number) } : undefined;
}

/** Words between commas, in a list of texts; "even and odd" too. */
function several(tokens: readonly Token[]): Value | undefined {
  const parts: Token[][] = [[]];
  for (const token of tokens) {
    const separates = isSign(token, ",") || isSign(token, ";") || token.text === "and" || token.text === "or";
    if (!separates) parts.at(-1)?.push(token);
    else if (parts.at(-1)?.length !== 0) parts.push([]);
  }
  if (parts.length < 2 || parts.some(({ length }) => length === 0 || length > 2)) return undefined;
  return { kind: "list", items: parts.map((part) => ({ kind: "text", text: textOf(part) })) };
}

/** "Tuesday, Friday" and "even and odd" are lists, which the parser reads no better: they stay text. A lone letter or two between separators does not. */
const listed = (tokens: readonly Token[]): boolean =>
  tokens.every(({ kind, text }) => kind === "sign" || text === "and" || text === "or" || text.length === 1) && tokens.some(({ text }) => text.length === 1);
