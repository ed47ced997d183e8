/** What a server does, found out by asking it: never by its version. Everything here happens before a run's first step. */
import { CapabilityError, ConfigError } from "../../core/errors.js";
import { LostAnswer } from "../../core/http.js";
import type { Connection } from "./connection.js";
import type { Reduction } from "./datum.js";
import { faultOf } from "./faults.js";
import { type Adam, post, readObject, type ServerModel, type ServerTraits } from "./model.js";
import type { Datum, Dialect } from "./wire.js";

/** What the engine needs to know of a server that trains. */
export interface TrainTraits {
  readonly reduction: Reduction;
  /** A step goes by the betas, epsilon and decay that are sent. */
  readonly moments: boolean;
  /** A checkpoint can be loaded without its optimizer. */
  readonly resets: boolean;
}

/** Names of the models that a server trains. */
export async function modelsOf(connection: Connection): Promise<string[]> {
  await connection.json("healthz", "GET", "/api/v1/healthz");
  const { supported_models: models } = await connection.json("get_server_capabilities", "GET", "/api/v1/get_server_capabilities");
  const names = Array.isArray(models) ? models.map((each: { model_name?: unknown } | null) => each?.model_name) : [];
  return names.filter((name): name is string => typeof name === "string");
}

/** The base to be trained: the one that was named, or the server's only one. A server takes any name without a word, so it is checked here. */
export function baseOf(models: readonly string[], named: string | undefined, place: string): string {
  const list = models.join(", ") || "none";
  const refuse = (cause: string, mend: string): never => {
    throw new ConfigError({ place: "engine.served_model", cause, mend });
  };
  if (named !== undefined) return models.includes(named) ? named : refuse(`the ${place} trains ${list}, and not ${named}`, "name one of these");
  if (models.length === 1) return models[0] as string;
  return refuse(`the ${place} trains ${list}`, models.length === 0 ? "see how it was started" : "name the one to be trained");
}

/** Which dialect an endpoint asks for: an empty body is malformed to a server that reads JSON, and of the wrong kind to one that reads protobuf. */
export async function dialectOf(connection: Connection): Promise<Dialect> {
  for (let attempt = 1; ; attempt++) {
    try {
      const answer = await connection.raw({ method: "POST", path: "/api/v1/forward_backward", body: "{}", fresh: true });
      if (answer.status === 422 || answer.status === 400) return "json";
      if (answer.status === 415) return "protobuf";
      if (attempt === 3 || answer.status < 500) throw faultOf("refused", answer, connection.place, "a forward_backward without a body");
    } catch (error) {
      if (!(error instanceof LostAnswer) || attempt === 3) throw error;
    }
  }
}

/** A step that changes nothing: of a new adapter's moments, which are 0, too. */
export const still: Adam = { learning_rate: 0, beta1: 0.9, beta2: 0.95, eps: 1e-8, weight_decay: 0 };

/** A short sequence of ids that every vocabulary has, all of it response. */
export function probeDatum(weight: number): Datum {
  return { ids: Int32Array.from({ length: 12 }, (_, i) => 1 + ((5 * i) % 7)), from: 0, weight };
}

/** Norms of the gradient of one sequence with weights 1, with weights 2, and of the same sequence twice. */
export interface Norms {
  readonly once: number;
  readonly weighted: number;
  readonly twice: number;
}

const close = (a: number, b: number): boolean => Math.abs(a - b) <= 0.02 * Math.abs(b);

/** The reduction behind such norms; undefined where it is neither. */
export function reductionOf({ once, weighted, twice }: Norms): Reduction | undefined {
  if (!(once > 0)) return undefined;
  if (close(weighted, 2 * once) && close(twice, 2 * once)) return "sum";
  return close(weighted, once) && close(twice, once) ? "sequence-mean-then-batch-mean" : undefined;
}

/** Norms as a model tells them; undefined where it tells none. One shape of tensors serves all. */
export async function normsOf(model: ServerModel): Promise<Norms | undefined> {
  const norm = async (weight: number): Promise<number | undefined> => {
    return (await model.step([{ loss: "cross_entropy", data: [probeDatum(weight)] }], still)).gradNorm;
  };
  const once = await norm(1);
  if (once === undefined) return undefined;
  const weighted = await norm(2);
  await model.backward([{ loss: "cross_entropy", data: [probeDatum(1)] }]);
  const twice = await norm(1);
  return weighted === undefined || twice === undefined ? undefined : { once, weighted, twice };
}

/** Whether a repeated request is the same one to the server: a step of rate 0 under one number, twice. */
export async function deduplicatesOf(connection: Connection, model: string): Promise<boolean> {
  const encoded = post("optim_step", { model_id: model, seq_id: 1_000, adam_params: still, type: "optim_step" });
  const submit = { ...encoded, what: "optim_step", repeatable: true };
  const ids = [await connection.submit(submit), await connection.submit(submit)];
  for (const id of ids) await connection.result(id, { what: "optim_step", read: readObject });
  return ids[0] === ids[1];
}

/** Whether steps go by all numbers that are sent, and whether a model that was loaded without its optimizer has a new one; `model` is loaded so, from one with moments. */
export async function optimizerOf(model: ServerModel): Promise<Pick<TrainTraits, "moments" | "resets">> {
  let before = await logpOf(model);
  /** Whether a step moves the weights: with the gradient of the probe's sequence, or with none. */
  const moves = async (weight: 0 | 1, adam: Partial<Adam>): Promise<boolean> => {
    await model.step([{ loss: "cross_entropy", data: [probeDatum(weight)] }], { ...still, ...adam });
    const after = await logpOf(model);
    const moved = after.some((x, i) => !(Math.abs(x - (before[i] as number)) <= 2e-5));
    before = after;
    return moved;
  };
  const rate = { learning_rate: 0.01 };
  // Without a gradient only what an optimizer remembers moves anything.
  const resets = !(await moves(0, rate));
  const epsilon = !(await moves(1, { ...rate, eps: 1e9 }));
  const mean = !(await moves(0, { ...rate, beta1: 0 }));
  await moves(1, {});
  // The square is forgotten and the mean is not: what is left is divided by epsilon alone.
  const square = await moves(0, { learning_rate: 1e-8, beta2: 0 });
  const decay = square && (await moves(0, { ...rate, beta1: 0, weight_decay: 50 }));
  return { resets, moments: epsilon && mean && square && decay };
}

const logpOf = async (model: ServerModel): Promise<Float64Array> => (await model.forward([probeDatum(1)]))[0] as Float64Array;

/** Makes models for probes, and gives them back. */
export interface ProbeModels {
  make(): Promise<ServerModel>;
  release(model: ServerModel): Promise<void>;
}

/** All of it, on models that are given back. Throws CapabilityError for a server whose gradients nobody understands. */
export async function traitsOf(connection: Connection, { make, release }: ProbeModels): Promise<TrainTraits & Pick<ServerTraits, "deduplicates">> {
  const using = async <T>(act: (model: ServerModel) => Promise<T>): Promise<T> => {
    const model = await make();
    try {
      return await act(model);
    } finally {
      await release(model);
    }
  };
  const { state, ...found } = await using(async (model) => {
    const norms = await normsOf(model);
    const reduction = norms && reductionOf(norms);
    if (reduction === undefined) {
      const told = norms ? `gradient norms ${norms.once}, with weights doubled ${norms.weighted}, with the sequence twice ${norms.twice}` : "no gradient norm";
      throw new CapabilityError({
        place: connection.place,
        cause: `how it sums losses over tokens and sequences cannot be told from its answers (${told})`,
        mend: "use a server whose reduction is a sum, or a mean of the sequences' means",
      });
    }
    return { reduction, deduplicates: await deduplicatesOf(connection, model.id), state: await model.save(), model };
  });
  try {
    return await using(async (model) => {
      await model.load(state, false);
      const { reduction, deduplicates } = found;
      return { reduction, deduplicates, ...(await optimizerOf(model)) };
    });
  } finally {
    await found.model.drop("weights", state.slice(state.lastIndexOf("/") + 1));
  }
}
