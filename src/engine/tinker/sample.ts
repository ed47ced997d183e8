/**
 * Samples by the protocol: members of one prompt go out as one request, whose i-th answer a server draws with the seed plus
 * i, so that a prompt is computed once. Seeds come from the key of the first member.
 */
import { EngineError } from "../../core/errors.js";
import type { Answer } from "../../core/http.js";
import type { RandomKey } from "../../core/random.js";
import type { Sample, SampleRequest } from "../contract.js";
import { jsonOf } from "./connection.js";
import * as json from "./json.js";
import { post } from "./model.js";
import * as proto from "./proto.js";
import type { Encoded, SampleResult, WireSample } from "./wire.js";

/** Requests that one request of the protocol asks for. */
export interface SampleGroup {
  /** What all have in common but the key. */
  readonly request: SampleRequest;
  /** Places of the requests among those of the call, for each answer: several where keys are equal. */
  readonly indices: readonly (readonly number[])[];
  readonly seed: number;
}

/** Seeds are whole numbers below this, with room for the members above it. */
const seeds = 2 ** 30;
/** Answers of one request: what a server decodes at once is not more. */
const mostAnswers = 256;

const seedOf = (key: RandomKey): number => key[0] % seeds;

/** Requests of one prompt under the same conditions, together; in the order of their first ones. */
export function groupsOf(requests: readonly SampleRequest[]): SampleGroup[] {
  interface Open {
    readonly request: SampleRequest;
    readonly keys: Map<string, number[]>;
    readonly seed: number;
  }
  const open = new Map<string, Open[]>();
  // Members of a group have one context, whose ids are then written down once.
  const known = new Map<SampleRequest["context"], string>();
  requests.forEach((request, index) => {
    const { context, weights, greedy, temperature, maxTokens, stop, key } = request;
    const ids = known.get(context) ?? context.ids.join();
    known.set(context, ids);
    const name = `${JSON.stringify([weights, greedy === true, temperature, maxTokens, stop.ids])}${ids}`;
    const groups = open.get(name) ?? [];
    open.set(name, groups);
    const own = key.join();
    const found = groups.find(({ keys }) => keys.has(own)) ?? groups.find(({ keys }) => keys.size < mostAnswers);
    const same = found?.keys.get(own);
    if (found === undefined) groups.push({ request, keys: new Map([[own, [index]]]), seed: seedOf(key) });
    else if (same === undefined) found.keys.set(own, [index]);
    else same.push(index);
  });
  return [...open.values()].flat().map(({ request, keys, seed }) => ({ request, indices: [...keys.values()], seed }));
}

/** `source`: the checkpoint or base that draws; `multiple`: budgets are asked for in multiples of this, and what comes beyond a budget is cut off here. */
export function encodeSample({ request, indices, seed }: SampleGroup, source: object, multiple = 1): Encoded {
  const { context, stop, greedy, temperature } = request;
  const maxTokens = Math.ceil(request.maxTokens / multiple) * multiple;
  return post("asample", {
    num_samples: indices.length,
    prompt: promptOf(context.ids),
    // Everything is said: what a server takes for a missing value differs, and end tokens are never implied.
    sampling_params: { max_tokens: maxTokens, temperature: greedy ? 0 : temperature, top_p: 1, top_k: -1, seed, stop: [...stop.ids] },
    ...source,
    prompt_logprobs: false,
    type: "sample",
  });
}

/** Scores a whole sequence: the log-probs of a prompt come with one token that nobody reads. */
export function encodeScore(ids: Int32Array, source: object): Encoded {
  const sampling_params = { max_tokens: 1, temperature: 1, top_p: 1, top_k: -1, seed: 0, stop: [] };
  return post("asample", { num_samples: 1, prompt: promptOf(ids), sampling_params, ...source, prompt_logprobs: true, type: "sample" });
}

const promptOf = (ids: Int32Array): object => ({ chunks: [{ type: "encoded_text", tokens: [...ids] }] });

/** Reads samples by what the answer says that it is. */
export const readSample = (answer: Answer): SampleResult | undefined =>
  answer.type === proto.protobufType ? proto.decodeSample(answer.body) : json.decodeSample(jsonOf(answer));

/** Log-probs of all tokens of a prompt but the first: some servers give an entry for that too. */
export function promptLogp({ promptLogprobs }: SampleResult, tokens: number): Float64Array | undefined {
  if (promptLogprobs === undefined) return undefined;
  if (promptLogprobs.length === tokens) return promptLogprobs.slice(1);
  return promptLogprobs.length === tokens - 1 ? promptLogprobs : undefined;
}

/** Whether a result has an answer for each member, with a log-prob for each token. */
export const complete = ({ sequences }: SampleResult, { indices, request }: SampleGroup, multiple = 1): boolean =>
  sequences.length === indices.length &&
  sequences.every(({ ids, logprobs }) => ids.length === logprobs.length && ids.length > 0 && ids.length <= Math.ceil(request.maxTokens / multiple) * multiple);

/** An answer in the contract's form: it ends with its first end token, whatever a server went on to draw. Servers tell log-probs at temperature 1, and no entropies. Throws EngineError for tokens or numbers that are none. */
export function sampleOf(
  sample: WireSample,
  index: number,
  request: SampleRequest,
  model: { readonly vocabulary: number; readonly weights: string; readonly place: string },
): Sample {
  const { ids, logprobs } = sample;
  const stops = request.stop.ids;
  const most = Math.min(ids.length, request.maxTokens);
  let end = -1;
  for (let t = 0; t < ids.length; t++) {
    const id = ids[t] as number;
    if (id < 0 || id >= model.vocabulary) {
      throw new EngineError({
        place: model.place,
        cause: `it drew the token ${id}, and the model has a vocabulary of ${model.vocabulary}`,
        mend: "give the folder of the model that the server runs",
      });
    }
    if (!Number.isFinite(logprobs[t])) {
      throw new EngineError({
        place: model.place,
        cause: `the log-prob of the token ${id} that it drew is ${logprobs[t]}`,
        mend: "resume the run from its last checkpoint: the weights are not finite",
      });
    }
    if (end < 0 && t < most && stops.includes(id)) end = t;
  }
  const length = end >= 0 ? end + 1 : most;
  // One array for all of float64, with a view for each: log-probs at temperature 1, as drawn, and entropies.
  const numbers = new Float64Array(3 * length).fill(Number.NaN);
  const rawLogp = numbers.subarray(0, length);
  const logp = numbers.subarray(length, 2 * length);
  const told = logprobs.subarray(0, length);
  rawLogp.set(told);
  if (request.temperature === 1) logp.set(told);
  return {
    index,
    // A view would keep what is cut off.
    ids: length === ids.length ? ids : ids.slice(0, length),
    sampled: new Uint8Array(length).fill(1),
    rawLogp,
    logp,
    entropy: numbers.subarray(2 * length),
    stop: end >= 0 || (sample.stop === "stop" && length < request.maxTokens) ? "eos" : "length",
    weights: model.weights,
  };
}
