/** A lab for methods that score a batch's answers under hints: log-probs by the label of the context, or by the role. */
import { plainContext } from "../../src/core/problem.js";
import { randomKey } from "../../src/core/random.js";
import type { Scores, ScoreWant, Sequence } from "../../src/engine/contract.js";
import type { Lab } from "../../src/methods/contract.js";
import { settings } from "./method.js";

export interface Asked {
  readonly sequence: Sequence;
  readonly want: ScoreWant;
  /** The text that the context was rendered from; empty for one that was not. */
  readonly text: string;
}

/** `of` answers what is scored; `asked` collects it. Contexts are the bytes of their text. */
export function hintedLab(of: (asked: Asked, index: number) => Scores, asked: Asked[] = [], more: Partial<Lab> = {}): Lab {
  const texts = new WeakMap<object, string>();
  const lab = {
    step: 1,
    settings,
    problems: { size: 0, get: () => undefined },
    policy: { role: "policy" },
    engine: { name: "table", has: new Set(["score", "score.full", "score.top-k", "train.targets"]), lacks: {}, fingerprint: {} },
    weights: { info: async () => ({ maxTokens: 400, vocabulary: 3 }) },
    key: (meaning: Parameters<Lab["key"]>[0]) => randomKey({ seed: 5, ...meaning }),
    render: (messages: Parameters<Lab["render"]>[0], label?: string) => {
      const text = messages.map(({ content }) => content).join("\n");
      const context = plainContext(Buffer.from(text), label);
      texts.set(context, text);
      return context;
    },
    score: async (sequences: readonly Sequence[], want: ScoreWant = {}) =>
      sequences.map((sequence, i) => {
        const each = { sequence, want, text: texts.get(sequence.context) ?? "" };
        asked.push(each);
        return of(each, i);
      }),
    book: () => lab,
    ...more,
  } as unknown as Lab;
  return lab;
}
