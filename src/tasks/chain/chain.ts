/**
 * The task `chain`: a start value and some operations modulo a small number, worked one line each, then the answer. A
 * small policy learns it in minutes, and the worked solutions can carry a habit (`*` worked as `+`) that reinforcement has
 * to unlearn: sampling still finds the right way, the most likely way is wrong.
 */
import { DataError } from "../../core/errors.js";
import type { Problem } from "../../core/problem.js";
import type { Stream } from "../../core/random.js";
import { defineTask, problemKey } from "../define.js";
import { weighted } from "./fillers.js";
import { type Asked, beginningOf, type Form, formNames, formSymbols, inForm, readAsked, stepsOf } from "./forms.js";
import { type Chain, chainText, chainTokenizer, fillers, type Operator, operators } from "./notation.js";
import { type ChainOptions, chainOptions } from "./options.js";
import { chainVerifier } from "./verify.js";
import { answerIn, choicesFor, rightChoice, workedSolution } from "./worked.js";

export { type ResponseToken, responseTokens, type TokenKind } from "./fillers.js";
export { beginningOf, choice, type Form, forms, hinted, type Told } from "./forms.js";
export { fillers } from "./notation.js";
export { type ChainOptions, chainOptions, misconception } from "./options.js";
export { workedSolution } from "./worked.js";

/** The chain of a problem of this task. Throws DataError for another problem. */
export function chainOf(problem: Problem): Chain {
  return askedOf(problem).chain;
}

function askedOf(problem: Problem): Asked {
  const text = problem.prompt.at(-1)?.content ?? "";
  const asked = readAsked(text);
  if (asked === undefined)
    throw new DataError({ place: `problem ${problem.key}`, cause: `${JSON.stringify(text)} is no chain`, mend: "pose problems of the task chain" });
  return asked;
}

function drawnChain(random: Stream, { modulus, min_operations, max_operations, lengths, counts }: ChainOptions): Chain {
  const length = min_operations + (lengths ? weighted(lengths, random) : random.int(max_operations - min_operations + 1));
  const start = random.int(modulus);
  if (counts === undefined) return { start, operations: Array.from({ length }, () => ({ operator: random.pick(operators), operand: random.int(modulus) })) };
  return { start, operations: countedOperators(random, length, counts).map((operator) => ({ operator, operand: random.int(modulus) })) };
}

/** The operators of a chain in which one occurs as often as drawn, at even places, and the others share the rest. */
function countedOperators(random: Stream, length: number, { operation, weights }: NonNullable<ChainOptions["counts"]>): Operator[] {
  const count = Math.min(length, weighted(weights, random));
  const others = operators.filter((operator) => operator !== operation);
  return random.shuffle(Array.from({ length }, (_, i) => (i < count ? operation : random.pick(others))));
}

/** Shares of a solution that problems with the form `begin` give. */
const beginnings = [0.2, 0.4, 0.6, 0.8] as const;

/** T-CHAIN, with its options. */
export const chain = defineTask({
  name: "chain",
  options: chainOptions,
  draw: (random, options) => {
    const { modulus, forms, counts } = options;
    const drawn = drawnChain(random, options);
    const solution = workedSolution(drawn, { modulus, slips: 0, fillers: options.fillers });
    const tags = {
      operations: drawn.operations.length,
      ...(counts && { difficulty: drawn.operations.filter(({ operator }) => operator === counts.operation).length }),
    };
    const plain = { prompt: chainText(drawn), answer: answerIn(solution), solution, tags };
    if (forms === undefined) return plain;
    const form = formNames[weighted(Object.values(forms), random)] as Form;
    const told = { answer: plain.answer, steps: stepsOf(drawn, modulus).join(" ") };
    const choices = form === "judge" ? choicesFor(drawn, options, random) : undefined;
    const begin = form === "begin" ? beginningOf(solution, random.pick(beginnings)) : "";
    return {
      ...plain,
      // Keyed by the chain alone, so that no chain is held out in one form and trained on in another.
      key: problemKey("chain", plain.prompt),
      prompt: inForm(form, { problem: plain.prompt, solution, begin, ...told, ...choices }),
      ...(choices && { answer: choices.choice }),
      privileged: told,
      tags: { ...tags, form },
    };
  },
  verifier: ({ modulus, strict, fillers: phrases, forms }) => chainVerifier(modulus, { strict, fillers: phrases, choices: (forms?.judge ?? 0) > 0 }),
  solution: (problem, random, options) => {
    const asked = askedOf(problem);
    return asked.choices ? rightChoice(asked.chain, asked.choices, options.modulus) : workedSolution(asked.chain, options, random, asked);
  },
  tokenizer: ({ modulus, fillers: phrases, forms }) => chainTokenizer(modulus, phrases || forms ? [...fillers, ...formSymbols] : []),
  // Five tokens a line, or six with a phrase, `#`, the answer, and the end token.
  maxTokens: (options) => (options.fillers ? 6 : 5) * options.max_operations + 3,
});
