/** A task that a softmax table learns: answer the last digit with the next one, and stop. A module of its own, as users write them. */
import { alphabetTokenizer } from "../../src/core/alphabet.js";
import { defineTask } from "../../src/tasks/define.js";

const digits = [..."0123456789"];
export const tokenizer = alphabetTokenizer(digits);

/** Twelve problems to train on, two digits each, and four held out; the answer is the last digit's successor. */
const successor = defineTask({
  name: "successor",
  rows: () =>
    Array.from({ length: 16 }, (_, i) => {
      const text = `${i % 7}${(i * 3) % 10}`;
      return { prompt: text, key: `p${i}`, answer: String((Number(text[1]) + 1) % 10), split: i < 12 ? ("train" as const) : ("eval" as const) };
    }),
  verify: ({ response, reference }) => response === reference,
  maxTokens: () => 3,
  tokenizer: () => tokenizer,
});

export default successor;
