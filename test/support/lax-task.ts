/** A task in which a fresh table policy is right about as often as wrong, so that every step has signal: the answer begins with a digit below 5. */
import { defineTask } from "../../src/tasks/define.js";
import { tokenizer } from "./successor-task.js";

/** Twelve problems to train on, four held out; answers of at most two symbols. */
export const lax = defineTask({
  name: "lax",
  rows: () =>
    Array.from({ length: 16 }, (_, i) => ({
      prompt: `${i % 10}`.repeat(1 + Math.floor(i / 10)),
      key: `p${i}`,
      answer: "5",
      split: i < 12 ? ("train" as const) : ("eval" as const),
    })),
  verify: ({ response, reference }) => response !== "" && Number(response[0]) < Number(reference),
  maxTokens: () => 2,
  tokenizer: () => tokenizer,
});
