/** A task with a tool, and tools that misbehave. A module of its own, as users write them, so that a thread can load it. */
import { alphabetTokenizer } from "../../src/core/alphabet.js";
import { shortCalls } from "../../src/tasks/calls.js";
import { defineTask } from "../../src/tasks/define.js";
import { tool, tools } from "../../src/tasks/tools.js";

export const tokenizer = alphabetTokenizer([..."0123456789+#!", "add(", "wait(", "loop(", "fail(", "print(", ")"]);

const add = tool({ name: "add", description: "a+b, last digit", run: (text) => String(text.split("+").reduce((sum, n) => sum + Number(n), 0) % 10) });
const wait = tool({ name: "wait", description: "never answers", run: () => new Promise<string>(() => undefined) });
const loop = tool({
  name: "loop",
  description: "computes for ever",
  run: () => {
    for (;;);
  },
});
const fail = tool({
  name: "fail",
  description: "throws",
  run: (): string => {
    throw new Error("disk on fire");
  },
});
const print = tool({ name: "print", description: "prints without end", run: (digit) => digit.repeat(1_000_000) });

/** `3+4` is answered by `#7`, after as many calls as one likes. */
export const adder = (deadlineMs = 30) =>
  defineTask({
    name: "adder",
    rows: () =>
      Array.from({ length: 16 }, (_, i) => ({
        prompt: `${i % 4}+${i % 5}`,
        key: `p${i}`,
        answer: ((i % 4) + (i % 5)) % 10,
        split: i < 12 ? ("train" as const) : ("eval" as const),
      })),
    verify: ({ response, reference }) => response === `#${reference}`,
    action: ({ prompt, reference }, turns) => (turns.length === 0 ? `add(${prompt[0]?.content})` : `#${reference.answer}`),
    maxTokens: 48,
    tokenizer,
    environment: tools({
      tools: [add, wait, loop, fail, print],
      syntax: shortCalls,
      error: () => "!",
      callsAtOnce: 1,
      deadlineMs,
      limits: { turns: 4, turnTokens: 8, observationCharacters: 40, observationTokens: 12 },
    }),
  })();

export default adder();
