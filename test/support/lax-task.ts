/** A task in which a fresh table policy is right about as often as wrong, so that every step has signal: the answer begins with a digit below 5. */
import { defineTask } from "../../src/tasks/define.js";
import { verifierOf } from "../../src/verify/simple.js";
import { tokenizer } from "./successor-task.js";

/** Twelve problems to train on, four held out; answers of at most two symbols. */
export const lax = defineTask({
  name: "lax",
  rows: () =>
    Array.from({ length: 16 }, (_, i) => ({
      prompt: `${i % 10}`.repeat(1 + Math.floor(i / 10)),
      key: `p${i}`,
      answer: "5",
      solution: `${i % 5}${i % 3}`,
      split: i < 12 ? ("train" as const) : ("eval" as const),
    })),
  verifier: {
    ...verifierOf("lax", ({ response, reference }) => response !== "" && Number(response[0]) < Number(reference), "1"),
    extract: (response) => response[0],
    same: (a, b) => a === b,
    locate: (response) => (response === "" ? undefined : { start: 0, end: 1 }),
  },
  maxTokens: () => 2,
  tokenizer: () => tokenizer,
});

export default lax;
