/** A completion server as others build them, with a small exact model; what it lacks, ignores or does wrong is said by a test. */
import { uniform } from "../../src/core/random.js";
import { logSoftmax, truncated } from "../../src/engine/values.js";
import { type StubReply, type StubRequest, type StubServer, stubServer } from "./stub-server.js";

export interface OpenaiStub {
  /** How tokens are told: ids of their own, `token_id:N`, or texts. */
  readonly ids?: "returned" | "named" | "text";
  readonly logprobs?: "raw" | "processed" | "none";
  readonly echo?: "right" | "wrong" | "none";
  /** Fields that are taken and not kept to. */
  readonly ignores?: readonly string[];
  /** Fields that are not OpenAI's are refused. */
  readonly strict?: boolean;
  readonly streams?: boolean;
  /** Tokens that it puts before a prompt. */
  readonly before?: number;
  /** Every token is as good as certain. */
  readonly sure?: boolean;
  /** The texts of ids. */
  readonly text: (id: number) => string;
  readonly size: number;
  readonly eos: number;
  /** In place of an answer. */
  readonly fault?: (request: StubRequest) => StubReply | undefined;
  /** What is told about an answer before it is sent. */
  readonly change?: (choice: { [name: string]: unknown }) => void;
}

interface Body {
  readonly model: string;
  readonly prompt: readonly number[] | string;
  readonly max_tokens: number;
  readonly temperature: number;
  readonly seed?: number;
  readonly logprobs?: number;
  readonly echo?: boolean;
  readonly stream?: boolean;
  readonly top_p?: number;
  readonly top_k?: number;
  readonly min_p?: number;
  readonly stop_token_ids?: readonly number[];
  readonly ignore_eos?: boolean;
  readonly return_token_ids?: boolean;
  readonly return_tokens_as_token_ids?: boolean;
}

const beyond = ["return_token_ids", "return_tokens_as_token_ids", "skip_special_tokens", "ignore_eos", "stop_token_ids", "top_k", "min_p"];

export function openaiStub(stub: OpenaiStub): Promise<StubServer> {
  const { size, sure, ids: idsBy = "returned", logprobs: told = "raw", echo = "right", ignores = [], text } = stub;
  const rawAt = (last: number): Float64Array => logSoftmax(Float64Array.from({ length: size }, (_, id) => (sure ? 4000 : 2) * Math.sin(id * 7 + last * 3)));

  const draw = (body: Body): { ids: number[]; logp: number[]; tops: [number, number][]; finish: string } => {
    const heat = body.temperature === 0 ? 1 : body.temperature;
    const rule = <T>(name: string, value: T | undefined): T | undefined => (ignores.includes(name) ? undefined : value);
    const [topP, topK, minP] = [rule("top_p", body.top_p), rule("top_k", body.top_k), rule("min_p", body.min_p)];
    const rules = { ...(topP !== undefined && { topP }), ...(topK !== undefined && topK > 0 && { topK }), ...(minP !== undefined && { minP }) };
    const ids: number[] = [];
    const logp: number[] = [];
    const tops: [number, number][] = [];
    let last = body.prompt.at(-1) as number;
    while (ids.length < body.max_tokens) {
      const raw = rawAt(last);
      const from = truncated(logSoftmax(raw, heat), rules);
      let id = 0;
      if (body.temperature === 0 && !ignores.includes("temperature")) id = raw.indexOf(Math.max(...raw));
      else {
        let u = uniform([body.seed ?? 0, 1, 2, 3], ids.length);
        while (id < size - 1 && u >= Math.exp(from[id] as number)) u -= Math.exp(from[id++] as number);
      }
      const shown = told === "raw" ? raw : logSoftmax(raw, heat);
      const top = shown.indexOf(Math.max(...shown));
      ids.push(id);
      logp.push(shown[id] as number);
      tops.push([top, shown[top] as number]);
      last = id;
      if (body.stop_token_ids?.includes(id) || (id === stub.eos && !body.ignore_eos)) return { ids, logp, tops, finish: "stop" };
    }
    return { ids, logp, tops, finish: "length" };
  };

  const answer = (request: StubRequest): StubReply => {
    const fault = stub.fault?.(request);
    if (fault !== undefined) return fault;
    if (request.path === "/v1/models") return { body: { data: [{ id: "small", max_model_len: 64 }, { id: "large" }] } };
    const body = JSON.parse(request.body) as Body;
    const strange = Object.keys(body).find((name) => beyond.includes(name));
    if (stub.strict && strange !== undefined) return { status: 400, body: { error: { message: `Unrecognized request argument: ${strange}` } } };
    if (body.echo && (echo === "none" || body.max_tokens === 0) && echo !== "right") return { status: 400, body: "echo is not supported" };
    const drawn = draw(body);
    const name = (id: number): string => (idsBy === "named" && body.return_tokens_as_token_ids ? `token_id:${id}` : text(id));
    const logprobsOf = (ids: readonly number[], logp: readonly (number | null)[], tops: readonly ([number, number] | null)[]): unknown =>
      told === "none" ? null : { tokens: ids.map(name), token_logprobs: logp, top_logprobs: tops.map((top) => (top ? { [name(top[0])]: top[1] } : null)) };
    if (body.echo) {
      const prompt = body.prompt as readonly number[];
      const own = prompt.map((id, t) => (t === 0 ? null : (rawAt(prompt[t - 1] as number)[id] as number) - (echo === "wrong" ? 0.5 : 0)));
      const choice = {
        index: 0,
        text: "",
        finish_reason: "length",
        logprobs: logprobsOf([...prompt, ...drawn.ids], [...own, ...drawn.logp], [...own.map(() => null), ...drawn.tops]),
      };
      return { body: { choices: [choice], usage: { prompt_tokens: prompt.length } } };
    }
    const choiceOf = (from: number, to: number): { [name: string]: unknown } => ({
      index: 0,
      text: drawn.ids.slice(from, to).map(text).join(""),
      logprobs: logprobsOf(drawn.ids.slice(from, to), drawn.logp.slice(from, to), drawn.tops.slice(from, to)),
      finish_reason: to === drawn.ids.length ? drawn.finish : null,
      ...(idsBy === "returned" && body.return_token_ids && { token_ids: drawn.ids.slice(from, to) }),
    });
    if (body.stream && stub.streams !== false) {
      const pieces = drawn.ids.map((_, t) => `data: ${JSON.stringify({ choices: [choiceOf(t, t + 1)] })}\n\n`);
      // Cut anywhere, as a network does.
      return { pieces: `${pieces.join("")}data: [DONE]\n\n`.match(/[\s\S]{1,97}/g) ?? [] };
    }
    const choice = choiceOf(0, drawn.ids.length);
    stub.change?.(choice);
    return { body: { choices: [choice], usage: { prompt_tokens: body.prompt.length + (stub.before ?? 0), completion_tokens: drawn.ids.length } } };
  };
  return stubServer(answer);
}
