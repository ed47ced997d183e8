/** A conversation with a policy, token in and token out: what was sampled stays as it was, and nothing is encoded twice. */
import type { Message } from "../core/problem.js";
import type { Tokenizer } from "../core/tokenizer.js";
import { renderedAfter } from "./observation.js";

export class Conversation {
  /** Everything so far, the last answer included. */
  private ids: Int32Array | undefined;

  constructor(private readonly tokenizer: Pick<Tokenizer, "encode" | "render" | "eosIds">) {}

  /** The ids under which an answer to these messages is drawn; the conversation itself stays as it is. */
  asked(messages: readonly Message[]): Int32Array {
    const { ids, tokenizer } = this;
    if (ids === undefined) return tokenizer.render(messages, { addGenerationPrompt: true });
    const ended = tokenizer.eosIds.includes(ids.at(-1) as number);
    return Int32Array.from([...ids, ...renderedAfter(tokenizer, messages, ended)]);
  }

  /** An answer that was drawn under what `asked` gave. */
  answered(context: Int32Array, answer: Int32Array): void {
    this.ids = Int32Array.from([...context, ...answer]);
  }

  reset(): void {
    this.ids = undefined;
  }
}
