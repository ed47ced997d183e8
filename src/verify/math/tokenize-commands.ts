/** Commands of LaTeX as tokens: what only sets a formula vanishes. */
import { commandMeanings } from "./commands.js";
import type { Scan, Token } from "./token.js";

const latin = /[A-Za-z]+/y;

/** The command whose backslash stands here. */
export function command(s: Scan): undefined {
  latin.lastIndex = s.at + 1;
  const letters = latin.exec(s.text)?.[0];
  const name = letters ?? s.text[s.at + 1] ?? "";
  const length = name.length + 1;
  // Math delimiters: \( \) \[ \] set nothing.
  if ("()[]".includes(name) || name === "") return s.space(2, length);
  if (name === "\\" || name === "cr" || name === "tabularnewline") return row(s, length);
  if (name === "left" || name === "right") return fence(s, name, length);
  if (name === "begin" || name === "end") return environment(s, name);
  if (name === "not") return negated(s, length);
  if (name === "underbrace" || name === "overbrace") {
    s.labelled = true;
    s.at += length;
    return;
  }
  if (name === "SI" || name === "qty") {
    // The second argument of these is a unit.
    const number = /\s*(?:\[[^\]]{0,40}\])?\s*\{[^{}]{0,60}\}\s*(?=\{)/y;
    number.lastIndex = s.at + length;
    if (number.test(s.text)) s.textAt = number.lastIndex;
  }
  if (name === "!" && s.tokens.at(-1)?.text === "," && s.tokens.at(-1)?.kind === "sign") {
    s.tokens.push({ ...(s.tokens.pop() as Token), joint: true });
  }
  const meaning = commandMeanings.get(name);
  if (meaning === undefined) return s.emit("command", name, length);
  switch (meaning.does) {
    case "nothing":
      s.at += length;
      if (name.startsWith("fram") || name === "operatorname") s.skip(/\s*\[[^\]]{0,40}\]/y);
      return;
    case "gap":
      return s.space(1, length);
    case "drop":
      s.at += length;
      s.skip(/\*?\s*(?:\[[^\]]{0,40}\])?\s*\{[^{}]{0,80}\}/y);
      return;
    case "text":
    case "roman":
      return open(s, length);
    default:
      return s.emit(meaning.does, meaning.text, length);
  }
}

/** The braces of a command whose argument is words. */
function open(s: Scan, length: number): undefined {
  s.at += length;
  s.skip(/\*/y);
  if (!s.skip(/\s*\{/y)) return;
  if (s.gap === 0 && s.tokens.at(-1)?.kind === "word" && s.tokens.at(-1)?.plain === false) s.gap = 1;
  s.braces.push("text");
  s.plain++;
  const end = s.at;
  // The closing brace is met by `brace`, which takes one level off.
  s.at = end;
}

function row(s: Scan, length: number): undefined {
  s.emit("sign", "\\\\", length);
  s.skip(/\*?\s*\[\s*-?[\d.]{1,6}\s*(?:pt|em|ex|cm|mm|in)\s*\]/y);
}

function fence(s: Scan, name: string, length: number): undefined {
  s.at += length;
  s.skip(/\s*/y);
  // The full stop of a last "\right." may have been taken for that of the sentence.
  const next = s.text[s.at] ?? ".";
  const side = name === "left" ? "open" : "close";
  if (name === "left") s.fences.push(next === "." ? -1 : s.tokens.length);
  else {
    const opened = s.fences.pop();
    if (opened === -1 && s.text.startsWith("\\}", s.at)) {
      s.at += 2;
      return;
    }
    // A brace on one side alone gathers what stands in rows.
    if (next === "." && opened !== undefined && s.tokens[opened]?.text === "\\{") openedAlone(s, opened);
  }
  if (next === ".") s.at++;
  else if (next === "|") s.emit(side, "|", 1);
  else if (next === "<" || next === ">") s.emit(side, next === "<" ? "⟨" : "⟩", 1);
  else if (s.text.startsWith("\\|", s.at)) s.emit(side, "‖", 2);
  else if (s.text.startsWith("\\vert", s.at)) s.emit(side, "|", 5);
  // A reversed bracket, as of an open interval, closes or opens by its place, not by its shape.
  else if (next === "]" || next === ")" || next === "[" || next === "(") s.emit(side, next, 1);
}

/** Takes a brace off that nothing closes, and makes an array behind it the cases that it is. */
function openedAlone(s: Scan, at: number): undefined {
  const [first, last] = [s.tokens[at + 1], s.tokens.at(-1)];
  const isArray = first?.text === "begin:array" && last?.text === "end:array";
  if (isArray) {
    s.tokens[at + 1] = { ...first, text: "begin:cases" };
    s.tokens[s.tokens.length - 1] = { ...last, text: "end:cases" };
  }
  s.tokens.splice(at, 1);
}

function environment(s: Scan, name: string): undefined {
  const pattern = /\\(?:begin|end)\s*\{\s*([A-Za-z]+)\*?\s*\}/y;
  pattern.lastIndex = s.at;
  const found = pattern.exec(s.text);
  if (found === null) return s.emit("command", name, name.length + 1);
  // These set a formula and part nothing.
  if (/^(?:equation|displaymath|math|center)$/.test(found[1] as string)) return s.space(2, found[0].length);
  s.emit("command", `${name}:${found[1]}`, found[0].length);
  if (name === "begin" && found[1] === "array") s.skip(/\s*(?:\[[^\]]{0,10}\])?\s*\{[^{}]{0,80}\}/y);
}

function negated(s: Scan, length: number): undefined {
  const pattern = /\s*(=|\\in(?![A-Za-z])|\\equiv(?![A-Za-z]))/y;
  pattern.lastIndex = s.at + length;
  const found = pattern.exec(s.text);
  if (found === null) return s.emit("command", "not", length);
  s.emit("sign", found[1] === "=" ? "≠" : found[1] === "\\in" ? "∉" : "≢", length + found[0].length);
}
