/**
 * Four small verifiers of kinds that are in use, each in two configurations, to be audited beside any other (P21): trimmed
 * string, string normaliser, numeric cascade, and a reader of LaTeX between delimiters. They are wrong on purpose where their
 * kinds are; none is for training.
 */
import { z } from "zod";
import type { Json } from "../core/json.js";
import { parseOptions } from "../core/options.js";
import { accept, type Verdict } from "../core/verdict.js";
import { rejectFor, type Verifier } from "../verify/contract.js";
import { agree, readable } from "./read.js";

/** Compares a reference with a response. */
type Rule = (reference: string, response: string) => Verdict;

const verdict = (equal: boolean): Verdict => (equal ? accept() : rejectFor("wrong"));

function baseline(name: string, options: { readonly [name: string]: Json }, rule: Rule): Verifier {
  return {
    name,
    version: "1",
    options,
    deterministic: true,
    checkReference: (reference) => (typeof reference === "string" ? undefined : "a text is needed"),
    verify: ({ reference, response }) => rule(String(reference), response),
  };
}

const trimmedOptions = z.strictObject({ strip: z.boolean().default(false).describe("Whether dollar signs and a final stop are taken off, too.") });

/** Equality of the texts without the blanks at their ends. */
export function trimmed(options: z.input<typeof trimmedOptions> = {}): Verifier {
  const resolved = parseOptions(trimmedOptions, options, "baseline trimmed");
  const plain = (text: string): string =>
    resolved.strip
      ? text
          .trim()
          .replace(/\.$/, "")
          .replace(/^\$+|\$+$/g, "")
          .trim()
      : text.trim();
  return baseline("trimmed", resolved, (reference, response) => verdict(plain(reference) === plain(response)));
}

const normaliserOptions = z.strictObject({
  numbers: z.boolean().default(false).describe("Whether zeros behind a point, commas within and a final stop are taken off, too."),
});

/** Equality after replacements in the text, as graders of MATH have them. */
export function normaliser(options: z.input<typeof normaliserOptions> = {}): Verifier {
  const resolved = parseOptions(normaliserOptions, options, "baseline normaliser");
  const plain = (text: string): string => {
    const string = normalised(text);
    return resolved.numbers
      ? string
          .replace(/\.$/, "")
          .replace(/(?<=\d)(?:,|\{,\})(?=\d{3}(?!\d))/g, "")
          .replace(/\.0+$/, "")
      : string;
  };
  return baseline("normaliser", resolved, (reference, response) => verdict(plain(reference) === plain(response)));
}

function normalised(text: string): string {
  const string = text
    .replace(/\n|\\!|\\,|\\left|\\right|\$|\\%|%/g, "")
    .replace(/\\[td]frac/g, "\\frac")
    .replace(/^\s*\\boxed\{(.*)\}\s*$/s, "$1")
    .replace(/\\text\{\s*(.*?)\s*\}/g, "$1")
    .replace(/ /g, "")
    .replace(/^[a-z]{1,2}=/, "")
    .replace(/(^|[^\d])\.(\d)/g, "$10.$2")
    .replace(/\\frac(\d)(\d)/g, "\\frac{$1}{$2}")
    .replace(/\\sqrt(\w)/g, "\\sqrt{$1}");
  if (string === "0.5") return "\\frac{1}{2}";
  return string.replace(/^(-?\d+)\/(\d+)$/, "\\frac{$1}{$2}");
}

const cascadeOptions = z.strictObject({
  relative: z.number().min(0).default(1e-4).describe("Largest |a − g| / max(|a|, |g|) of equal numbers."),
  absolute: z.number().min(0).optional().describe("Instead: |a − g| below this."),
  percent: z.boolean().default(true).describe("Whether a hundredth and a hundred times the reference are right, too."),
});

/** Numbers with a tolerance that grows with them, else equality of the texts. */
export function cascade(options: z.input<typeof cascadeOptions> = {}): Verifier {
  const { relative, absolute, percent } = parseOptions(cascadeOptions, options, "baseline cascade");
  const near = (a: number, g: number): boolean =>
    absolute === undefined ? Math.abs(a - g) <= relative * Math.max(Math.abs(a), Math.abs(g)) : Math.abs(a - g) < absolute;
  return baseline("cascade", { relative, ...(absolute !== undefined && { absolute }), percent }, (reference, response) => {
    const [g, a] = [floating(reference), floating(response)];
    if (g === undefined || a === undefined) return verdict(normalised(reference) === normalised(response));
    return verdict((percent ? [g, g / 100, 100 * g] : [g]).some((gold) => near(a, gold)));
  });
}

/** A numeral, a quotient of two, or a percentage, as a float. */
function floating(text: string): number | undefined {
  const plain = text.replace(/[$,\s]|\\!|\{,\}/g, "").replace(/^(-?)\\[td]?frac\{(-?\d+)\}\{(\d+)\}$/, "$1$2/$3");
  const percentage = /^(.*?)\\?%$/.exec(plain);
  if (percentage) {
    const value = floating(percentage[1] as string);
    return value === undefined ? undefined : value / 100;
  }
  const quotient = /^(-{0,2}\d+)\/(\d+)$/.exec(plain);
  const number = (digits: string): number | undefined => (/^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i.test(digits) ? Number(digits) : undefined);
  if (!quotient) return number(plain);
  const [over, under] = [number((quotient[1] as string).replace(/^--/, "")), number(quotient[2] as string)];
  return over === undefined || !under ? undefined : over / under;
}

const symbolicOptions = z.strictObject({
  undelimited: z
    .enum(["numbers", "wrapped"])
    .default("numbers")
    .describe("What becomes of a text without delimiters: only a numeral is read, or all of it as a formula."),
});

/** Reads LaTeX between delimiters, on one line, and compares values; of other texts a numeral at most. */
export function symbolic(options: z.input<typeof symbolicOptions> = {}): Verifier {
  const resolved = parseOptions(symbolicOptions, options, "baseline symbolic");
  const inside = (text: string): string | undefined => {
    const found = /\\boxed\{(.*)\}/.exec(text) ?? /\$\$?([^$\n]+)\$/.exec(text) ?? /\\\((.+?)\\\)/.exec(text) ?? /\\\[(.+?)\\\]/.exec(text);
    if (found) return found[1];
    if (resolved.undelimited === "wrapped") return text;
    return /^\s*(-?\d[\d,]*(?:\.\d+)?)\.?\s*$/.exec(text)?.[1];
  };
  return baseline("symbolic", resolved, (reference, response) => {
    const answer = inside(response)?.replace(/^\s*[a-z] = /, "");
    if (answer === undefined) return rejectFor("no-answer");
    if (!readable(answer)) return rejectFor("unreadable");
    // The reference is a formula by its place.
    return verdict(agree(reference, answer) === true);
  });
}
