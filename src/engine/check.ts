/**
 * Argument checks that all engines share, made before any work starts: each refusal is one sentence with place, cause
 * and mend. An engine hands in what it knows of the weights named; everything else is in the arguments.
 */
import { ArgumentError } from "../core/errors.js";
import type { Context } from "../core/problem.js";
import type { Truncation } from "../core/trajectory.js";
import type {
  Capability,
  Derivatives,
  EngineInfo,
  LoadRequest,
  ModelInfo,
  ParameterSet,
  SampleRequest,
  Scores,
  ScoreWant,
  Sequence,
  StepRequest,
  TensorValue,
  WeightsRef,
} from "./contract.js";
import { temperatures } from "./contract.js";
import { needCapability, noValueHead, unknownTensor } from "./refuse.js";

/** What the checks need to know of a model. */
export type Known = Pick<ModelInfo, "vocabulary" | "width" | "maxTokens" | "layers" | "hasValueHead" | "adapter">;
/** Finds the model of weights; throws the errors below for unknown roles and snapshots. */
export type Lookup = (ref: WeightsRef, place: string) => Known;

function refuse(place: string, cause: string, mend: string): never {
  throw new ArgumentError({ place, cause, mend });
}

/** The role behind `role:NAME`; `inputs` has no weights. */
export function roleOfSet(set: ParameterSet, place: string): string {
  if (set.startsWith("role:")) return set.slice("role:".length);
  return refuse(place, `parameter set ${set} keeps no weights, gradient or optimizer state`, "name a role: role:policy");
}

function checkWeights(engine: EngineInfo, ref: WeightsRef, place: string): void {
  if (ref.scale !== undefined) needCapability(engine, "adapters", place);
  if (ref.perturb !== undefined) needCapability(engine, "weights.perturb", place);
}

/** A scale belongs to an adapter. */
export function checkScale({ role, scale }: WeightsRef, { adapter }: Pick<ModelInfo, "adapter">, place: string): void {
  if (scale === undefined) return;
  if (adapter === undefined) refuse(place, `scale ${scale} is given and role ${role} has no adapter`, "leave it out");
  if (!Number.isFinite(scale)) refuse(place, `the adapter's scale is ${scale}`, "give a finite number; 0 is the adapter off");
}

function checkTemperature(temperature: number, place: string): void {
  const { least, most } = temperatures;
  if (!(temperature >= least && temperature <= most)) {
    refuse(place, `temperature ${temperature} is not from ${least} to ${most}`, "give one within, or ask for the most likely token with `greedy`");
  }
}

export function checkIds(ids: Int32Array, vocabulary: number, what: string, place: string): void {
  // A loop of its own: every token of every call goes through it.
  let at = 0;
  while (at < ids.length && (ids[at] as number) >= 0 && (ids[at] as number) < vocabulary) at++;
  if (at < ids.length)
    refuse(place, `${what} id ${ids[at]} at position ${at} is outside the vocabulary of ${vocabulary}`, "encode with the model's own tokenizer");
}

function checkContext(engine: EngineInfo, context: Context, model: Known, place: string): void {
  if (context.ids.length === 0) refuse(place, "the context is empty", "give at least one token: the first response token is predicted from it");
  checkIds(context.ids, model.vocabulary, "context", place);
  if (context.media !== undefined && context.media.length > 0) needCapability(engine, "media", place);
  const { rows } = context;
  if (rows === undefined) return;
  needCapability(engine, "input-rows", place);
  const { positions } = rows;
  const wrong = positions.findIndex((at, i) => at < 0 || at >= context.ids.length || (i > 0 && at <= positions[i - 1]));
  if (wrong >= 0) refuse(place, `input row ${wrong} has position ${positions[wrong]}`, "give ascending positions inside the context");
  if (rows.rows.length !== positions.length * model.width) {
    refuse(
      place,
      `input rows hold ${rows.rows.length} numbers for ${positions.length} positions of width ${model.width}`,
      "give one number a position and unit of width",
    );
  }
}

function checkTruncation({ topK, topP, minP }: Truncation, place: string): void {
  if (topK !== undefined && !(Number.isInteger(topK) && topK >= 1)) refuse(place, `truncation topK is ${topK}`, "give a whole number of at least 1");
  if (topP !== undefined && !(topP > 0 && topP <= 1)) refuse(place, `truncation topP is ${topP}`, "give a number above 0 and at most 1");
  if (minP !== undefined && !(minP >= 0 && minP <= 1)) refuse(place, `truncation minP is ${minP}`, "give a number from 0 to 1");
}

function checkTopK(k: number, vocabulary: number, place: string): void {
  if (!(Number.isInteger(k) && k >= 1 && k <= vocabulary))
    refuse(place, `topK is ${k} in a vocabulary of ${vocabulary}`, "give a whole number from 1 to its size");
}

/** Refuses requests that cannot be meant. Forced tokens must not end the response before their last. */
export function checkSample(engine: EngineInfo, requests: readonly SampleRequest[], lookup: Lookup): void {
  needCapability(engine, "sample", "sample");
  requests.forEach((request, index) => {
    const place = `sample request ${index}`;
    const { context, maxTokens, stop, forced, topK, truncation } = request;
    checkWeights(engine, request.weights, place);
    const model = lookup(request.weights, place);
    checkScale(request.weights, model, place);
    checkContext(engine, context, model, place);
    checkTemperature(request.temperature, place);
    if (!(Number.isInteger(maxTokens) && maxTokens >= 1)) refuse(place, `maxTokens is ${maxTokens}`, "give a whole number of at least 1");
    checkLength(context.ids.length, maxTokens, model, place);
    checkIds(Int32Array.from(stop.ids), model.vocabulary, "stop", place);
    if (stop.strings !== undefined && stop.strings.length > 0) needCapability(engine, "sample.stop-strings", place);
    if (request.greedy) needCapability(engine, "sample.greedy", place);
    if (topK !== undefined) {
      needCapability(engine, "sample.top-k", place);
      checkTopK(topK, model.vocabulary, place);
    }
    if (truncation !== undefined) {
      needCapability(engine, "sample.truncation", place);
      checkTruncation(truncation, place);
    }
    if (forced === undefined || forced.length === 0) return;
    needCapability(engine, "sample.forced", place);
    checkIds(forced, model.vocabulary, "forced", place);
    if (forced.length > maxTokens) refuse(place, `${forced.length} forced tokens exceed maxTokens ${maxTokens}`, "raise maxTokens: forced tokens count");
    const end = forced.findIndex((id) => stop.ids.includes(id));
    if (end >= 0 && end < forced.length - 1)
      refuse(place, `forced token ${end} is stop id ${forced[end]}`, "take the id out of the stop ids, or force only up to it");
  });
}

function checkLength(context: number, response: number, model: Known, place: string): void {
  if (context + response > model.maxTokens) {
    refuse(place, `${context} context and ${response} response tokens exceed the model's ${model.maxTokens}`, "shorten the context or the response");
  }
}

/** Refuses sequences and wants that cannot be meant, for `score` and `forward`. */
export function checkSequences(engine: EngineInfo, call: "score" | "forward", sequences: readonly Sequence[], want: ScoreWant, lookup: Lookup): void {
  needCapability(engine, call === "score" ? "score" : "train", call);
  const can = (asked: unknown, score: Capability, train: Capability): void => {
    if (asked) needCapability(engine, call === "score" ? score : train, call);
  };
  can(want.entropy, "score.entropy", "train.entropy");
  can(want.values, "score.values", "train.values");
  can(
    want.targets?.some((targets) => targets),
    "score.targets",
    "train.targets",
  );
  can(want.topK !== undefined, "score.top-k", "score.top-k");
  can(want.hidden, "score.hidden", "score.hidden");
  can(want.full, "score.full", "score.full");
  if (want.targets !== undefined && want.targets.length !== sequences.length) {
    refuse(call, `targets are given for ${want.targets.length} of ${sequences.length} sequences`, "give one entry a sequence, undefined where none is wanted");
  }
  sequences.forEach((sequence, index) => {
    const place = `${call} sequence ${index}`;
    checkWeights(engine, sequence.weights, place);
    const model = lookup(sequence.weights, place);
    checkScale(sequence.weights, model, place);
    checkContext(engine, sequence.context, model, place);
    checkIds(sequence.response, model.vocabulary, "response", place);
    checkLength(sequence.context.ids.length, sequence.response.length, model, place);
    checkTemperature(sequence.temperature, place);
    if (sequence.temperature !== 1) needCapability(engine, "score.temperature", place);
    if (want.values && !model.hasValueHead) throw noValueHead(place, sequence.weights.role);
    if (want.topK !== undefined) checkTopK(want.topK, model.vocabulary, place);
    for (const layer of want.hidden ?? []) {
      if (layer !== "final" && !(Number.isInteger(layer) && layer >= 0 && layer <= model.layers)) {
        refuse(place, `hidden layer ${layer} is asked of a model with ${model.layers} layers`, `give 0 to ${model.layers}, or final`);
      }
    }
    const targets = want.targets?.[index];
    if (targets) checkTargets(targets.ids, targets.k, sequence.response.length, model.vocabulary, place);
  });
}

function checkTargets(ids: Int32Array, k: number, tokens: number, vocabulary: number, place: string): void {
  if (!(Number.isInteger(k) && k >= 1)) refuse(place, `targets have k = ${k}`, "give a whole number of at least 1");
  if (ids.length !== tokens * k) refuse(place, `targets hold ${ids.length} ids for ${tokens} tokens of ${k}`, "give k ids a response token");
  checkIds(ids, vocabulary, "target", place);
  for (let t = 0; t < tokens; t++) {
    const here = ids.subarray(t * k, (t + 1) * k);
    const twice = here.find((id, i) => here.indexOf(id) < i);
    if (twice !== undefined) refuse(place, `target id ${twice} is listed twice at token ${t}`, "list each id once a position");
  }
}

/** Refuses derivatives of numbers that `forward` did not return. Values are not looked at: the step's guard names what is not finite. */
export function checkDerivatives(derivatives: readonly Derivatives[], scores: readonly Scores[]): void {
  if (derivatives.length !== scores.length) {
    refuse("backward", `it got derivatives of ${derivatives.length} sequences and its forward had ${scores.length}`, "give one entry a sequence");
  }
  const pairs = [
    ["dLogp", "logp"],
    ["dEntropy", "entropy"],
    ["dValue", "values"],
    ["dTargetLogp", "targetLogp"],
    ["dTargetTail", "targetTail"],
  ] as const;
  derivatives.forEach((given, index) => {
    for (const [derivative, number] of pairs) {
      const array = given[derivative];
      if (array === undefined) continue;
      const place = `backward sequence ${index}`;
      const expected = scores[index][number];
      if (expected === undefined)
        refuse(place, `${derivative} is given but forward was not asked for ${number}`, "ask for it in forward, or leave the derivative out");
      if (array.length !== expected.length)
        refuse(place, `${derivative} has ${array.length} entries and ${number} has ${expected.length}`, "give one derivative a number");
    }
  });
}

/** Refuses a backward pass into weights that its forward pass did not run under. */
export function checkReceiver(set: ParameterSet, role: string, sequences: readonly Sequence[]): void {
  sequences.forEach(({ weights }, index) => {
    const place = `backward sequence ${index}`;
    if (weights.role !== role) refuse(place, `its forward ran under role ${weights.role} and the gradient is for ${set}`, "run one forward a parameter set");
    if (weights.at !== undefined) refuse(place, `its forward ran under snapshot ${weights.at}`, "leave `at` out: only current weights are trained");
    if (weights.scale === 0) refuse(place, "its forward ran with the adapter off, so nothing that learns was in it", "leave `scale` out");
  });
}

/** Refuses update rules with numbers that cannot be meant. */
export function checkStep(engine: EngineInfo, { update, maxNorm, groups }: StepRequest): void {
  const place = `step ${update.rule}`;
  if (!["sgd", "adamw", "muon"].includes(update.rule)) refuse("step", `there is no update rule ${update.rule}`, "use sgd, adamw or muon");
  needCapability(engine, `optimizer.${update.rule}`, place);
  const atLeast0 = (name: string, value: number | undefined): void => {
    if (value !== undefined && !(value >= 0 && Number.isFinite(value))) refuse(place, `${name} is ${value}`, "give a finite number of at least 0");
  };
  const below1 = (name: string, value: number | undefined): void => {
    if (value !== undefined && !(value >= 0 && value < 1)) refuse(place, `${name} is ${value}`, "give a number of at least 0 and below 1");
  };
  atLeast0("rate", update.rate);
  atLeast0("weightDecay", update.weightDecay);
  if (update.rule !== "adamw") below1("momentum", update.momentum);
  if (update.rule !== "sgd") {
    below1("beta1", update.beta1);
    below1("beta2", update.beta2);
    atLeast0("epsilon", update.epsilon);
  }
  if (maxNorm !== undefined) needCapability(engine, "optimizer.clip", place);
  if (groups !== undefined && groups.length > 0) needCapability(engine, "optimizer.groups", place);
  if (update.rule === "adamw" && [update.beta1, update.beta2, update.epsilon, update.weightDecay].some((number) => number !== undefined)) {
    needCapability(engine, "optimizer.moments", place);
  }
  if (maxNorm !== undefined && !(maxNorm > 0)) refuse(place, `maxNorm is ${maxNorm}`, "give a number above 0, or leave it out for no clipping");
  for (const rule of groups ?? []) {
    atLeast0(`rateScale of ${rule.match}`, rule.rateScale);
    atLeast0(`weightDecay of ${rule.match}`, rule.weightDecay);
  }
}

/** Refuses tensors that a role does not have, of another shape, or with numbers that are not finite; nothing is written then. */
export function checkTensors(role: string, tensors: readonly TensorValue[], known: ModelInfo["tensors"]): void {
  const place = `weights.write ${role}`;
  for (const { name, shape, data } of tensors) {
    const model = known.find((tensor) => tensor.name === name);
    if (!model)
      throw unknownTensor(
        place,
        role,
        name,
        known.map((tensor) => tensor.name),
      );
    const size = model.shape.reduce((a, b) => a * b, 1);
    if (shape.join() !== model.shape.join() || data.length !== size) {
      refuse(place, `tensor ${name} has shape [${shape}] and ${data.length} numbers where the model has [${model.shape}]`, "give the model's shape");
    }
    const at = data.findIndex((x) => !Number.isFinite(x));
    if (at >= 0) refuse(place, `tensor ${name} holds ${data[at]} at entry ${at}`, "give finite numbers");
  }
}

/** Refuses weights that are to be a snapshot of a role whose tensors are others. */
export function checkSnapshot(role: string, tensors: ModelInfo["tensors"], known: ModelInfo["tensors"]): void {
  const said = (list: ModelInfo["tensors"]): string => list.map(({ name, shape }) => `${name} [${shape}]`).join(", ");
  if (said(tensors) === said(known)) return;
  refuse(`weights.load ${role}`, `a snapshot has the tensors ${said(tensors)} and the role ${said(known)}`, "load a snapshot of the same model");
}

/** Refuses a role name that would be ambiguous in identities such as `policy@3`. */
export function checkRoleName(request: LoadRequest): void {
  if (!/^[A-Za-z][\w.-]*$/.test(request.role))
    refuse("weights.load", `role name ${JSON.stringify(request.role)} is not usable`, "use letters, digits, _ . and -, starting with a letter");
}
