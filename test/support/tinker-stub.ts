/**
 * A server of the Tinker protocol that misbehaves on purpose: real HTTP, both dialects, and the traps that a real one has
 * (one slot for trainer and sampler, models that keep their slots, an empty batch that never resolves). Faults are laid on
 * its paths before they are asked for.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { createTar } from "nanotar";
import { messages, protobufType } from "../../src/engine/tinker/proto.js";
import { BigramModel, distribution, drawn, type Saved, type ServerReduction, type WireDatum } from "./tinker-model.js";

/**
 * What happens to a request: `lose` does it and closes the connection, `drop` closes it before, `silence` does it and never
 * answers, `half` does it and sends half of the answer, `close` answers 500 and closes the connection a moment later without
 * a word; a number is a status; the others change an answer.
 */
export type Fault = "lose" | "drop" | "silence" | "half" | "close" | "twice" | "null" | "try_again" | "error" | number;

export interface StubOptions {
  readonly dialect: "json" | "protobuf";
  readonly deduplicates?: boolean;
  readonly reduction?: ServerReduction;
  /** Models at one time. Default 5. */
  readonly slots?: number;
  readonly models?: readonly string[];
  /** Of a step it takes the rate alone, as a server whose optimizer is set when it starts. */
  readonly ownNumbers?: boolean;
  /** Milliseconds before each result is told, as if it had been computed. */
  readonly latencyMs?: number;
}

interface Held {
  readonly model: BigramModel;
  readonly seen: Map<number, { readonly body: string; readonly id: string }>;
  /** The sampler's checkpoint that its slot was filled from. */
  sampler?: string;
  requests: number;
}

type Body = { readonly [field: string]: unknown };
class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly detail: unknown,
  ) {
    super(String(detail));
  }
}

export class TinkerStub {
  /** Calls by path, whatever became of them. */
  readonly calls = new Map<string, number>();
  /** Rates of the optimizer steps that were applied, by model. */
  readonly applied = new Map<string, number[]>();
  readonly models = new Map<string, Held>();
  readonly checkpoints = new Map<string, Saved>();
  readonly beats: string[] = [];
  private readonly faults: { readonly path: string; readonly fault: Fault; after: number; times: number }[] = [];
  private readonly futures = new Map<string, { readonly type: string; readonly status: number; readonly body: Uint8Array | string } | undefined>();
  private readonly sessions = new Set<string>();
  private count = 0;
  private server: Server | undefined;
  port = 0;

  constructor(private readonly options: StubOptions) {}

  static async start(options: StubOptions): Promise<TinkerStub> {
    const stub = new TinkerStub(options);
    await stub.listen();
    return stub;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** The next `times` requests of a path, after the first `after` of them. */
  lay(path: string, fault: Fault, { after = 0, times = 1 }: { readonly after?: number; readonly times?: number } = {}): void {
    this.faults.push({ path, fault, after, times });
  }

  /** From now on all is as it should be. */
  unlay(): void {
    this.faults.length = 0;
  }

  /** Steps that all models have made with a rate above 0, one after another. */
  get steps(): number[] {
    return [...this.applied.values()].flat().filter((rate) => rate > 0);
  }

  async listen(): Promise<void> {
    const server = createServer((request, response) => void this.answer(request, response));
    this.server = server;
    await new Promise<void>((resolve) => server.listen(this.port, "127.0.0.1", resolve));
    this.port = (server.address() as AddressInfo).port;
  }

  /** Ends the server; checkpoints stay, models do not. */
  async stop(): Promise<void> {
    this.server?.closeAllConnections();
    await new Promise<void>((resolve) => this.server?.close(() => resolve()) ?? resolve());
    this.models.clear();
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    const raw = Buffer.concat(pieces);
    const path = (request.url ?? "").replace("/api/v1/", "");
    const name = path.split("/")[0] as string;
    this.calls.set(name, (this.calls.get(name) ?? 0) + 1);
    const fault = this.faultOf(name);
    if (name === "retrieve_future" && this.options.latencyMs) await new Promise((resolve) => setTimeout(resolve, this.options.latencyMs));
    if (fault === "drop") return void request.socket.destroy();
    if (typeof fault === "number") return send(response, fault, "application/json", JSON.stringify({ detail: `as the test asks: ${fault}` }));
    if (fault === "close") {
      request.socket.end("HTTP/1.1 500 Internal Server Error\r\ncontent-type: text/plain\r\ncontent-length: 21\r\n\r\nInternal Server Error");
      return;
    }
    if (fault === "try_again") return send(response, 200, "application/json", JSON.stringify({ type: "try_again", queue_state: "paused_rate_limit" }));
    if (fault === "error") return send(response, 200, "application/json", JSON.stringify({ error: "it failed", category: "server" }));
    let status = 200;
    let type = "application/json";
    let body: Uint8Array | string;
    try {
      const result = this.route(request.method ?? "GET", path, request.headers["content-type"] ?? "", raw, fault);
      if (result === "never") return;
      ({ status = 200, type = "application/json", body } = result);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      status = error.status;
      body = JSON.stringify({ detail: error.detail });
    }
    if (fault === "lose") return void request.socket.destroy();
    if (fault === "silence") return;
    if (fault === "half") {
      const bytes = Buffer.from(body);
      response.writeHead(status, { "content-type": type, "content-length": bytes.length });
      response.write(bytes.subarray(0, bytes.length / 2), () => request.socket.destroy());
      return;
    }
    send(response, status, type, body);
  }

  private faultOf(name: string): Fault | undefined {
    for (const each of this.faults) {
      if (each.path !== name || each.times === 0) continue;
      if (each.after > 0) {
        each.after--;
        continue;
      }
      each.times--;
      return each.fault;
    }
    return undefined;
  }

  private route(
    method: string,
    path: string,
    type: string,
    raw: Buffer,
    fault: Fault | undefined,
  ): { status?: number; type?: string; body: Uint8Array | string } | "never" {
    const { dialect, models = ["base"] } = this.options;
    const json = (value: object): { body: string } => ({ body: JSON.stringify(value) });
    if (path === "forward_backward" && dialect === "protobuf" && type !== protobufType) throw new Refusal(415, "forward_backward requires a protobuf body");
    if (path === "forward" && dialect === "protobuf") throw new Refusal(404, "Not Found");
    if (path.startsWith("training_runs/")) return this.checkpointRoute(method, path);
    const body = type === protobufType ? {} : (JSON.parse(raw.toString("utf8") || "{}") as Body);
    switch (path) {
      case "healthz":
        return json({ status: "ok" });
      case "get_server_capabilities":
        return json({ supported_models: models.map((model_name) => ({ model_name })) });
      case "create_session": {
        const id = `session_${++this.count}`;
        this.sessions.add(id);
        return json({ session_id: id });
      }
      case "session_heartbeat":
        if (!this.sessions.has(String(body.session_id))) throw new Refusal(404, "Session not found");
        this.beats.push(String(body.session_id));
        return json({ type: "session_heartbeat" });
      case "create_model": {
        const id = `model_${++this.count}`;
        if (this.models.size >= (this.options.slots ?? 5)) return { ...this.failed("Maximum number of LoRA adapters reached", id) };
        this.models.set(id, { model: new BigramModel(this.options.reduction ?? "sequence-mean-then-batch-mean"), seen: new Map(), requests: 0 });
        return this.done(json({ model_id: id }), { model_id: id });
      }
      case "unload_model":
        this.held(body);
        this.models.delete(String(body.model_id));
        return this.done(json({ model_id: body.model_id, status: "unloaded" }));
      case "forward":
      case "forward_backward":
        return this.pass(path, type, raw, body);
      case "optim_step":
        return this.once(body, raw.toString("latin1"), () => {
          const adam = body.adam_params as { [name: string]: number };
          const norm = this.held(body).model.step(this.options.ownNumbers ? { learning_rate: adam.learning_rate as number } : adam);
          this.applied.set(String(body.model_id), [...(this.applied.get(String(body.model_id)) ?? []), adam.learning_rate as number]);
          return json({ metrics: { "skyrl.ai/grad_norm": Number.isFinite(norm) ? norm : null } });
        });
      case "save_weights":
      case "save_weights_for_sampler": {
        const kind = path === "save_weights" ? "weights" : "sampler_weights";
        const at = `tinker://${body.model_id}/${kind}/${body.path}`;
        if (this.checkpoints.has(at)) throw new Refusal(409, `Checkpoint '${body.path}' already exists`);
        this.checkpoints.set(at, this.held(body).model.save());
        return this.done(json({ path: at }));
      }
      case "load_weights":
        return this.once(body, raw.toString("latin1"), () => {
          const held = this.held(body);
          if (dialect === "protobuf" && held.requests > 1) throw new Refusal(400, "LoadWeights is not permitted with seq_id 2");
          held.model.load(this.saved(String(body.path)), dialect === "json" || body.optimizer === true);
          return json({ type: "load_weights" });
        });
      case "asample":
        return this.sample(body);
      case "retrieve_future":
        return this.retrieved(String(body.request_id), fault);
      default:
        throw new Refusal(404, "Not Found");
    }
  }

  private pass(path: string, type: string, raw: Buffer, body: Body): { body: string } | "never" {
    const proto = type === protobufType;
    const request = proto ? fromProto(raw) : fromJson(body, path);
    if (request === undefined) throw new Refusal(422, [{ type: "missing", loc: ["body", "model_id"], msg: "Field required" }]);
    const { data, loss, config, forwardOnly } = request;
    if (data.length === 0) return this.pending(undefined);
    return this.once({ model_id: request.model, seq_id: request.seq }, raw.toString("latin1"), () => {
      const { model } = this.held({ model_id: request.model });
      const logprobs = data.map((datum) => model.pass(datum, loss, config, !forwardOnly));
      return proto ? { type: protobufType, body: passBytes(logprobs) } : { body: JSON.stringify(passJson(logprobs)) };
    });
  }

  private sample(body: Body): { body: string } | "never" {
    const params = body.sampling_params as { max_tokens: number; seed: number };
    const prompt = (body.prompt as { chunks: { tokens: number[] }[] }).chunks.flatMap(({ tokens }) => tokens);
    const weights = body.model_path === undefined ? new Float64Array(distributionSize) : this.samplerWeights(String(body.model_path));
    const sequences = Array.from({ length: Number(body.num_samples) }, (_, i) => drawn(weights, prompt, { ...params, seed: params.seed + i }));
    const scored = prompt.slice(1).map((id, i) => Math.fround(Math.log(distribution(weights, prompt[i] as number)[id] as number)));
    const prompt_logprobs = body.prompt_logprobs === true ? scored : null;
    if (this.options.dialect === "json") return this.done({ body: JSON.stringify({ sequences, prompt_logprobs }) });
    const message = {
      sequences: sequences.map(({ tokens, logprobs, stop_reason }) => ({
        stop_reason: stop_reason === "stop" ? 0 : 1,
        tokens: bytes(Int32Array.from(tokens)),
        logprobs: bytes(Float32Array.from(logprobs)),
      })),
      ...(prompt_logprobs ? { prompt_logprobs: bytes(Float32Array.from(prompt_logprobs)) } : {}),
    };
    return this.done({ type: protobufType, body: messages.sample.encode(message).finish() });
  }

  /** One slot for trainer and sampler: another checkpoint than the last one overwrites what is trained, the same one is what is trained now. */
  private samplerWeights(path: string): Float64Array {
    const at = path.includes("/sampler_weights/") ? path : path.replace(/\/([^/]+)$/, "/sampler_weights/$1");
    const held = this.held({ model_id: /^tinker:\/\/([^/]+)/.exec(at)?.[1] });
    if (held.sampler !== at) held.model.weights = this.saved(at).weights.slice();
    held.sampler = at;
    return held.model.weights;
  }

  private saved(path: string): Saved {
    const saved = this.checkpoints.get(path);
    if (!saved) throw new Refusal(404, `Checkpoint ${path} not found`);
    return saved;
  }

  private held(body: Body): Held {
    const held = this.models.get(String(body.model_id));
    if (!held) throw new Refusal(404, "Model not found");
    return held;
  }

  /** Applies a numbered request once, where this server knows numbers. */
  private once(body: Body, text: string, act: () => { type?: string; body: Uint8Array | string }): { body: string } {
    const held = this.held(body);
    held.requests++;
    const seq = Number(body.seq_id ?? 0);
    const { deduplicates = this.options.dialect === "protobuf" } = this.options;
    const seen = deduplicates && seq > 0 ? held.seen.get(seq) : undefined;
    if (seen && seen.body !== text) throw new Refusal(409, `seq_id ${seq} was used with another payload`);
    if (seen) return { body: JSON.stringify({ request_id: seen.id, future_id: seen.id, status: "pending" }) };
    const result = this.done(act());
    held.seen.set(seq, { body: text, id: String(this.count) });
    return result;
  }

  private done(result: { type?: string; body: Uint8Array | string }, more: object = {}): { body: string } {
    return this.pending({ type: result.type ?? "application/json", status: 200, body: result.body }, more);
  }

  private failed(detail: string, model: string): { body: string } {
    return this.pending({ type: "application/json", status: 400, body: JSON.stringify({ detail }) }, { model_id: model });
  }

  private pending(future: { type: string; status: number; body: Uint8Array | string } | undefined, more: object = {}): { body: string } {
    const id = String(++this.count);
    this.futures.set(id, future);
    return { body: JSON.stringify({ request_id: id, future_id: id, status: "pending", ...more }) };
  }

  private retrieved(id: string, fault: Fault | undefined): { status: number; type: string; body: Uint8Array | string } | "never" {
    if (!this.futures.has(id)) throw new Refusal(404, "Future not found");
    const future = this.futures.get(id);
    if (future === undefined) return "never";
    if (fault === "twice" || fault === "null") return { ...future, ...changed(future, fault) };
    return future;
  }

  private checkpointRoute(method: string, path: string): { status?: number; type?: string; body: Uint8Array | string } {
    const [, model, , kind, name, last] = /^training_runs\/([^/]+)\/checkpoints(\/([^/]+)(?:\/([^/]+))?(?:\/([^/]+))?)?$/.exec(path) ?? [];
    const own = [...this.checkpoints.keys()].filter((at) => at.startsWith(`tinker://${model}/`));
    if (method === "DELETE") {
      this.checkpoints.delete(`tinker://${model}/${kind}/${name}`);
      return { status: 204, body: "" };
    }
    if (name === "archive" && last === undefined) {
      const saved = this.saved(`tinker://${model}/sampler_weights/${kind}`);
      const config = JSON.stringify({ peft_type: "LORA", r: 8, lora_alpha: 32 });
      const files = [
        { name: "./adapter_config.json", data: config },
        { name: "./adapter_model.safetensors", data: new Uint8Array(saved.weights.buffer.slice(0)) },
      ];
      return { type: "application/octet-stream", body: gzipSync(createTar(files)) };
    }
    const checkpoints = own.map((at) => ({
      checkpoint_id: at.slice(at.lastIndexOf("/") + 1),
      checkpoint_type: at.includes("/weights/") ? "training" : "sampler",
      tinker_path: at,
    }));
    return { body: JSON.stringify({ checkpoints }) };
  }
}

const distributionSize = 144;
const bytes = (array: Int32Array | Float32Array | BigInt64Array): Uint8Array => new Uint8Array(array.buffer);

function send(response: ServerResponse, status: number, type: string, body: Uint8Array | string): void {
  response.writeHead(status, { "content-type": type });
  response.end(body);
}

const passJson = (logprobs: readonly number[][]): object => ({
  loss_fn_output_type: "scalar",
  loss_fn_outputs: logprobs.map((data) => ({ logprobs: { data, dtype: "float32", shape: [data.length] } })),
  metrics: {},
});

function passBytes(logprobs: readonly number[][]): Uint8Array {
  const outputs = logprobs.map((data) => ({
    fields: { logprobs: { data: bytes(Float32Array.from(data)), offsets: bytes(BigInt64Array.of(0n, BigInt(4 * data.length))), dtype: 1 } },
    num_datums: 1,
  }));
  return messages.pass.encode({ loss_fn_output_type: "scalar", loss_fn_outputs: outputs }).finish();
}

/** A pass's result with every entry twice, or with a number that is none. */
function changed({ type, body }: { readonly type: string; readonly body: Uint8Array | string }, fault: "twice" | "null"): object {
  if (type === protobufType) {
    const message = messages.pass.decode(Buffer.from(body)) as unknown as { loss_fn_outputs: { fields: { logprobs: { data: Uint8Array } } }[] };
    const outputs = message.loss_fn_outputs;
    if (fault === "twice") message.loss_fn_outputs = [...outputs, ...outputs];
    else for (const { fields } of outputs) fields.logprobs.data = bytes(new Float32Array(fields.logprobs.data.length / 4).fill(Number.NaN));
    return { body: messages.pass.encode(message).finish() };
  }
  const json = JSON.parse(String(body)) as { loss_fn_outputs?: { logprobs: { data: (number | null)[] } }[] };
  const outputs = json.loss_fn_outputs ?? [];
  if (fault === "twice") json.loss_fn_outputs = [...outputs, ...outputs];
  else for (const { logprobs } of outputs) logprobs.data = logprobs.data.map(() => null);
  return { body: JSON.stringify(json) };
}

interface PassBody {
  readonly model: string;
  readonly seq: number;
  readonly data: readonly WireDatum[];
  readonly loss: string;
  readonly config: { readonly [key: string]: number };
  readonly forwardOnly: boolean;
}

function fromJson(body: Body, path: string): PassBody | undefined {
  type Input = {
    data: { model_input: { chunks: { tokens: number[] }[] }; loss_fn_inputs: { [name: string]: { data: number[] } } }[];
    loss_fn: string;
    loss_fn_config: { [key: string]: number } | null;
  };
  const input = body[`${path}_input`] as Input | undefined;
  if (input === undefined) return undefined;
  const data = input.data.map(({ model_input, loss_fn_inputs }) => ({
    tokens: model_input.chunks.flatMap(({ tokens }) => tokens),
    inputs: Object.fromEntries(Object.entries(loss_fn_inputs).map(([name, tensor]) => [name, tensor.data])),
  }));
  return {
    model: String(body.model_id),
    seq: Number(body.seq_id),
    data,
    loss: input.loss_fn,
    config: input.loss_fn_config ?? {},
    forwardOnly: path === "forward",
  };
}

function fromProto(raw: Buffer): PassBody {
  const own = (part: Uint8Array): ArrayBuffer => Uint8Array.from(part).buffer;
  const message = messages.request.decode(raw) as unknown as {
    model_id: string;
    seq_id: unknown;
    data: { model_input: { encoded_text: { tokens: Uint8Array } }[]; loss_fn_inputs: { [name: string]: { dense: Uint8Array; dtype: number } } }[];
    loss_fn: string;
    loss_fn_config: { [key: string]: number };
    forward_only: boolean;
  };
  const data = message.data.map(({ model_input, loss_fn_inputs }) => ({
    tokens: model_input.flatMap(({ encoded_text }) => [...new Int32Array(own(encoded_text.tokens))]),
    inputs: Object.fromEntries(
      Object.entries(loss_fn_inputs).map(([name, { dense, dtype }]) => [
        name,
        dtype === 2 ? Array.from(new BigInt64Array(own(dense)), Number) : [...new Float32Array(own(dense))],
      ]),
    ),
  }));
  return {
    model: message.model_id,
    seq: Number(message.seq_id),
    data,
    loss: message.loss_fn,
    config: message.loss_fn_config,
    forwardOnly: message.forward_only,
  };
}
