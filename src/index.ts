/** Touchstone as a library: everything that a task, a method or a program of one's own needs. */

export { z } from "zod";
export { planRuns, runAll } from "./compare/methods.js";
export { type Arm, type Report, reportOf } from "./compare/report.js";
export { type ComparedRun, readRun } from "./compare/run.js";
export * from "./core/alphabet.js";
export * from "./core/errors.js";
export * from "./core/json.js";
export * from "./core/note.js";
export * from "./core/options.js";
export * from "./core/problem.js";
export * from "./core/random.js";
export * from "./core/tokenizer.js";
export * from "./core/trajectory.js";
export * from "./core/verdict.js";
export type * from "./engine/contract.js";
export { startLocal } from "./engine/onnx/start.js";
export { type EvaluateOptions, type Evaluation, evaluate } from "./evaluate/evaluate.js";
export { type Estimate, estimateOf, type Metrics, metricsOf } from "./evaluate/metrics.js";
export { readStore, type SampleStore, writeStore } from "./evaluate/store.js";
export { aggregator } from "./losses/aggregate.js";
export { type ClipOptions, clip } from "./losses/clip.js";
export { entropyTerm } from "./losses/entropy.js";
export { softGate } from "./losses/gate.js";
export { geometric } from "./losses/geometric.js";
export { importance } from "./losses/importance.js";
export { klTerm } from "./losses/kl.js";
export { cispo as cispoLoss, reinforce as reinforceLoss } from "./losses/weighted.js";
export { comparesAnswers, groupAdvantages, leaveOneOut } from "./methods/advantages.js";
export { anyMethod } from "./methods/catalogue.js";
export type * from "./methods/contract.js";
export { Credit, perGroup, rowsByGroup, rowsOf } from "./methods/credit.js";
export { defineMethod, type MethodParts } from "./methods/define.js";
export {
  type AnyModule,
  type Bench,
  type Claim,
  type Demonstration,
  defineDemonstration,
  type TrainedRun,
  type TrainingArm,
  type TrainingOptions,
} from "./methods/demonstration.js";
export { keepRows, keepTokens } from "./methods/keep.js";
export { compose } from "./methods/resolve.js";
export { episodesOf, returnsToGo } from "./methods/rewards.js";
export { type EnvironmentHost, startHost } from "./rollout/environment.js";
export * from "./tasks/add/add.js";
export * from "./tasks/calculator/calculator.js";
export * from "./tasks/calls.js";
export { loadTask } from "./tasks/catalogue.js";
export * from "./tasks/chain/chain.js";
export * from "./tasks/contract.js";
export * from "./tasks/define.js";
export * from "./tasks/guess/guess.js";
export * from "./tasks/jsonl-rows.js";
export * from "./tasks/pair/pair.js";
export * from "./tasks/tools.js";
export type { TrainConfig, TrainConfigInput } from "./train/config.js";
export type { LogEntry, LoggedRun, Logger } from "./train/logger.js";
export type { OnProgress, TrainProgress } from "./train/progress.js";
export { resume, type TrainHooks, type TrainOptions, type TrainResult, train } from "./train/train.js";
export { type ChoiceOptions, choice as choiceVerifier, choiceOptions } from "./verify/choice/choice.js";
export { type ComposeOptions, compose as composeVerifiers, composeOptions } from "./verify/compose/compose.js";
export * from "./verify/contract.js";
export * from "./verify/exact/exact.js";
export * from "./verify/formula/formula.js";
export * from "./verify/math/math.js";
export * from "./verify/number/number.js";
export type { RewardItem, RewardProblem } from "./verify/reward/item.js";
export type { Reward } from "./verify/reward/module.js";
export * from "./verify/simple.js";
export * from "./verify/trinary/trinary.js";
