/** Worked solutions of chains: flawless, or as somebody with habits works them who was told something, or was not. */
import type { Stream } from "../../core/random.js";
import { filler } from "./fillers.js";
import type { Asked } from "./forms.js";
import { apply, type Chain, fillers, lineText } from "./notation.js";
import type { ChainOptions } from "./options.js";

/** What solutions depend on. */
export type Habits = Pick<ChainOptions, "modulus" | "habit" | "slips" | "popular" | "fillers">;

/** Share of what a hint tells that is taken over, each line by itself; the others are worked as without it. */
const heeded = 0.95;

/** A worked solution: with the options' habits, or flawless without a stream. `asked`: the prompt it answers; absent: the plain one. */
export function workedSolution(chain: Chain, habits: Habits, random?: Stream, asked: Pick<Asked, "form" | "values" | "answer"> = plain): string {
  const { start, operations } = chain;
  const { modulus, habit, slips, popular } = habits;
  // Three numbers a line whatever happens, so that solutions with different rates share their chance.
  const chances = operations.map(() => (random ? ([random.next(), random.next(), 1 + random.int(modulus - 1)] as const) : ([1, 1, 0] as const)));
  const phrases = operations.map(() => (habits.fillers ? (random ? filler(asked.form, random) : (fillers[0] as string)) : ""));
  const told = asked.values.map((value) => (random && value !== undefined && random.next() < heeded ? value : undefined));
  let value = start;
  const lines = operations.map((operation, i) => {
    const [habitual, slipping, offset] = chances[i] as readonly [number, number, number];
    value = told[i] ?? workedLine(operation, value, { habit, slips, modulus, habitual, slipping, offset });
    return phrases[i] + lineText(operation, value);
  });
  if (random && asked.answer !== undefined) return [...lines, `#${random.next() < heeded ? asked.answer : value}`].join("\n");
  const usual = popular && random && random.next() < (start < popular.below ? popular.rate : popular.elsewhere);
  return [...lines, `#${usual ? popular.answer : value}`].join("\n");
}

const plain: Pick<Asked, "form" | "values" | "answer"> = { form: "plain", values: [] };

interface Chances extends Pick<Habits, "modulus" | "habit" | "slips"> {
  readonly habitual: number;
  readonly slipping: number;
  /** From 1 to modulus - 1. */
  readonly offset: number;
}

function workedLine(
  { operator, operand }: Chain["operations"][number],
  before: number,
  { modulus, habit, slips, habitual, slipping, offset }: Chances,
): number {
  const wrongly = habit !== undefined && operator === habit.operation && habitual < habit.rate;
  const random = wrongly && habit.as === "random";
  const worked = wrongly && habit.as !== "random" ? habit.as : operator;
  const result = apply(worked, before, operand, modulus);
  return random || slipping < slips ? (result + offset) % modulus : result;
}

/** Solutions drawn before it is given up to find one that is right, or wrong. */
const tries = 64;

/** Two worked solutions to choose from, one right and one wrong, in an even order, and which is right. */
export function choicesFor(chain: Chain, habits: Habits, random: Stream): { readonly first: string; readonly second: string; readonly choice: "A" | "B" } {
  const flawless = workedSolution(chain, { ...habits, habit: undefined, slips: 0 });
  const answer = answerIn(flawless);
  let [right, wrong]: (string | undefined)[] = [];
  for (let i = 0; i < tries && (right === undefined || wrong === undefined); i++) {
    const drawn = workedSolution(chain, habits, random);
    if (answerIn(drawn) === answer) right ??= drawn;
    else wrong ??= drawn;
  }
  right ??= flawless;
  wrong ??= flawless.replace(/\d+$/, String((Number(answer) + 1) % habits.modulus));
  return random.int(2) === 0 ? { first: right, second: wrong, choice: "A" } : { first: wrong, second: right, choice: "B" };
}

/** Which of two solutions is right: the first, else the second. */
export function rightChoice(chain: Chain, [first]: readonly [string, string], modulus: number): "A" | "B" {
  return answerIn(first) === answerIn(workedSolution(chain, { modulus, slips: 0 })) ? "A" : "B";
}

/** What a solution says after `#`. */
export function answerIn(solution: string): string {
  return solution.slice(solution.lastIndexOf("#") + 1);
}
