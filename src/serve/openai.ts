/** A policy under OpenAI's interface: models, completions and chats, whole or streamed. */
import { randomUUID } from "node:crypto";
import type { ServerResponse } from "node:http";
import { chatLogprobs, completionLogprobs, extras, namesOf, type Told, toldBy, usageOf } from "./openai-answer.js";
import { type CompletionWish, readChat, readCompletion, type Wish } from "./openai-request.js";
import type { Drawn, Policy } from "./policy.js";
import type { Asked, Route } from "./server.js";

export function policyRoutes(policy: Policy, deadlineMs: number): Route[] {
  return [
    { method: "GET", path: "/v1/models", deadlineMs, answer: async () => ({ object: "list", data: [modelOf(policy)] }) },
    { method: "POST", path: "/v1/completions", deadlineMs, answer: (asked) => completions(policy, asked) },
    { method: "POST", path: "/v1/chat/completions", deadlineMs, answer: (asked) => chats(policy, asked) },
  ];
}

const modelOf = ({ name, since, maxTokens }: Policy): object => ({
  id: name,
  object: "model",
  created: since,
  owned_by: "touchstone",
  max_model_len: maxTokens,
});

async function completions(policy: Policy, { body, signal, response }: Asked): Promise<object | undefined> {
  const wish = readCompletion(body);
  policy.refuseOther(wish.model);
  const { tokenizer } = policy;
  const contexts = wish.prompts.map((prompt) => (typeof prompt === "string" ? tokenizer.raw(prompt) : prompt));
  const head = headOf(policy, "cmpl", "text_completion");
  const name = namesOf(tokenizer, wish);
  const logprobs = (drawn: Drawn): object | null => (wish.logprobs ? completionLogprobs(toldBy(drawn.sample, wish.decoder.temperature), name) : null);
  if (wish.stream) {
    const stream = new Stream(response, head);
    const piece = (index: number, text: string, more: object = {}): object => ({ index, text, logprobs: null, finish_reason: null, ...more });
    const drawn = await policy.draw(contexts, wish.n, wish.decoder, signal, (index, text, ids) =>
      stream.send([piece(index, text, wish.tokenIds ? { token_ids: ids } : {})]),
    );
    drawn.forEach((each, index) => {
      // Its ids have come with its text; log-probs are there once all is drawn.
      const more = wish.tokenIds ? { ...extras(each, wish), token_ids: [] } : {};
      stream.send([piece(index, "", { logprobs: logprobs(each), finish_reason: each.finish, ...more })]);
    });
    return stream.end(wish, usageOf(contexts, drawn));
  }
  const drawn = wish.decoder.maxTokens === 0 ? [] : await policy.draw(contexts, wish.n, wish.decoder, signal);
  if (wish.echo) return { ...head, choices: await echoed(policy, wish, contexts, drawn, signal), usage: usageOf(contexts, drawn) };
  const prompted = (index: number): object => (wish.tokenIds ? { prompt_token_ids: [...(contexts[Math.floor(index / wish.n)] as Int32Array)] } : {});
  const choices = drawn.map((each, index) => ({
    index,
    text: each.text,
    logprobs: logprobs(each),
    finish_reason: each.finish,
    ...prompted(index),
    ...extras(each, wish),
  }));
  return { ...head, choices, usage: usageOf(contexts, drawn) };
}

/** Prompt and response as one text, with the log-probs of the prompt's own tokens. */
async function echoed(policy: Policy, wish: CompletionWish, contexts: readonly Int32Array[], drawn: readonly Drawn[], signal: AbortSignal): Promise<object[]> {
  const { decoder, n } = wish;
  const name = namesOf(policy.tokenizer, wish);
  const choices: object[] = [];
  for (const [i, context] of contexts.entries()) {
    const text = policy.tokenizer.decode(context, decoder.specials ? "show" : "skip");
    const scores = wish.logprobs ? await policy.score(context, 1, decoder.listed, signal) : undefined;
    const tempered =
      wish.tokenIds && decoder.temperature !== 1 && decoder.temperature !== 0 && scores ? await policy.score(context, decoder.temperature, 0, signal) : scores;
    for (let j = 0; j < n; j++) {
      const own = drawn[i * n + j];
      const told = own && toldBy(own.sample, decoder.temperature);
      choices.push({
        index: i * n + j,
        text: text + (own?.text ?? ""),
        logprobs: scores ? completionLogprobs(joined(context, scores, told), name) : null,
        finish_reason: own?.finish ?? "length",
        ...(wish.tokenIds && {
          prompt_token_ids: [...context],
          token_ids: own ? [...own.sample.ids] : [],
          ...(tempered && { touchstone: { prompt_logp: [null, ...tempered.logp], prompt_entropy: [null, ...(tempered.entropy ?? [])] } }),
        }),
      });
    }
  }
  return choices;
}

/** The prompt's log-probs, nothing of its first token, and those of a response behind them. */
function joined(context: Int32Array, { logp, top }: Omit<Told, "ids">, own: Told | undefined): Told {
  const k = top?.k ?? 0;
  const none = { ids: new Int32Array(k), logp: new Float64Array(k), tail: new Float64Array(1) };
  const parts = [none, ...(top ? [top] : []), ...(own?.top ? [own.top] : [])];
  return {
    ids: Int32Array.from([...context, ...Array.from(own?.ids ?? [])]),
    logp: [Number.NaN, ...Array.from(logp), ...Array.from(own?.logp ?? [])],
    ...(top && {
      top: {
        k,
        ids: Int32Array.from(parts.flatMap(({ ids }) => [...ids])),
        logp: Float64Array.from(parts.flatMap((part) => [...part.logp])),
        tail: Float64Array.from(parts.flatMap(({ tail }) => [...tail])),
      },
    }),
  };
}

async function chats(policy: Policy, { body, signal, response }: Asked): Promise<object | undefined> {
  const wish = readChat(body);
  policy.refuseOther(wish.model);
  const context = policy.tokenizer.render(wish.messages, { addGenerationPrompt: true });
  const name = namesOf(policy.tokenizer, wish);
  const logprobs = (drawn: Drawn): object | null => (wish.logprobs ? chatLogprobs(toldBy(drawn.sample, wish.decoder.temperature), name) : null);
  if (wish.stream) {
    const piece = (index: number, delta: object, more: object = {}): object => ({ index, delta, logprobs: null, finish_reason: null, ...more });
    const opening = Array.from({ length: wish.n }, (_, index) => piece(index, { role: "assistant", content: "" }));
    const stream = new Stream(response, headOf(policy, "chatcmpl", "chat.completion.chunk"), opening);
    const drawn = await policy.draw([context], wish.n, wish.decoder, signal, (index, content, ids) =>
      stream.send([piece(index, { content }, wish.tokenIds ? { token_ids: ids } : {})]),
    );
    drawn.forEach((each, index) => stream.send([piece(index, {}, { logprobs: logprobs(each), finish_reason: each.finish })]));
    return stream.end(wish, usageOf([context], drawn));
  }
  const drawn = await policy.draw([context], wish.n, wish.decoder, signal);
  const choices = drawn.map((each, index) => ({
    index,
    message: { role: "assistant", content: each.text, refusal: null },
    logprobs: logprobs(each),
    finish_reason: each.finish,
    ...extras(each, wish),
  }));
  const prompt = wish.tokenIds ? { prompt_token_ids: [...context] } : {};
  return { ...headOf(policy, "chatcmpl", "chat.completion"), choices, ...prompt, usage: usageOf([context], drawn) };
}

interface Head {
  readonly id: string;
  readonly object: string;
  readonly created: number;
  readonly model: string;
}

const headOf = ({ name }: Policy, kind: string, object: string): Head => ({
  id: `${kind}-${randomUUID().replaceAll("-", "")}`,
  object,
  created: Math.floor(Date.now() / 1000),
  model: name,
});

/** Pieces of an answer as they come (server-sent events). Nothing is sent before the first, so that a fault until then has a status of its own. */
class Stream {
  private begun = false;

  constructor(
    private readonly response: ServerResponse,
    private readonly head: Head,
    /** The choices of a piece before the first. */
    private readonly opening?: readonly object[],
  ) {}

  send(choices: readonly object[], more: object = {}): void {
    if (!this.begun) {
      this.begun = true;
      this.response.writeHead(200, { "Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-store", "X-Accel-Buffering": "no" });
      if (this.opening) this.send(this.opening);
    }
    this.response.write(`data: ${JSON.stringify({ ...this.head, choices, ...more })}\n\n`);
  }

  end({ usage }: Wish, used: object): undefined {
    if (usage) this.send([], { usage: used });
    this.response.end("data: [DONE]\n\n");
    return undefined;
  }
}
