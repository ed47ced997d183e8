/** What tokens of a whole answer mean together: dollar signs, marks around it, full stops behind it, groups of digits. */
import type { Token } from "./token.js";

/** Tokens without delimiters and marks; `grouped` tells that a comma was taken for one that groups digits. */
export interface Settled {
  readonly tokens: readonly Token[];
  readonly grouped: boolean;
}

/** The tokens of an answer. `join`: whether `1,000` is one number. */
export function settle(raw: readonly Token[], join: boolean): Settled {
  return joinDigits(trim(dollars(raw)), join);
}

const isSign = (token: Token | undefined, text: string): boolean => token?.kind === "sign" && token.text === text;

/** Dollar signs that set formulas go, and those before an amount (or alone behind one) become currency. */
function dollars(raw: readonly Token[]): Token[] {
  const places = raw.flatMap((token, i) => (isSign(token, "$") ? [i] : []));
  const kept: Token[] = [];
  let open = false;
  let seen = 0;
  for (let i = 0; i < raw.length; i++) {
    const token = raw[i] as Token;
    if (isSign(token, "$$")) continue;
    if (!isSign(token, "$")) {
      kept.push(token);
      continue;
    }
    seen++;
    const next = raw[i + 1];
    const beforeAmount = next?.kind === "number" && next.gap === 0;
    const other = places[seen];
    const closing = other === undefined ? undefined : raw[other];
    const afterOther = other === undefined ? undefined : raw[other + 1];
    const otherCloses = closing !== undefined && !(afterOther?.kind === "number" && afterOther.gap === 0 && (closing.gap > 0 || (other as number) === i + 2));
    if (open) {
      open = false;
    } else if (otherCloses) {
      open = true;
    } else if (beforeAmount || (raw[i - 1]?.kind === "number" && token.gap === 0)) {
      kept.push({ ...token, kind: "currency", text: "USD" });
    }
  }
  return kept;
}

/** Marks that come in pairs around an answer. */
const paired: ReadonlySet<string> = new Set(["**", "*", '"', "'", "_"]);

/** Things around an answer that are taken off: more are no setting of it. */
const mostLayers = 200;

/** Without Markdown, quotes, redundant braces and final punctuation, at any depth of braces around the whole. */
function trim(raw: readonly Token[]): Token[] {
  // A point before a closing brace ends a sentence, as one at the end does.
  const tokens = raw.filter((token, i) => {
    const next = raw[i + 1];
    return !(next?.kind === "close" && next.text === "}" && (isSign(token, ".") || isSign(token, ",")));
  });
  let start = 0;
  let end = tokens.length;
  for (let changed = true, layers = 0; changed && start < end && layers < mostLayers; layers++) {
    changed = false;
    const first = tokens[start] as Token;
    const last = tokens[end - 1] as Token;
    if (end - start > 1 && first.kind === "sign" && paired.has(first.text) && isSign(last, first.text)) {
      [start, end, changed] = [start + 1, end - 1, true];
    } else if (isSign(first, "**") || isSign(first, "*") || (isSign(first, ":") && end - start > 1)) {
      const partner = first.text === ":" ? -1 : tokens.findIndex((token, i) => i > start && i < end && isSign(token, first.text));
      if (partner > 0) {
        tokens.splice(partner, 1);
        end--;
      }
      [start, changed] = [start + 1, true];
    } else if (last.kind === "sign" && (last.text === "." || last.text === "," || last.text === ";" || last.text === "**" || last.text === "\\\\")) {
      [end, changed] = [end - 1, true];
    } else if (first.kind === "word" && first.text.toLowerCase() === "either" && tokens.some(({ kind, text }) => kind === "word" && text === "or")) {
      [start, changed] = [start + 1, true];
    } else if (isWrapped(tokens, start, end)) {
      [start, end, changed] = [start + 1, end - 1, true];
    }
  }
  return start === 0 && end === tokens.length ? tokens : tokens.slice(start, end);
}

/** Whether one pair of braces holds everything, and no list, which would be a set. */
function isWrapped(tokens: readonly Token[], start: number, end: number): boolean {
  const first = tokens[start] as Token;
  const last = tokens[end - 1] as Token;
  if (first.kind !== "open" || first.text !== "{" || last.kind !== "close" || last.text !== "}") return false;
  let depth = 0;
  for (let i = start; i < end; i++) {
    const token = tokens[i] as Token;
    if (token.kind === "open") depth++;
    else if (token.kind === "close" && --depth === 0) return i === end - 1;
    if (depth === 1 && isSign(token, ",") && token.joint === undefined) return false;
  }
  return false;
}

const wholeGroup = /^(?:0|[1-9]\d{0,2})$/;
const nextGroup = /^\d{3}(?:\.\d+)?$/;

/** Groups of three digits, set off by commas or spaces, as one number. */
function joinDigits(tokens: readonly Token[], join: boolean): Settled {
  let grouped = false;
  const result: Token[] = [];
  for (let i = 0; i < tokens.length; i++) {
    const token = tokens[i] as Token;
    if (token.kind !== "number" || !wholeGroup.test(token.text)) {
      result.push(token);
      continue;
    }
    const decimal = withDecimalComma(tokens, i);
    if (decimal !== undefined) {
      result.push(decimal);
      i += 2;
      continue;
    }
    let text = token.text;
    let end = i;
    let style: string | undefined;
    for (;;) {
      if (text.includes(".")) break;
      const step = separation(tokens, end, join);
      if (step === undefined || (style !== undefined && style !== step.style && !(step.certain && style !== "blank"))) break;
      style = step.certain ? (style ?? step.style) : step.style;
      text += (tokens[step.to] as Token).text;
      end = step.to;
    }
    // "2 100/3" is no number of five digits.
    const slash = tokens[end + 1];
    if (style === "blank" && (isSign(slash, "/") || slash?.kind === "vulgar")) [text, end, style] = [token.text, i, undefined];
    if (style !== undefined && token.text === "0") [text, end, style] = [token.text, i, undefined];
    if (style === "comma") grouped = true;
    result.push(end === i ? token : { ...token, text, joint: style === "comma" ? "comma" : true });
    i = end;
  }
  return { tokens: result, grouped };
}

/** `3{,}14`: a braced comma between digits that are no group of three is the point of a decimal. */
function withDecimalComma(tokens: readonly Token[], at: number): Token | undefined {
  const [whole, comma, digits] = tokens.slice(at, at + 3) as [Token, Token?, Token?];
  if (comma?.joint !== "braced" || !isSign(comma, ",") || digits?.kind !== "number" || !/^\d+$/.test(digits.text)) return undefined;
  if (digits.text.length === 3 && whole.text !== "0") return undefined;
  const goesOn = tokens[at + 3];
  return isSign(goesOn, ",") && goesOn?.joint === "braced" ? undefined : { ...whole, text: `${whole.text}.${digits.text}`, joint: true };
}

/** What keeps the number at `at` apart from a group of three digits behind it, if that is all there is. */
function separation(
  tokens: readonly Token[],
  at: number,
  join: boolean,
): { readonly to: number; readonly style: string; readonly certain: boolean } | undefined {
  const next = tokens[at + 1];
  if (next === undefined) return undefined;
  if (isSign(next, ",")) {
    const group = tokens[at + 2];
    if (group?.kind !== "number" || !nextGroup.test(group.text)) return undefined;
    const certain = next.joint !== undefined;
    return certain || (join && next.gap === 0 && group.gap === 0) ? { to: at + 2, style: certain ? "joint" : "comma", certain } : undefined;
  }
  if (next.kind !== "number" || next.gap === 0 || !nextGroup.test(next.text)) return undefined;
  return { to: at + 1, style: next.gap === 1 ? "thin" : "blank", certain: false };
}

/** One spelling of tokens, by which answers are identical: blanks, formatting and redundant braces are not in it. */
export function spelling(tokens: readonly Token[]): string {
  let text = "";
  for (let i = 0; i < tokens.length; i++) {
    const token = tokens[i] as Token;
    const lone = tokens[i + 1];
    if (token.kind === "open" && token.text === "{" && lone !== undefined && lone.kind !== "open" && tokens[i + 2]?.kind === "close") {
      text += `${i > 0 ? " " : ""}${lone.text}`;
      i += 2;
      continue;
    }
    text += `${i > 0 ? " " : ""}${token.kind === "command" || token.kind === "function" ? "\\" : ""}${token.text}`;
  }
  return text;
}
