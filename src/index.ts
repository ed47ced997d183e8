/** Touchstone as a library: everything that a task, a method or a program of one's own needs. */

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
export { type EvaluateOptions, type Evaluation, evaluate } from "./evaluate/evaluate.js";
export { type Estimate, estimateOf, type Metrics, metricsOf } from "./evaluate/metrics.js";
export { readStore, type SampleStore, writeStore } from "./evaluate/store.js";
export { anyMethod } from "./methods/catalogue.js";
export * from "./tasks/chain/chain.js";
export * from "./tasks/contract.js";
export * from "./tasks/define.js";
export type { TrainConfig, TrainConfigInput } from "./train/config.js";
export type { OnProgress, TrainProgress } from "./train/progress.js";
export { resume, type TrainHooks, type TrainOptions, type TrainResult, train } from "./train/train.js";
export * from "./verify/contract.js";
export * from "./verify/exact/exact.js";
export * from "./verify/number/number.js";
export * from "./verify/simple.js";
