/** The options of a multiple-choice problem: listed in its reference, or marked by letters in its prompt. */
import type { Json } from "../../core/json.js";
import type { Problem } from "../../core/problem.js";

export const letters = "ABCDEFGHIJ";

/** A reference as read: the right letters in order, and the options' texts where it lists them. */
export interface ChoiceReference {
  readonly right: string;
  readonly texts?: readonly string[];
}

/** The reference, or what is wrong with it. Letters are `"B"`, `"(B)"`, `"A, C"` or a list; an index counts from 0. */
export function readReference(reference: Json): ChoiceReference | string {
  if (typeof reference === "object" && reference !== null && !Array.isArray(reference)) {
    const { answer, choices } = reference as { readonly [name: string]: Json | undefined };
    if (answer === undefined) return "it has no answer";
    const texts = choices === undefined ? undefined : textsOf(choices);
    if (typeof texts === "string") return texts;
    const right = typeof answer === "number" ? (letters[answer] ?? "") : lettersOf(answer);
    if (right === "" || (texts !== undefined && [...right].some((letter) => letters.indexOf(letter) >= texts.length)))
      return `its answer ${JSON.stringify(answer).slice(0, 40)} is none of its choices`;
    return { right, ...(texts && { texts }) };
  }
  const right = lettersOf(reference);
  return right === "" ? `a letter from A to J is needed, or {"answer": "B", "choices": […]}, got ${JSON.stringify(reference).slice(0, 40)}` : { right };
}

function textsOf(choices: Json): readonly string[] | string {
  const named = typeof choices === "object" && choices !== null ? (choices as { readonly [letter: string]: Json | undefined }) : {};
  const list: readonly unknown[] = Array.isArray(choices) ? choices : [...letters].map((letter) => named[letter]).filter((text) => text !== undefined);
  if (list.length < 2 || list.length > letters.length || !list.every((text) => typeof text === "string" || typeof text === "number"))
    return "its choices are no list of two to ten texts";
  // "A)21" and "21" are the same option.
  return list.map((text, i) => String(text).replace(new RegExp(`^\\s*\\(?${letters[i]}[).:]\\s*`), ""));
}

/** Letters in alphabetic order without repetition; empty where there are none. */
function lettersOf(value: Json): string {
  const parts = Array.isArray(value) ? value : typeof value === "string" ? value.split(/\s*(?:,|;|&|\band\b)\s*/i) : [];
  const found = parts.map((part) => /^\s*\(?([A-Ja-j])[).]?\s*$/.exec(String(part))?.[1]?.toUpperCase());
  return found.length > 0 && found.every((letter) => letter !== undefined) ? [...new Set(found)].sort().join("") : "";
}

const mark = /(?:^|[\s,;|])[*_]{0,2}\(?([A-J])[).:][*_]{0,2}[ \t]+/g;

/** The options that a prompt marks, `A) …`, `(A) …` or `A. …`, from A on without a gap; the last such list. */
export function optionsInPrompt(prompt: Problem["prompt"]): readonly string[] {
  const text = prompt.findLast(({ role }) => role === "user")?.content ?? "";
  let starts: { readonly mark: number; readonly text: number }[] = [];
  let longest: typeof starts = [];
  for (const match of text.matchAll(mark)) {
    const at = letters.indexOf(match[1] as string);
    if (at === 0) starts = [];
    if (at !== starts.length) continue;
    starts.push({ mark: match.index, text: match.index + match[0].length });
    if (starts.length >= 2) longest = starts;
  }
  return longest.map(({ text: from }, i) => {
    const next = longest[i + 1]?.mark ?? text.length;
    const paragraph = text.slice(from, next).split(/\n\s*\n/)[0] as string;
    return (i === longest.length - 1 ? (paragraph.split("\n")[0] as string) : paragraph).trim();
  });
}
