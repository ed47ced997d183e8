/** A task whose verifier never ends on an answer, and has a verdict for none: a loop behind an `await`, which only the end of its thread stops. */
import { defineTask } from "../../src/tasks/define.js";
import { tokenizer } from "./successor-task.js";

export default defineTask({
  name: "looping",
  rows: () => Array.from({ length: 8 }, (_, i) => ({ prompt: `${i}`, answer: "1", split: "train" as const })),
  verify: async ({ response }) => {
    await Promise.resolve();
    if (response !== "") for (;;);
    return false;
  },
  maxTokens: 1,
  tokenizer,
});
