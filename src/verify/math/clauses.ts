/** An answer without the words around its value: what names it ("the ratio is 5 : 3", "Area = 7"), and where its parameters live ("for all x ∈ ℝ", "where k is an integer"). */
import type { Token } from "./token.js";
import { partsOfWord } from "./words.js";

const isSign = (token: Token | undefined, text: string): boolean => token?.kind === "sign" && token.text === text;
const lower = (token: Token): string => token.text.toLowerCase();

/** Words that bound, deny or part what follows them, so that it is not the value that is named. */
const bounding: ReadonlySet<string> = new Set(
  "not no never none neither nor less more fewer most least than between and or either if unless except about approximately approx roughly nearly almost above below under over without plus minus times half twice double cannot isn wasn aren only wrong incorrect false false mod base".split(
    " ",
  ),
);
/** What an answer may be called before it begins with a bracket, no verb between. */
const places: ReadonlySet<string> = new Set(
  "point points center centre vertex vertices interval intervals set pair pairs triple triples vector matrix coordinates range domain focus foci intersection solution solutions ordered the an a closed open half-open at union".split(
    " ",
  ),
);
const usualWords: ReadonlySet<string> = new Set("all any every real reals integer integers number numbers value values of the such that for where".split(" "));
const verbs: ReadonlySet<string> = new Set(["is", "are", "equals", "equal", "be"]);
const mostNaming = 12;

/** The tokens behind the words that name a value; undefined where none do. */
export function unnamed(tokens: readonly Token[]): readonly Token[] | undefined {
  let at = 0;
  let isLanguage = false;
  for (; at < Math.min(tokens.length, mostNaming); at++) {
    const token = tokens[at] as Token;
    if (token.kind !== "word" || bounding.has(lower(token))) break;
    if (at > 0 && verbs.has(lower(token)) && isLanguage) {
      const to = tokens[at + 1];
      return rest(tokens, to?.kind === "word" && to.text === "to" ? at + 2 : at + 1);
    }
    isLanguage ||= partsOfWord(token.text) === undefined || (token.plain && token.text.length > 2);
  }
  const next = tokens[at];
  if (at === 0 || next === undefined || !isLanguage) return undefined;
  if (isSign(next, "=") || isSign(next, ":")) return rest(tokens, at + 1);
  const begins = tokens.findIndex(({ kind }) => kind !== "word") - 1;
  const isOfIntegers = begins > 0 && /^[<>≤≥]$/.test(tokens[begins + 1]?.text ?? "") && tokens[begins]?.text.length === 1;
  if (isOfIntegers && tokens.slice(0, begins).every((token) => usualWords.has(lower(token)))) return tokens.slice(begins);
  const isPlace = next.kind === "open" && tokens.slice(0, at).every((token) => places.has(lower(token)));
  return isPlace ? rest(tokens, at) : undefined;
}

function rest(tokens: readonly Token[], from: number): readonly Token[] | undefined {
  const next = tokens[from];
  // "It is not 5", "the total is more than 5"
  return next === undefined || bounding.has(lower(next)) ? undefined : tokens.slice(from);
}

const openers: ReadonlySet<string> = new Set(["for", "where", "with", "when"]);
const everyWords: ReadonlySet<string> = new Set(["all", "any", "every", "each", "some", "arbitrary"]);
/** Words that say no more than in which usual set a parameter lies. */
const domainWords: ReadonlySet<string> = new Set(
  "real reals integer integers whole natural number numbers positive nonnegative non negative complex rational is are an a any all every arbitrary some in the set of constant constants and be".split(
    " ",
  ),
);
const domainNames: ReadonlySet<string> = new Set(["Reals", "Integers", "Naturals", "Rationals", "Complexes"]);
const blackboardLetters = /^[RZNQC]$/;

/** Where a clause about parameters stands: what is left without it, and the letters that it declares. */
export interface Declared {
  readonly tokens: readonly Token[];
  readonly letters: readonly string[];
  /** It says that they are whole numbers. */
  readonly whole: boolean;
}

/** The answer without its last clause about where parameters live; undefined where it has none. */
export function undeclared(tokens: readonly Token[]): Declared | undefined {
  let depth = 0;
  for (let at = tokens.length - 1; at > 0; at--) {
    const token = tokens[at] as Token;
    if (token.kind === "close") depth++;
    else if (token.kind === "open") depth--;
    if (depth !== 0) continue;
    const opens = (token.kind === "word" && openers.has(lower(token))) || isSign(token, "∀") || isSign(token, ",") || isSign(token, ";");
    const bracket = token.kind === "open" && token.text === "(" && (tokens[tokens.length - 1] as Token).kind === "close";
    if (!opens && !bracket) continue;
    const clause = tokens.slice(at + 1, bracket ? -1 : tokens.length);
    const declared = declaredBy(clause, token.kind === "word" || isSign(token, "∀"));
    if (declared === undefined) continue;
    let end = at;
    while (end > 0 && (isSign(tokens[end - 1], ",") || isSign(tokens[end - 1], ";"))) end--;
    const left = tokens.slice(0, end);
    // "x, y ∈ ℝ": what is left must say something else than the letters.
    return left.every(({ text }) => declared.letters.includes(text) || text === ",") ? undefined : { tokens: left, ...declared };
  }
  return undefined;
}

/** Letters and usual sets alone: "x ∈ ℝ", "all real x", "k is an integer", "n" after "for all". */
function declaredBy(clause: readonly Token[], worded: boolean): { readonly letters: string[]; readonly whole: boolean } | undefined {
  const letters: string[] = [];
  let told = false;
  let whole = false;
  for (let at = 0; at < clause.length; at++) {
    const token = clause[at] as Token;
    const word = lower(token);
    if (token.kind === "word" && (openers.has(word) || everyWords.has(word)) && letters.length === 0) told ||= everyWords.has(word);
    else if (token.kind === "word" && domainWords.has(word) && word.length > (token.plain ? 0 : 1)) {
      if (word === "negative" && !(isSign(clause[at - 1], "-") || clause[at - 1]?.text === "non")) return undefined;
      told ||= word.length > 3;
      whole ||= /^(?:integers?|natural|whole)$/.test(word);
    } else if ((token.kind === "word" && token.text.length === 1) || (token.kind === "name" && !domainNames.has(token.text))) letters.push(token.text);
    else if (isSign(token, "∈")) {
      const end = domainAt(clause, at + 1);
      if (end === undefined) return undefined;
      whole ||= clause.slice(at + 1, end.at).some(({ text }) => /^(?:Z|N|Integers|Naturals)$/.test(text));
      told = true;
      at = end.at - 1;
    } else if (!(isSign(token, ",") || isSign(token, "∀") || (isSign(token, "-") && clause[at + 1]?.text === "negative"))) return undefined;
  }
  return letters.length > 0 && (told || worded) && (told || letters.length === clause.filter((token) => !isSign(token, ",")).length)
    ? { letters, whole }
    : undefined;
}

/** Behind the name of a usual set, with a plus or star raised; undefined where something else stands there. */
function domainAt(clause: readonly Token[], from: number): { readonly at: number } | undefined {
  let at = from;
  const token = clause[at];
  if (token?.kind === "command" && token.text === "blackboard") {
    at++;
    const braced = clause[at]?.kind === "open";
    if (braced) at++;
    if (!blackboardLetters.test(clause[at]?.text ?? "")) return undefined;
    at += braced ? 2 : 1;
  } else if (token !== undefined && (domainNames.has(token.text) || (token.kind === "word" && blackboardLetters.test(token.text)))) at++;
  else return undefined;
  if (isSign(clause[at], "^") || isSign(clause[at], "_")) {
    at++;
    const braced = clause[at]?.kind === "open";
    if (braced) at++;
    if (!isSign(clause[at], "+") && !isSign(clause[at], "*")) return undefined;
    at += braced ? 2 : 1;
  }
  return { at };
}

/** Declared whole numbers have one letter, whichever was chosen. */
export function withOneLetter({ tokens, letters, whole }: Declared): readonly Token[] {
  const [letter] = letters;
  if (!whole || letters.length !== 1 || letter === "k" || tokens.some(({ text, kind }) => kind === "word" && text.includes("k"))) return tokens;
  return tokens.map((token) => (token.kind === "word" && token.text === letter ? { ...token, text: "k" } : token));
}

/** "for k ≥ 1", "if n is odd" between a value and a condition is a comma where the condition is a relation. */
export function withConditions(tokens: readonly Token[]): readonly Token[] | undefined {
  const at = tokens.findIndex((token, i) => i > 0 && token.kind === "word" && openers.has(lower(token)));
  const first = tokens[at];
  if (first === undefined) return undefined;
  const joined = isSign(tokens[at - 1], ",");
  return [...tokens.slice(0, joined ? at - 1 : at), { ...first, kind: "sign", text: "," }, ...tokens.slice(at + 1)];
}

/** The answer without a remark in brackets behind it: words alone, that take nothing back. */
export function unremarked(tokens: readonly Token[]): readonly Token[] | undefined {
  const last = tokens.at(-1);
  const from = tokens.findLastIndex(({ kind }) => kind === "open");
  if (last?.kind !== "close" || from < 1 || tokens[from]?.text !== "(") return undefined;
  const remark = tokens.slice(from + 1, -1);
  const isWords = remark.length > 0 && remark.every(({ kind, text }) => (kind === "word" && !retracting.test(text)) || text === "-");
  return isWords && remark.some(({ text }) => text.length > 3) ? tokens.slice(0, from) : undefined;
}

const retracting =
  /^(?:reject|extraneous|invalid|discard|exclud|guess|wrong|incorrect|approx|mod$|base$|opposite|reverse|negative|squared|cubed|percent|(?:not|no|never|or|and|less|more|than|about|either|neither|if|times|plus|minus)$)/i;

const allBut = /^(?:x is )?(?:all|any|every) (?:reals?|real numbers?)(?: x)? (?:except|but|other than)(?: for)?$/i;

/** "all real numbers except 1": what is left out. */
export function exceptions(tokens: readonly Token[]): readonly Token[] | undefined {
  const from = tokens.findIndex(({ kind, text }) => kind !== "word" || text === "x");
  const words = tokens.slice(0, from).map(({ text }) => text);
  return from > 2 && allBut.test(words.join(" ")) ? tokens.slice(from) : undefined;
}

/** What stands left of the last chain of equal values where it is beyond what is read: an integral, a limit, a determinant. */
const beyond: ReadonlySet<string> = new Set(["int", "iint", "oint", "lim", "limsup", "liminf", "det", "dim", "ker", "deg", "sup", "inf", "arg", "Pr", "#"]);

/** Right sides, the longest first, of an equation whose left side names a value by what is not read. */
export function named(tokens: readonly Token[]): readonly (readonly Token[])[] {
  const found: (readonly Token[])[] = [];
  let depth = 0;
  let isBeyond = false;
  for (const [at, token] of tokens.entries()) {
    if (token.kind === "open") depth++;
    else if (token.kind === "close") depth--;
    if ((token.kind === "command" || token.kind === "function" || token.kind === "sign") && beyond.has(token.text)) isBeyond = true;
    if (depth !== 0 || token.kind !== "sign") continue;
    if (/^[<>≤≥≠,;⇒⇔]$/.test(token.text)) return found;
    if (token.text === "=" && isBeyond && found.length < 4) found.push(tokens.slice(at + 1));
  }
  return found;
}
