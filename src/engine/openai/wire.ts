/** Completions as servers send them: requests by token ids, and ids and log-probs of what comes back. */
import type { Answer } from "../../core/http.js";
import type { Json } from "../../core/json.js";
import { CallFault } from "../../core/patient.js";
import type { RandomKey } from "../../core/random.js";
import type { SampleRequest } from "../contract.js";

/** How a server tells which tokens it drew. */
export type IdsBy = "returned" | "named" | "text";

/** Whose log-probs a server tells: of the whole distribution at temperature 1, of the one drawn from, or both and entropies (ours). */
export type LogpOf = "raw" | "processed" | "both" | "unknown";

/** Fields beyond OpenAI's that servers such as vLLM take. */
export const extensions = { return_token_ids: true, return_tokens_as_token_ids: true, skip_special_tokens: false, ignore_eos: true } as const;

/** A seed that any server takes, from the key's 128 bits. */
export const seedOf = ([a, b]: RandomKey): number => (a + (b & 0xfffff) * 2 ** 32) % (Number.MAX_SAFE_INTEGER + 1);

/** The body that asks for one response. */
export function sampleBody(
  model: string,
  request: SampleRequest,
  { extended, listed }: { readonly extended: boolean; readonly listed: 0 | 1 },
): { readonly [name: string]: Json } {
  const { context, temperature, greedy, truncation, maxTokens, stop, key } = request;
  const { topP, topK, minP } = truncation ?? {};
  return {
    model,
    prompt: [...context.ids],
    max_tokens: maxTokens,
    temperature: greedy ? 0 : temperature,
    ...(topP !== undefined && { top_p: topP }),
    ...(topK !== undefined && { top_k: topK }),
    ...(minP !== undefined && minP > 0 && { min_p: minP }),
    n: 1,
    seed: seedOf(key),
    logprobs: listed,
    ...(extended && { ...extensions, stop_token_ids: [...stop.ids] }),
  };
}

/** What has come of one response. */
export interface Drawn {
  /** The ids as the server tells them; undefined where it tells texts alone. */
  readonly ids: readonly number[] | undefined;
  /** The texts of tokens, where log-probs come with them. */
  readonly texts: readonly string[];
  readonly text: string;
  readonly logp: readonly number[];
  /** Numbers in full, of a server of ours. */
  readonly own?: { readonly rawLogp: readonly number[]; readonly logp: readonly number[]; readonly entropy: readonly number[] };
  readonly finish: string | undefined;
  /** Its caller ended it, by an end token or otherwise. */
  readonly ended?: "eos" | "stop";
}

type Fields = { readonly [name: string]: Json | undefined };

const fieldsOf = (value: Json | undefined): Fields => (typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {});
const listOf = (value: Json | undefined): readonly Json[] => (Array.isArray(value) ? (value as readonly Json[]) : []);
const numbersOf = (value: Json | undefined): readonly number[] => listOf(value).map((each) => (typeof each === "number" ? each : Number.NaN));

const named = /^token_id:(\d+)$/;

/** The JSON of an answer. Throws a CallFault that may pass: half an answer is one that was cut on its way. */
export function jsonOf({ body }: Pick<Answer, "body">, title: string): Fields {
  try {
    return fieldsOf(JSON.parse(body.toString("utf8")) as Json);
  } catch {
    throw new CallFault("malformed", `${title}: its answer is not JSON (${JSON.stringify(body.toString("utf8", 0, 60))}…)`, true);
  }
}

/** The first choice of an answer, or of a piece of a stream; undefined where there is none. Throws CallFault for an error in its place. */
export function choiceOf(answer: Fields, title: string): Fields | undefined {
  const error = fieldsOf(answer.error);
  if (answer.error !== undefined && answer.error !== null)
    throw new CallFault("refused", `${title}: ${String(error.message ?? "it answers with an error").slice(0, 300)}`, false);
  const [choice] = listOf(answer.choices);
  return choice === undefined ? undefined : fieldsOf(choice);
}

/** Adds up the choices of one response: a single one, or the pieces of a stream. */
export class Collected {
  private readonly ids: number[] = [];
  private readonly texts: string[] = [];
  private readonly logp: number[] = [];
  private text = "";
  private told = false;
  private own: Drawn["own"];
  private finish: string | undefined;
  private ended: Drawn["ended"];

  /** Ends the response after so many tokens. */
  cut(count: number, byEnd: boolean): void {
    for (const list of [this.ids, this.texts, this.logp]) list.length = Math.min(list.length, count);
    this.finish = "stop";
    this.ended = byEnd ? "eos" : "stop";
  }

  /** The ids that this choice adds; empty where it tells none. */
  add(choice: Fields): readonly number[] {
    this.text += typeof choice.text === "string" ? choice.text : "";
    const logprobs = fieldsOf(choice.logprobs as Json);
    const tokens = listOf(logprobs.tokens).map(String);
    this.texts.push(...tokens);
    this.logp.push(...numbersOf(logprobs.token_logprobs));
    const ids = Array.isArray(choice.token_ids)
      ? numbersOf(choice.token_ids)
      : tokens.every((token) => named.test(token))
        ? tokens.map((token) => Number(named.exec(token)?.[1]))
        : undefined;
    if (ids !== undefined && (ids.length > 0 || Array.isArray(choice.token_ids))) this.told = true;
    this.ids.push(...(ids ?? []));
    const own = fieldsOf(choice.touchstone as Json);
    if (Array.isArray(own.logp)) this.own = { rawLogp: numbersOf(own.raw_logp), logp: numbersOf(own.logp), entropy: numbersOf(own.entropy) };
    if (typeof choice.finish_reason === "string") this.finish = choice.finish_reason;
    return ids ?? [];
  }

  drawn(): Drawn {
    const { text, texts, logp, own, finish } = this;
    return { ids: this.told ? this.ids : undefined, texts, text, logp, finish, ...(own && { own }), ...(this.ended && { ended: this.ended }) };
  }
}

/** Log-probs of a prompt's own tokens, from an answer that echoes it; nothing of the first. */
export function echoOf(
  choice: Fields,
  length: number,
): { readonly logp: readonly number[]; readonly tempered?: { readonly logp: readonly number[]; readonly entropy: readonly number[] } } | undefined {
  const logp = numbersOf(fieldsOf(choice.logprobs as Json).token_logprobs).slice(0, length);
  if (logp.length < length || logp.slice(1).some(Number.isNaN)) return undefined;
  const own = fieldsOf(choice.touchstone as Json);
  const tempered = Array.isArray(own.prompt_logp) ? { logp: numbersOf(own.prompt_logp), entropy: numbersOf(own.prompt_entropy) } : undefined;
  return { logp, ...(tempered && { tempered }) };
}

/** Pieces of a stream of server-sent events as their data, in order, however they are cut on their way. */
export class Events {
  private rest = "";
  private readonly decoder = new TextDecoder();

  push(piece: Buffer): string[] {
    this.rest += this.decoder.decode(piece, { stream: true });
    const blocks = this.rest.split(/\r?\n\r?\n/);
    this.rest = blocks.pop() as string;
    return blocks.flatMap((block) => {
      const lines = block.split(/\r?\n/).flatMap((line) => /^data: ?(.*)$/.exec(line)?.[1] ?? []);
      return lines.length === 0 ? [] : [lines.join("\n")];
    });
  }
}
