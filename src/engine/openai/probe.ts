/**
 * What a server can do, found by asking it: requests of a few tokens whose answers tell. Nothing is believed of a name or a
 * version, and what a server takes without doing it counts as missing.
 */
import { ConfigError } from "../../core/errors.js";
import type { Http } from "../../core/http.js";
import type { Json } from "../../core/json.js";
import { nearestName } from "../../core/options.js";
import { CallFault, type Patient } from "../../core/patient.js";
import type { Capability, EngineInfo } from "../contract.js";
import { lacksOfAll } from "./abilities.js";
import { exactIds, type LocalVocabulary } from "./exact-ids.js";
import { Collected, choiceOf, type Drawn, Events, echoOf, extensions, type IdsBy, jsonOf, type LogpOf } from "./wire.js";

export interface Facts {
  readonly idsBy: IdsBy;
  readonly logpOf: LogpOf;
  /** It takes fields beyond OpenAI's. */
  readonly extended: boolean;
  /** `logprobs` that it is asked with: some servers take 0 for none. */
  readonly listed: 0 | 1;
  /** Pieces of a stream tell ids. */
  readonly streams: boolean;
  /** `max_tokens` that an echo is asked with. */
  readonly echoTokens: 0 | 1;
  /** The server's own limit of context and response. */
  readonly maxTokens: number | undefined;
  readonly has: ReadonlySet<Capability>;
  readonly lacks: EngineInfo["lacks"];
}

export interface ProbeParts {
  readonly http: Http;
  readonly calls: Patient;
  readonly served: string;
  readonly vocabulary: LocalVocabulary;
  readonly signal?: AbortSignal;
}

type Body = { readonly [name: string]: Json };

/** Log-probs of the same token by two ways may differ by so much: servers compute in 16 bits. */
const near = 0.1;

/** Throws ConfigError where the server does not have the model; CallFault where it cannot be asked. */
export async function probe(parts: ProbeParts): Promise<Facts> {
  const { calls, http, served, vocabulary } = parts;
  const more = parts.signal && { signal: parts.signal };
  const ask = (body: Body): Promise<Drawn & { readonly choice: { readonly [name: string]: Json | undefined }; readonly prompt: number | undefined }> =>
    calls.call({ method: "POST", path: "/completions", body: JSON.stringify({ model: served, ...body }), ...more }, (answer) => {
      const fields = jsonOf(answer, http.place);
      const choice = choiceOf(fields, http.place);
      if (choice === undefined) throw new CallFault("malformed", `${http.place}: its answer has no choices`, false);
      const collected = new Collected();
      collected.add(choice);
      const usage = fields.usage as { readonly prompt_tokens?: number } | undefined;
      return { ...collected.drawn(), choice, prompt: usage?.prompt_tokens };
    });
  const maxTokens = await limitOf(parts);
  const lacks: { [capability in Capability]?: string } = { ...lacksOfAll };
  const has = new Set<Capability>();
  const prompt = promptOf(vocabulary);
  const base = { prompt, max_tokens: 4, temperature: 1, seed: 1, logprobs: 1 };
  let extended = true;
  const first = await ask({ ...base, ...extensions }).catch((error: unknown) => {
    if (!isRefusal(error)) throw error;
    extended = false;
    return ask(base).catch((again: unknown) => (isRefusal(again) ? (again as CallFault).message : Promise.reject(again)));
  });
  const none = (why: string): Facts => ({
    idsBy: "text",
    logpOf: "unknown",
    extended,
    listed: 1,
    streams: false,
    echoTokens: 0,
    maxTokens,
    has: new Set(),
    lacks: {
      ...lacks,
      ...Object.fromEntries(
        ["sample", "sample.greedy", "sample.truncation", "sample.temperature", "sample.entropy", "exact", "score", "score.temperature", "score.entropy"].map(
          (name) => [name, why],
        ),
      ),
    },
  });
  if (typeof first === "string") return none(`it refuses prompts of token ids: ${first}`);
  if (first.prompt !== undefined && first.prompt !== prompt.length)
    return none(`it makes ${first.prompt} tokens of a prompt of ${prompt.length}, so another text would be answered`);
  if (first.logp.length === 0) return none("it tells no log-probs of the tokens that it draws");
  const listed = first.own ? 0 : 1;
  const own = { ...base, logprobs: listed, ...(extended && extensions) };
  const idsBy: IdsBy | undefined =
    first.ids !== undefined ? (Array.isArray(first.choice.token_ids) ? "returned" : "named") : exactIds(first, vocabulary) === undefined ? undefined : "text";
  if (idsBy === undefined) return none("it tells texts and not ids, and these texts are not exactly the tokens of the tokenizer that was named");
  const logpOf = first.own ? "both" : await whoseLogp((body) => ask({ ...own, ...body }));
  has.add("sample");
  const set = (capability: Capability, why: string | undefined): void => {
    if (why === undefined) {
      has.add(capability);
      delete lacks[capability];
    } else lacks[capability] = why;
  };
  const onlyOurs = logpOf === "both" ? undefined : "it is told log-probs and not the whole distribution";
  set("sample.entropy", onlyOurs);
  set(
    "sample.temperature",
    logpOf === "both"
      ? undefined
      : `the server tells log-probs ${logpOf === "processed" ? "of what it draws from" : logpOf === "raw" ? "at temperature 1, whatever it draws at" : "of which nobody knows the temperature"}`,
  );
  set("exact", logpOf === "both" ? undefined : "a server batches requests of many, so the last bits of a log-prob depend on what ran beside it");
  set("sample.greedy", await greedyFault((body) => ask({ ...own, ...body })));
  set("sample.truncation", await truncationFault((body) => ask({ ...own, ...body })));
  const { echoTokens, fault, tempered } = await echoFacts((body) => ask({ ...own, ...body }), prompt, first, idsBy);
  set("score", fault);
  set("score.temperature", fault ?? (tempered ? undefined : "prompts are echoed with log-probs at temperature 1"));
  set("score.entropy", fault ?? (tempered ? undefined : "prompts are echoed with log-probs alone"));
  const streams = await streamsIds(parts, own);
  return { idsBy, logpOf, extended, listed, streams, echoTokens, maxTokens, has, lacks };
}

const isRefusal = (error: unknown): boolean =>
  error instanceof CallFault && error.reason === "refused" && error.status !== undefined && [400, 404, 405, 422, 501].includes(error.status);

/** The model's limit, from the list of models. Throws ConfigError where the list has others alone. */
async function limitOf({ calls, http, served, signal }: ProbeParts): Promise<number | undefined> {
  const fields = await calls
    .call({ method: "GET", path: "/models", ...(signal && { signal }) }, (answer) => jsonOf(answer, http.place))
    .catch((error: unknown) => {
      // Some servers have no list; a key that is refused is told here, before anything else.
      if (isRefusal(error)) return undefined;
      throw error;
    });
  const models = Array.isArray(fields?.data) ? (fields.data as readonly { readonly id?: Json; readonly max_model_len?: Json }[]) : [];
  if (models.length === 0) return undefined;
  const found = models.find(({ id }) => id === served);
  const names = models.map(({ id }) => String(id));
  if (found === undefined) {
    const near = nearestName(served, names);
    throw new ConfigError({
      place: http.place,
      cause: `it serves no model ${JSON.stringify(served)}`,
      mend: near === undefined ? `name one of ${names.slice(0, 10).join(", ")}` : `did you mean ${near}?`,
    });
  }
  return typeof found.max_model_len === "number" ? found.max_model_len : undefined;
}

/** A few plain ids, spread over the vocabulary: what follows is open. */
function promptOf({ size, eosIds }: LocalVocabulary): number[] {
  const wanted = [0.3, 0.5, 0.7, 0.4].map((part) => Math.floor(part * size));
  return wanted.map((id) => (eosIds.includes(id) ? id + 1 : id) % size);
}

type Ask = (body: Body) => Promise<Drawn & { readonly choice: { readonly [name: string]: Json | undefined } }>;

/** The most likely token's log-prob at two temperatures: the same where it is of the whole distribution. */
async function whoseLogp(ask: Ask): Promise<LogpOf> {
  const listed = async (temperature: number): Promise<readonly [string, number]> => {
    const { choice } = await ask({ temperature, max_tokens: 1 });
    const top = (choice.logprobs as { readonly top_logprobs?: readonly ({ readonly [token: string]: number } | null)[] } | undefined)?.top_logprobs?.[0] ?? {};
    return Object.entries(top).reduce((best, each) => (each[1] > best[1] ? each : best), ["", Number.NEGATIVE_INFINITY] as const);
  };
  const [token, at1] = await listed(1);
  const [other, at2] = await listed(2);
  // Where nearly all is on one token, both are near 0 and tell nothing.
  if (token !== other || !(at1 < -0.02)) return "unknown";
  return Math.abs(at1 - at2) < 0.01 ? "raw" : "processed";
}

const tokensOf = ({ ids, texts }: Drawn): string => JSON.stringify(ids ?? texts);

async function greedyFault(ask: Ask): Promise<string | undefined> {
  try {
    const answers = [await ask({ temperature: 0, seed: 1 }), await ask({ temperature: 0, seed: 2 })];
    return tokensOf(answers[0] as Drawn) === tokensOf(answers[1] as Drawn) ? undefined : "two answers at temperature 0 differ";
  } catch (error) {
    if (isRefusal(error)) return `it refuses temperature 0: ${(error as CallFault).message}`;
    throw error;
  }
}

/** Rules that leave one token, at a temperature where free draws differ. */
async function truncationFault(ask: Ask): Promise<string | undefined> {
  const seeds = [1, 2, 3, 4, 5, 6];
  const draws = async (rule: Body): Promise<number> => {
    const answers = await Promise.all(seeds.map((seed) => ask({ ...rule, seed, temperature: 2, max_tokens: 3 })));
    return new Set(answers.map(tokensOf)).size;
  };
  try {
    if ((await draws({})) === 1) return "its free draws do not differ, so nothing tells whether it keeps to a rule";
    const ignored: string[] = [];
    for (const [name, value] of [
      ["top_k", 1],
      ["top_p", 1e-6],
      ["min_p", 1],
    ] as const)
      if ((await draws({ [name]: value })) > 1) ignored.push(name);
    return ignored.length === 0 ? undefined : `it takes ${ignored.join(" and ")} and draws as if nothing had been said`;
  } catch (error) {
    if (isRefusal(error)) return `it refuses a rule: ${(error as CallFault).message}`;
    throw error;
  }
}

interface EchoFacts {
  readonly echoTokens: 0 | 1;
  readonly fault?: string;
  /** It also tells log-probs at other temperatures, and entropies. */
  readonly tempered?: boolean;
}

/** Echoes the prompt with what was drawn, whose log-probs are known. */
async function echoFacts(ask: Ask, prompt: readonly number[], drawn: Drawn, idsBy: IdsBy): Promise<EchoFacts> {
  if (idsBy === "text" || drawn.ids === undefined) return { echoTokens: 0, fault: "it tells no ids, so that what it echoes could be of other tokens" };
  const ids = [...prompt, ...drawn.ids];
  let refused = "";
  for (const echoTokens of [0, 1] as const) {
    try {
      const { choice } = await ask({ prompt: ids, echo: true, max_tokens: echoTokens });
      const echo = echoOf(choice, ids.length);
      if (echo === undefined) return { echoTokens, fault: "it does not tell log-probs of the prompt's own tokens (echo)" };
      const known = drawn.own?.rawLogp ?? drawn.logp;
      const worst = drawn.ids.reduce((most, _, t) => Math.max(most, Math.abs((echo.logp[prompt.length + t] as number) - (known[t] as number))), 0);
      if (worst > near) return { echoTokens, fault: `log-probs that it echoes differ by ${worst.toFixed(2)} from those that it drew with` };
      return { echoTokens, tempered: echo.tempered !== undefined };
    } catch (error) {
      if (!isRefusal(error)) throw error;
      refused = (error as CallFault).message;
    }
  }
  return { echoTokens: 0, fault: `it does not echo prompts: ${refused}` };
}

/** Whether pieces of a stream tell the tokens that they are of with their log-probs, so that a response can be ended at any of them. */
async function streamsIds({ calls, http, served, signal }: ProbeParts, own: Body): Promise<boolean> {
  const events = new Events();
  const collected = new Collected();
  let whole = true;
  const onPiece = (piece: Buffer): void => {
    for (const data of events.push(piece)) {
      if (data === "[DONE]") continue;
      const choice = choiceOf(jsonOf({ body: Buffer.from(data) }, http.place), http.place);
      if (choice) collected.add(choice);
      const { ids, logp } = collected.drawn();
      whole &&= (ids ?? []).length === logp.length;
    }
  };
  try {
    await calls.call(
      { method: "POST", path: "/completions", body: JSON.stringify({ model: served, ...own, stream: true }), onPiece, ...(signal && { signal }) },
      () => undefined,
    );
  } catch (error) {
    if (error instanceof CallFault) return false;
    throw error;
  }
  return whole && (collected.drawn().ids ?? []).length > 0;
}
