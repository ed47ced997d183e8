/**
 * One model of a server: an adapter on its base with an optimizer, addressed by an id that is never used again once it is
 * lost. Requests are sent one after another, so that a server that takes them by arrival and one that takes them by number
 * do the same; their results are waited for together.
 */

import type { Answer } from "../../core/http.js";
import type { Connection } from "./connection.js";
import { jsonOf } from "./connection.js";
import { chunksOf } from "./datum.js";
import { isFault, ServerFault } from "./faults.js";
import * as json from "./json.js";
import * as proto from "./proto.js";
import type { Datum, Dialect, Encoded, LossName, PassRequest, PassResult } from "./wire.js";

/** What this side must know of a server to talk to its models. */
export interface ServerTraits {
  readonly dialect: Dialect;
  /** A repeated request with the same number and bytes is applied once. */
  readonly deduplicates: boolean;
}

/** All five numbers are sent always: what a server takes for a missing one differs. */
export interface Adam {
  readonly learning_rate: number;
  readonly beta1: number;
  readonly beta2: number;
  readonly eps: number;
  readonly weight_decay: number;
}

/** Sequences that go through one loss. */
export interface Pass {
  readonly loss: LossName;
  readonly config?: { readonly [key: string]: number };
  readonly data: readonly Datum[];
}

export interface Stepped {
  /** Log-probs of the responses of every sequence of every pass, in order, before the step. */
  readonly logprobs: readonly Float64Array[];
  /** Undefined where the server tells none; NaN where it was none. */
  readonly gradNorm: number | undefined;
}

export interface NewModel {
  readonly base: string;
  readonly rank: number;
  readonly seed: number;
}

const gradNorm = "skyrl.ai/grad_norm";

export const encodePass = (dialect: Dialect, request: PassRequest): Encoded => (dialect === "json" ? json : proto).encodePass(request);
/** Reads a pass by what the answer says that it is. */
export const readPass = (answer: Answer, data: readonly Datum[]): PassResult | undefined =>
  answer.type === proto.protobufType ? proto.decodePass(answer.body, data) : json.decodePass(jsonOf(answer), data);

/** Reads a JSON object as it is. */
export const readObject = (answer: Answer): Record<string, unknown> | undefined => {
  const value = jsonOf(answer);
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
};

export const post = (path: string, body: object): Encoded => ({ path: `/api/v1/${path}`, type: "application/json", body: JSON.stringify(body) });

export class ServerModel {
  private seq = 0;
  private saves = 0;
  /** The last submit: the next one waits for it. */
  private tail: Promise<unknown> = Promise.resolve();

  private constructor(
    readonly id: string,
    private readonly connection: Connection,
    private readonly traits: ServerTraits,
  ) {}

  /** A new adapter. A repetition after a lost answer makes another one: the first keeps its slot until its session ends. */
  static async create(connection: Connection, traits: ServerTraits, session: string, { base, rank, seed }: NewModel): Promise<ServerModel> {
    const body = { session_id: session, base_model: base, lora_config: { rank, seed }, model_role: "policy" };
    const answer = await connection.call({ ...post("create_model", body), what: "create_model", method: "POST", repeatable: true });
    const { request_id, model_id } = readObject(answer) ?? {};
    const model = new ServerModel(String(model_id), connection, traits);
    try {
      await connection.result(String(request_id), { what: "create_model", read: readObject });
    } catch (error) {
      // A server counts what it could not make too.
      await model.unload(5_000).catch(() => undefined);
      throw error;
    }
    return model;
  }

  /** Log-probs of the responses; nothing is learnt. Never called without sequences: a server may never answer that. */
  async forward(data: readonly Datum[], signal?: AbortSignal): Promise<Float64Array[]> {
    const passes = await this.inOrder(() =>
      sequence(chunksOf(data, this.traits.dialect), async (chunk) =>
        this.begin(chunk, { loss: "cross_entropy", forwardOnly: true, ...(signal ? { signal } : {}) }),
      ),
    );
    return (await Promise.all(passes.map(({ done }) => done()))).flat();
  }

  /** Adds gradients of losses. The same holds for what is thrown as for a step. */
  async backward(passes: readonly Pass[]): Promise<Float64Array[]> {
    const waiting = await this.inOrder(() => this.beginAll(passes));
    return (await Promise.all(waiting.map(({ done }) => done()))).flat();
  }

  /** Backward passes and the optimizer step on their sum and on what was added before. Whatever is thrown, the model's state is not known any more. */
  async step(passes: readonly Pass[], adam: Adam): Promise<Stepped> {
    const { waiting, optim } = await this.inOrder(async () => {
      const waiting = await this.beginAll(passes);
      const encoded = post("optim_step", { model_id: this.id, seq_id: ++this.seq, adam_params: adam, type: "optim_step" });
      return { waiting, optim: await this.submitted("optim_step", encoded, readObject) };
    });
    const [logprobs, result] = await Promise.all([Promise.all(waiting.map(({ done }) => done())), optim()]);
    const metrics = (result.metrics ?? {}) as { readonly [name: string]: number | null };
    return { logprobs: logprobs.flat(), gradNorm: gradNorm in metrics ? (metrics[gradNorm] ?? Number.NaN) : undefined };
  }

  /** Saves adapter and optimizer; the address by which another model loads them. */
  async save(): Promise<string> {
    const name = `state-${++this.saves}`;
    const path = await this.written("save_weights", { model_id: this.id, path: name, type: "save_weights" }, name, "training");
    return path ?? `tinker://${this.id}/weights/${name}`;
  }

  /** Saves what samplers load. */
  async saveSampler(): Promise<{ readonly path: string; readonly name: string }> {
    const name = `sampler-${++this.saves}`;
    const path = await this.written("save_weights_for_sampler", { model_id: this.id, path: name, type: "save_weights_for_sampler" }, name, "sampler");
    return { path: path ?? `tinker://${this.id}/${name}`, name };
  }

  /** Removes a checkpoint that nobody needs any more; a server that cannot keeps it. */
  async drop(kind: "weights" | "sampler_weights", name: string): Promise<void> {
    await this.connection.raw({ method: "DELETE", path: `/api/v1/training_runs/${this.id}/checkpoints/${kind}/${name}` }).catch(() => undefined);
  }

  /** Loads adapter and optimizer: the first that a new model is asked for, because later ones are refused. */
  async load(path: string, optimizer: boolean): Promise<void> {
    const body = { model_id: this.id, path, optimizer, seq_id: ++this.seq, type: "load_weights" };
    const done = await this.inOrder(() => this.submitted("load_weights", post("load_weights", body), readObject));
    await done();
  }

  /** Gives the slot back. */
  async unload(deadlineMs?: number): Promise<void> {
    const answer = await this.connection.call({
      ...post("unload_model", { model_id: this.id, type: "unload_model" }),
      what: "unload_model",
      method: "POST",
      repeatable: true,
      ...(deadlineMs === undefined ? {} : { deadlineMs }),
    });
    const { request_id } = readObject(answer) ?? {};
    await this.connection.result(String(request_id), {
      what: "unload_model",
      read: readObject,
      ...(deadlineMs === undefined ? {} : { signal: AbortSignal.timeout(deadlineMs) }),
    });
  }

  private async beginAll(passes: readonly Pass[]): Promise<Begun[]> {
    const waiting: Begun[] = [];
    for (const { loss, config, data } of passes) {
      for (const chunk of chunksOf(data, this.traits.dialect))
        waiting.push(await this.begin(chunk, { loss, forwardOnly: false, ...(config ? { config } : {}) }));
    }
    return waiting;
  }

  private async begin(chunk: readonly Datum[], more: Pick<PassRequest, "loss" | "config" | "forwardOnly"> & { readonly signal?: AbortSignal }): Promise<Begun> {
    const { signal, ...rest } = more;
    const encoded = encodePass(this.traits.dialect, { model: this.id, seq: ++this.seq, data: chunk, ...rest });
    const what = rest.forwardOnly ? "forward" : "forward_backward";
    const done = await this.submitted(what, encoded, (answer) => readPass(answer, chunk), rest.forwardOnly, signal);
    return { done };
  }

  /**
   * Sends an operation. Its result, where it is not kept any more, is asked for again by the same request where that is
   * applied once; else nobody can say whether it was applied.
   */
  private async submitted<T>(
    what: string,
    encoded: Encoded,
    read: (answer: Answer) => T | undefined,
    harmless = false,
    signal?: AbortSignal,
  ): Promise<() => Promise<T>> {
    const repeatable = harmless || this.traits.deduplicates;
    const submit = { ...encoded, what, repeatable, ...(signal ? { signal } : {}) };
    const id = await this.connection.submit(submit);
    return async () => {
      try {
        return await this.connection.result(id, { what, read, ...(signal ? { signal } : {}) });
      } catch (error) {
        if (!isFault(error, "gone")) throw error;
        if (repeatable) {
          const again = await this.connection.submit(submit);
          if (again !== id) return this.connection.result(again, { what, read, ...(signal ? { signal } : {}) });
        }
        const cause = `the result of ${what} is not kept any more, so nobody can say whether it was applied`;
        throw new ServerFault("ambiguous", { place: this.connection.place, cause, mend: "resume the run from its last checkpoint" });
      }
    };
  }

  /** Writes a checkpoint. A repetition after a lost answer finds its own name taken: then the list says whether it is there. */
  private async written(what: string, body: object, name: string, kind: "training" | "sampler"): Promise<string | undefined> {
    const run = async (): Promise<() => Promise<Record<string, unknown>>> => {
      const id = await this.connection.submit({ ...post(what, body), what, repeatable: true });
      return () => this.connection.result(id, { what, read: readObject });
    };
    try {
      const { path } = await (await this.inOrder(run))();
      return typeof path === "string" ? path : undefined;
    } catch (error) {
      if (!isFault(error, "taken", "gone")) throw error;
      const found = await this.checkpoint(name, kind);
      if (found === undefined) throw error;
      return found;
    }
  }

  private async checkpoint(name: string, kind: "training" | "sampler"): Promise<string | undefined> {
    const { checkpoints } = await this.connection.json("the list of checkpoints", "GET", `/api/v1/training_runs/${this.id}/checkpoints`);
    type Listed = { readonly checkpoint_id?: string; readonly checkpoint_type?: string; readonly tinker_path?: string };
    return (checkpoints as readonly Listed[] | undefined)?.find((each) => each.checkpoint_id === name && each.checkpoint_type === kind)?.tinker_path;
  }

  /** Runs after what was sent before has been taken on. */
  private inOrder<T>(act: () => Promise<T>): Promise<T> {
    const next = this.tail.then(act, act);
    this.tail = next.catch(() => undefined);
    return next;
  }
}

interface Begun {
  readonly done: () => Promise<PassResult>;
}

async function sequence<T, U>(items: readonly T[], act: (item: T) => Promise<U>): Promise<U[]> {
  const results: U[] = [];
  for (const item of items) results.push(await act(item));
  return results;
}
