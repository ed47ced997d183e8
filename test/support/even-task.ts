/** A task for policies that have seen nothing: six symbols, rewarded by the share of even digits. A module of its own, as users write them. */
import { alphabetTokenizer } from "../../src/core/alphabet.js";
import { accept, partial, type Verdict } from "../../src/core/verdict.js";
import { defineTask } from "../../src/tasks/define.js";
import { rejectFor } from "../../src/verify/contract.js";

/** With the special tokens twelve ids: all that the test server's model has. */
const digits = [..."0123456"];
const length = 6;

const even = defineTask({
  name: "even",
  rows: () =>
    Array.from({ length: 40 }, (_, i) => ({
      prompt: `${i % 7}${(i * 3) % 7}${Math.floor(i / 7)}`,
      key: `p${i}`,
      answer: "even",
      split: i < 32 ? ("train" as const) : ("eval" as const),
    })),
  verify: ({ response }): Verdict => {
    const share = [...response].filter((symbol) => "0246".includes(symbol)).length / length;
    return share >= 1 ? accept() : share > 0 ? partial(share) : rejectFor("wrong");
  },
  maxTokens: length,
  tokenizer: alphabetTokenizer(digits),
});

export default even;
