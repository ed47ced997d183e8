/** Requests of OpenAI's interface: each field is used, has no effect by its nature, or is refused. */
import { z } from "zod";
import type { Json } from "../core/json.js";
import { parseOptions } from "../core/options.js";
import type { Message } from "../core/problem.js";
import type { Truncation } from "../core/trajectory.js";
import { temperatures } from "../engine/contract.js";
import type { Decoder } from "./policy.js";
import { Refusal } from "./refusal.js";

const mostChoices = 128;
const mostListed = 20;
const json = z.json() as z.ZodType<Json>;

/** What may stand there and changes no answer. */
const idle = {
  user: json,
  metadata: json,
  store: json,
  service_tier: json,
  prompt_cache_key: json,
  safety_identifier: json,
  parallel_tool_calls: json,
} as const;

/** What changes answers in a way that is not built: taken where it says that nothing is to be changed. */
const neutral: { readonly [name: string]: readonly Json[] } = {
  frequency_penalty: [0],
  presence_penalty: [0],
  repetition_penalty: [1],
  logit_bias: [],
  suffix: [""],
  best_of: [1],
  tools: [],
  functions: [],
  tool_choice: ["none", "auto"],
  response_format: [],
  modalities: [],
};

const shared = {
  model: z.string().optional(),
  max_tokens: z.int().min(0).nullish(),
  temperature: z.number().min(0).max(temperatures.most).nullish(),
  top_p: z.number().gt(0).max(1).nullish(),
  top_k: z.int().min(-1).nullish(),
  min_p: z.number().min(0).max(1).nullish(),
  n: z.int().min(1).max(mostChoices).nullish(),
  stop: z.union([z.string(), z.array(z.string()).max(64)]).nullish(),
  stop_token_ids: z.array(z.int().min(0)).nullish(),
  ignore_eos: z.boolean().nullish(),
  seed: z.int().nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.strictObject({ include_usage: z.boolean().nullish(), include_obfuscation: z.boolean().nullish() }).nullish(),
  skip_special_tokens: z.boolean().nullish(),
  include_stop_str_in_output: z.boolean().nullish(),
  return_token_ids: z.boolean().nullish(),
  return_tokens_as_token_ids: z.boolean().nullish(),
  ...Object.fromEntries(Object.entries(idle).map(([name, schema]) => [name, schema.nullish()])),
  ...Object.fromEntries(Object.keys(neutral).map((name) => [name, json.nullish()])),
};

const ids = z.array(z.int().min(0));
const completion = z.strictObject({
  ...shared,
  prompt: z.union([z.string(), z.array(z.string()).min(1), ids.min(1), z.array(ids.min(1)).min(1)]),
  logprobs: z.int().min(0).max(mostListed).nullish(),
  echo: z.boolean().nullish(),
});

const part = z.strictObject({ type: z.literal("text"), text: z.string() });
const chat = z.strictObject({
  ...shared,
  messages: z
    .array(z.looseObject({ role: z.enum(["system", "developer", "user", "assistant", "tool"]), content: z.union([z.string(), z.array(part)]) }))
    .min(1),
  max_completion_tokens: z.int().min(1).nullish(),
  logprobs: z.boolean().nullish(),
  top_logprobs: z.int().min(0).max(mostListed).nullish(),
});

/** What both kinds ask. */
export interface Wish {
  readonly model: string | undefined;
  readonly n: number;
  readonly decoder: Decoder;
  readonly stream: boolean;
  /** The last piece of a stream says how many tokens there were. */
  readonly usage: boolean;
  readonly logprobs: boolean;
  readonly tokenIds: boolean;
  /** Tokens in log-probs are called `token_id:17`. */
  readonly tokensAsIds: boolean;
}

export interface CompletionWish extends Wish {
  readonly prompts: readonly (string | Int32Array)[];
  readonly echo: boolean;
}

export interface ChatWish extends Wish {
  readonly messages: readonly Message[];
}

/** The default of OpenAI's completions. */
const completionTokens = 16;

/** Throws ConfigError or Refusal for what cannot be meant. */
export function readCompletion(body: Json): CompletionWish {
  const given = parseOptions(completion, body, "the request");
  const { prompt, logprobs, echo, max_tokens: most } = given;
  const wish = wishOf(given, { most: most ?? completionTokens, listed: logprobs ?? 0, logprobs: logprobs !== null && logprobs !== undefined });
  if (echo && wish.stream) throw new Refusal(400, "echo does not go with stream", { param: "echo" });
  if (most === 0 && !echo) throw new Refusal(400, "max_tokens is 0, which asks for nothing unless echo is true", { param: "max_tokens" });
  const isIds = (value: unknown): value is readonly number[] => Array.isArray(value) && typeof value[0] === "number";
  const list: readonly (string | readonly number[])[] = typeof prompt === "string" || isIds(prompt) ? [prompt] : prompt;
  return { ...wish, prompts: list.map((one) => (typeof one === "string" ? one : Int32Array.from(one))), echo: echo === true };
}

/** Throws ConfigError or Refusal for what cannot be meant. */
export function readChat(body: Json): ChatWish {
  const given = parseOptions(chat, body, "the request");
  const { messages, logprobs, top_logprobs: listed, max_completion_tokens: most } = given;
  if (given.max_tokens === 0) throw new Refusal(400, "max_tokens is 0, which asks for nothing", { param: "max_tokens" });
  if ((listed ?? 0) > 0 && !logprobs) throw new Refusal(400, "top_logprobs wants logprobs to be true", { param: "top_logprobs" });
  return {
    ...wishOf(given, { most: most ?? given.max_tokens ?? undefined, listed: listed ?? 0, logprobs: logprobs === true }),
    messages: messages.map(({ role, content }) => ({
      role: role === "developer" ? "system" : role,
      content: typeof content === "string" ? content : content.map(({ text }) => text).join(""),
    })),
  };
}

type Shared = z.output<z.ZodObject<typeof shared>>;

function wishOf(given: Shared, { most, listed, logprobs }: { readonly most: number | undefined; readonly listed: number; readonly logprobs: boolean }): Wish {
  refuseUnbuilt(given);
  const { temperature, top_p: topP, top_k: topK, min_p: minP, stop, seed } = given;
  // 0 and -1 are how other servers write that all tokens are kept.
  const truncation: Truncation = {
    ...(topP != null && topP < 1 && { topP }),
    ...(topK != null && topK > 0 && { topK }),
    ...(minP != null && minP > 0 && { minP }),
  };
  const heat = temperature ?? 1;
  if (heat !== 0 && heat < temperatures.least)
    throw new Refusal(400, `temperature is ${heat}: give 0 for the most likely token, or at least ${temperatures.least}`, { param: "temperature" });
  const restricted = Object.keys(truncation).length > 0 && heat !== 0;
  if (listed > 0 && restricted && heat !== 1) {
    throw new Refusal(400, "the log-probs of other tokens are told at temperature 0 or 1, or without top_p, top_k and min_p", { param: "logprobs" });
  }
  const stops = (typeof stop === "string" ? [stop] : (stop ?? [])).filter((text) => text !== "");
  return {
    model: given.model,
    n: given.n ?? 1,
    decoder: {
      temperature: heat,
      truncation: restricted ? truncation : undefined,
      maxTokens: most,
      stops,
      stopIds: given.stop_token_ids ?? [],
      ignoreEos: given.ignore_eos === true,
      seed: seed ?? undefined,
      listed,
      specials: given.skip_special_tokens === false,
      wholeStop: given.include_stop_str_in_output === true,
    },
    stream: given.stream === true,
    usage: given.stream_options?.include_usage === true,
    logprobs,
    tokenIds: given.return_token_ids === true,
    tokensAsIds: given.return_tokens_as_token_ids === true,
  };
}

function refuseUnbuilt(given: { readonly [name: string]: unknown }): void {
  for (const [name, allowed] of Object.entries(neutral)) {
    const value = given[name];
    if (value === undefined || value === null || allowed.some((each) => each === value) || isEmpty(name, value)) continue;
    throw new Refusal(400, `${name} is not built: leave it out`, { param: name, code: "unsupported_parameter" });
  }
}

function isEmpty(name: string, value: unknown): boolean {
  if (name === "response_format") return (value as { readonly type?: unknown }).type === "text";
  if (name === "modalities") return Array.isArray(value) && value.every((each) => each === "text");
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}
