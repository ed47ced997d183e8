/** Update rules: the optimizer slot's module and the schedule as one rule for each update. */
import { z } from "zod";
import { CapabilityError, ConfigError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import { parseOptions } from "../core/options.js";
import type { EngineInfo, ParameterSet, UpdateRule } from "../engine/contract.js";
import { needCapability } from "../engine/refuse.js";
import { rateAt, type Schedule } from "../engine/schedule.js";
import type { Method, ModuleRef } from "../methods/contract.js";
import type { Resolved } from "../methods/resolve.js";
import { type TrainConfig, truncationOf, updatesOf } from "./config.js";

const adamw = z.strictObject({
  beta1: z.number().default(0.9),
  beta2: z.number().default(0.95),
  epsilon: z.number().default(1e-8),
  weight_decay: z.number().default(0),
});
const muon = adamw.extend({
  momentum: z.number().default(0.95),
  nesterov: z.boolean().default(true),
  adjust: z.enum(["match_rms_adamw", "original"]).default("match_rms_adamw"),
});
const sgd = z.strictObject({ momentum: z.number().default(0), weight_decay: z.number().default(0) });

/** What the user wrote under `optimizer`, as a method that sets the slot; undefined where nothing was written. */
export function optimizerMethod(config: TrainConfig): Method | undefined {
  if (config.optimizer === undefined) return undefined;
  const { rule, momentum, nesterov, adjust, weight_decay, ...moments } = config.optimizer;
  const own: { readonly [name: string]: Json } = momentum === undefined ? {} : { momentum };
  const options: { readonly [name: string]: Json } = rule === "adamw" ? moments : rule === "sgd" ? own : { ...moments, ...own, nesterov, adjust };
  return { name: "options", slots: { optimizer: { sets: { module: rule, options: { ...options, weight_decay } }, about: `${rule}, as set` } } };
}

/** Largest gradient norm where none is written and the engine can scale down. */
export const usualNorm = 1;

/** The norm that a gradient is scaled down to: what was asked for, 1, or none where the engine cannot. Throws CapabilityError where it was asked to and cannot. */
export function normLimit(engine: EngineInfo, asked: number | undefined, place: string): number | undefined {
  if (engine.has.has("optimizer.clip")) return asked ?? usualNorm;
  if (asked !== undefined) needCapability(engine, "optimizer.clip", place);
  return undefined;
}

/** Throws CapabilityError for what a run asks of an engine that would do otherwise, before anything is done. */
export function refuseUnlessAble(engine: EngineInfo, config: Pick<TrainConfig, "temperature" | "optimizer" | "stages" | "eval">): void {
  const { temperature, optimizer, stages = [] } = config;
  if (temperature !== 1) {
    for (const capability of ["sample.temperature", "score.temperature"] as const) needCapability(engine, capability, `temperature ${temperature}`);
  }
  if (optimizer?.rule === "adamw") needCapability(engine, "optimizer.moments", "optimizer");
  if (stages.some((stage) => stage.optimizer === "reset")) needCapability(engine, "optimizer.reset", "stages, optimizer reset");
  if (config.eval.every === 0) return;
  if (config.eval.greedy) needCapability(engine, "sample.greedy", "eval.greedy");
  if (truncationOf(config.eval) !== undefined) needCapability(engine, "sample.truncation", "eval");
}

/** The rule of an update, counted from 1, for a parameter set. */
export type RuleOf = (update: number, set: ParameterSet) => UpdateRule;

/** The rule of each update of the run; `rateOf` is the peak rate of a set, whose schedule is the policy's at that height. Throws CapabilityError for modules that are not built. */
export function ruleOf(method: Resolved, engine: EngineInfo, config: TrainConfig, rateOf: (set: ParameterSet) => number): RuleOf {
  const parametrisation = method.one.parametrisation.value;
  if (parametrisation.module !== "identity") throw unknownModule("parametrisation", method.one.parametrisation.from, parametrisation, "identity (all weights)");
  const rate = (n: number, set: ParameterSet): number => rateAt(scheduleOf(config, rateOf(set)), n);
  const { value, from } = method.one.optimizer;
  const place = `optimizer of ${from}`;
  if (value.module === "adamw" && engine.has.has("optimizer.adamw")) {
    const { beta1, beta2, epsilon, weight_decay } = parseOptions(adamw, value.options, place);
    // An engine that goes by numbers of its own takes the rate alone; what the user wrote was refused before.
    const numbers = engine.has.has("optimizer.moments") ? { beta1, beta2, epsilon, weightDecay: weight_decay } : {};
    return (n, set) => ({ rule: "adamw", rate: rate(n, set), ...numbers });
  }
  if (value.module === "sgd" && engine.has.has("optimizer.sgd")) {
    const { momentum, weight_decay } = parseOptions(sgd, value.options, place);
    return (n, set) => ({ rule: "sgd", rate: rate(n, set), momentum, weightDecay: weight_decay });
  }
  if (value.module === "muon" && engine.has.has("optimizer.muon")) {
    const { weight_decay, ...rest } = parseOptions(muon, value.options, place);
    return (n, set) => ({ rule: "muon", rate: rate(n, set), ...rest, weightDecay: weight_decay });
  }
  const valid = (["adamw", "sgd", "muon"] as const).filter((rule) => engine.has.has(`optimizer.${rule}`));
  throw unknownModule("optimizer", from, value, valid.join(" or "));
}

/** The learning rate of each update with its peak at `peak`. Throws ConfigError for a warm-up that the run would not outlast. */
export function scheduleOf(config: TrainConfig, peak: number = config.lr): Schedule {
  const { kind, warmup, end_lr } = config.schedule;
  if (kind === "constant") return { kind, rate: peak, warmup };
  const steps = updatesOf(config);
  if (warmup >= steps)
    throw new ConfigError({ place: "schedule.warmup", cause: `it is ${warmup}, and the run has ${steps} updates`, mend: `set it below ${steps}` });
  return { kind, rate: peak, warmup, steps, endRate: config.lr > 0 ? (end_lr * peak) / config.lr : end_lr };
}

function unknownModule(slot: string, from: string, { module }: ModuleRef, valid: string): CapabilityError {
  return new CapabilityError({ place: `${slot} of ${from}`, cause: `this engine has no "${module}"`, mend: `use ${valid}` });
}
