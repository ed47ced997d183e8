/**
 * The task `add`: two numbers of some digits, added digit by digit from the right with the carry written down, then the sum.
 * The habit of the worked solutions is to forget the carry. Problem `47+85`, solution `7+5c0=2c1`, `4+8c1=3c1`, `#132`:
 * digit, digit and the carry that came, then what is written and the carry that goes on.
 */
import { z } from "zod";
import { alphabetTokenizer } from "../../core/alphabet.js";
import { DataError } from "../../core/errors.js";
import type { Problem } from "../../core/problem.js";
import type { Stream } from "../../core/random.js";
import type { Verifier } from "../../verify/contract.js";
import { defineTask, problemKey } from "../define.js";
import { linesVerifier } from "../lines.js";

export const addOptions = z.strictObject({
  digits: z.int().min(1).max(6).default(2).describe("Digits of each number, the first of them never 0."),
  habit: z
    .strictObject({ rate: z.number().min(0).max(1).describe("Share of the carries that are forgotten, each by itself.") })
    .optional()
    .describe("A wrong habit in the worked solutions: a carry of 1 is written as 0, and the lines after it go on from that. Absent: none."),
  slips: z.number().min(0).max(1).default(0).describe("Share of the lines of worked solutions whose written digit is a random wrong one."),
});
export type AddOptions = z.output<typeof addOptions>;

/** The habit of a start that reinforcement can use: three carries in four are forgotten, and 3 % of the lines slip. */
export const forgottenCarries = { habit: { rate: 0.75 }, slips: 0.03 } as const satisfies Partial<AddOptions>;

/** One line of work: two digits and the carry that came, the digit written and the carry that goes on. */
export interface Column {
  readonly a: number;
  readonly b: number;
  readonly carry: number;
  readonly written: number;
  readonly next: number;
}

/** The two numbers of a problem of this task. Throws DataError for another problem. */
export function addendsOf(problem: Problem): readonly [number, number] {
  const text = problem.prompt.at(-1)?.content ?? "";
  const match = /^([1-9]\d{0,5})\+([1-9]\d{0,5})$/.exec(text);
  if (match !== null && match[1]?.length === match[2]?.length) return [Number(match[1]), Number(match[2])];
  throw new DataError({ place: `problem ${problem.key}`, cause: `${JSON.stringify(text)} is no sum`, mend: "pose problems of the task add" });
}

const columnText = ({ a, b, carry, written, next }: Column): string => `${a}+${b}c${carry}=${written}c${next}`;

/** The inverse of a line's text; undefined for other text. */
export function readColumn(text: string): Column | undefined {
  const match = /^(\d)\+(\d)c([01])=(\d)c([01])$/.exec(text);
  if (match === null) return undefined;
  const [a, b, carry, written, next] = match.slice(1).map(Number) as [number, number, number, number, number];
  return { a, b, carry, written, next };
}

/** Digits from the right. */
const digitsOf = (n: number): number[] => [...String(n)].reverse().map(Number);

/** A worked solution: with the options' habit and slips, or flawless without a stream. */
export function workedSum([first, second]: readonly [number, number], { habit, slips }: Pick<AddOptions, "habit" | "slips">, random?: Stream): string {
  const [a, b] = [digitsOf(first), digitsOf(second)];
  let carry = 0;
  const columns = a.map((digit, i): Column => {
    // Three numbers a line whatever happens, so that solutions with different rates share their chance.
    const [forgetting, slipping, offset] = random ? [random.next(), random.next(), 1 + random.int(9)] : [1, 1, 0];
    const sum = digit + (b[i] as number) + carry;
    const written = slipping < slips ? (sum + offset) % 10 : sum % 10;
    const next = sum >= 10 && !(forgetting < (habit?.rate ?? 0)) ? 1 : 0;
    const column = { a: digit, b: b[i] as number, carry, written, next };
    carry = next;
    return column;
  });
  const answer = Number(
    `${carry}${columns
      .map(({ written }) => written)
      .reverse()
      .join("")}`,
  );
  return [...columns.map(columnText), `#${answer}`].join("\n");
}

/** Accepts by the sum alone; how many columns are right, each measured from the carry written before it, is the part `lines`. */
export function addVerifier(digits: number): Verifier {
  return linesVerifier<Column>({
    name: "add",
    version: "1",
    options: { digits },
    checkReference: (reference) =>
      typeof reference === "string" && /^[1-9]\d*$/.test(reference) && reference.length <= digits + 1 ? undefined : "a sum as text is needed",
    readLine: readColumn,
    right: (problem, columns) => {
      const [a, b] = addendsOf(problem).map(digitsOf) as [number[], number[]];
      let before = 0;
      return Array.from({ length: Math.max(columns.length, a.length) }, (_, i) => {
        const [column, x, y] = [columns[i], a[i], b[i]];
        if (column === undefined || x === undefined || y === undefined) return false;
        const sum = x + y + before;
        const asked = column.a === x && column.b === y && column.carry === before;
        before = column.next;
        return asked && column.written === sum % 10 && column.next === Math.floor(sum / 10);
      });
    },
  });
}

/** T-ADD, with its options. */
export const add = defineTask({
  name: "add",
  options: addOptions,
  draw: (random, { digits }) => {
    const least = 10 ** (digits - 1);
    const [first, second] = [least + random.int(9 * least), least + random.int(9 * least)];
    const carries = carriesOf(first, second);
    // One key for both orders, so that no sum is trained on whose twin is held out.
    const key = problemKey("add", `${Math.min(first, second)}+${Math.max(first, second)}`);
    return { key, prompt: `${first}+${second}`, answer: String(first + second), solution: workedSum([first, second], { slips: 0 }), tags: { carries } };
  },
  verifier: ({ digits }) => addVerifier(digits),
  solution: (problem, random, options) => workedSum(addendsOf(problem), options, random),
  tokenizer: alphabetTokenizer([..."0123456789", "+", "=", "c0", "c1", "#", "\n"]),
  // Seven tokens and the end of line a column, `#`, one digit more than each number has, and the end token.
  maxTokens: ({ digits }) => 8 * digits + digits + 3,
});

/** How many columns of a sum carry. */
export function carriesOf(first: number, second: number): number {
  return workedSum([first, second], { slips: 0 }).match(/c1(?=\n)/g)?.length ?? 0;
}
