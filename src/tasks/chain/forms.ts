/**
 * Chains asked in other ways: with a hint in the prompt, or as a choice between two answers. The hint stands in brackets after
 * the chain, each of its words one symbol, so that a small policy can be taught to read it.
 */
import { DataError } from "../../core/errors.js";
import type { Message, Problem } from "../../core/problem.js";
import { apply, type Chain, readChain, readPhrased } from "./notation.js";

/**
 * The ways, each as a template over what a problem says: `right` and `wrong` claim an outcome, `answer` tells the answer,
 * `steps` the result of each line, `begin` the first part of a solution, `solution` all of one; `judge` asks which of two
 * answers is right, `A` or `B`. Templates for options of methods that write prompts themselves.
 */
export const forms = {
  plain: "{problem}",
  right: "{problem}(right)",
  wrong: "{problem}(wrong)",
  answer: "{problem}(answer {answer})",
  steps: "{problem}(steps {steps})",
  begin: "{problem}(begin {begin})",
  solution: "{problem}(solution {solution})",
  judge: "{problem}(A {first})(B {second})",
} as const;
export type Form = keyof typeof forms;
export const formNames = Object.keys(forms) as readonly Form[];

/** What the forms need beside numbers and lines. */
export const formSymbols = ["(right)", "(wrong)", "(answer ", "(steps ", "(begin ", "(solution ", "(A ", "(B ", ")", " ", "A", "B"] as const;

/** What a prompt of a form says, given the values that its template names. */
export function inForm(form: Form, values: { readonly [name: string]: string }): string {
  return forms[form].replace(/\{(\w+)\}/g, (_, name: string) => values[name] as string);
}

/** A prompt taken apart. */
export interface Asked {
  readonly form: Form;
  readonly chain: Chain;
  /** Results that a hint gives, a line each. */
  readonly values: readonly (number | undefined)[];
  /** The answer that a hint gives. */
  readonly answer?: number;
  /** The two answers of a choice. */
  readonly choices?: readonly [string, string];
}

/** Reads a prompt of any form; undefined for other text. */
export function readAsked(text: string): Asked | undefined {
  const match = /^([^(]+)(?:\((right|wrong|answer|steps|begin|solution|A) ?([\s\S]*)\))?$/.exec(text);
  const chain = readChain(match?.[1] ?? "");
  if (match === null || chain === undefined) return undefined;
  const [word, told = ""] = [match[2], match[3]];
  const numbers = told.split(" ").map(Number);
  const lines = told.split("\n");
  switch (word) {
    case undefined:
      return { form: "plain", chain, values: [] };
    case "A": {
      const choices = told.split(")(B ");
      return choices.length === 2 ? { form: "judge", chain, values: [], choices: choices as [string, string] } : undefined;
    }
    case "answer":
      return { form: "answer", chain, values: withLast(chain, numbers[0]), ...known(numbers[0]) };
    case "steps":
      return { form: "steps", chain, values: numbers, ...known(numbers.at(-1)) };
    case "begin":
    case "solution": {
      const answer = /^#(\d+)$/.exec(lines.at(-1) as string)?.[1];
      return { form: word, chain, values: lines.map((line) => readPhrased(line)?.result), ...known(answer === undefined ? undefined : Number(answer)) };
    }
    default:
      return { form: word as Form, chain, values: [] };
  }
}

const known = (answer: number | undefined): { readonly answer?: number } => (answer === undefined || Number.isNaN(answer) ? {} : { answer });

function withLast({ operations }: Chain, answer: number | undefined): (number | undefined)[] {
  return operations.map((_, i) => (i === operations.length - 1 ? answer : undefined));
}

/** The result of each line. */
export function stepsOf({ start, operations }: Chain, modulus: number): number[] {
  let value = start;
  return operations.map(({ operator, operand }) => {
    value = apply(operator, value, operand, modulus);
    return value;
  });
}

/** The first share of a text by characters, cut back to the end of a word: what begins it and is no fragment. The whole at 1. */
export function beginningOf(text: string, share: number): string {
  const length = Math.floor(text.length * share);
  if (length >= text.length) return text;
  const cut = text.slice(0, length);
  return /\s/.test(text[length] as string) ? cut : cut.replace(/\S+$/, "").trimEnd();
}

/** What hints tell. Absent: what the problem's privileged data has. */
export interface Told {
  readonly solution?: string;
  /** Of the solution that `begin` gives; default 0.5. */
  readonly share?: number;
}

/** The messages of a problem with a hint of that form in its last one. Throws DataError where the problem does not have what is to be told. */
export function hinted(problem: Problem, form: Exclude<Form, "judge">, told: Told = {}): Message[] {
  const { privileged = {} } = problem;
  const need = (name: "answer" | "steps" | "solution"): string => {
    const value = privileged[name];
    if (typeof value === "string") return value;
    throw new DataError({
      place: `problem ${problem.key}`,
      cause: `it has no privileged ${name}`,
      mend: "pose problems of the task chain with its option forms",
    });
  };
  switch (form) {
    case "answer":
    case "steps":
      return asked(problem, form, { [form]: need(form) });
    case "begin":
      return asked(problem, form, { begin: beginningOf(told.solution ?? need("solution"), told.share ?? 0.5) });
    case "solution":
      return asked(problem, form, { solution: told.solution ?? need("solution") });
    default:
      return asked(problem, form, {});
  }
}

/** The messages that ask which of two answers to a problem is right: `A`, the first, or `B`. */
export function choice(problem: Problem, first: string, second: string): Message[] {
  return asked(problem, "judge", { first, second });
}

function asked({ prompt }: Problem, form: Form, values: { readonly [name: string]: string }): Message[] {
  const last = prompt.at(-1) as Message;
  return [...prompt.slice(0, -1), { ...last, content: inForm(form, { problem: last.content, ...values }) }];
}
