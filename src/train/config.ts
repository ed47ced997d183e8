/** The configuration of a training run: strict, each option with its default. */
import { z } from "zod";
import { ConfigError } from "../core/errors.js";
import { parseOptions } from "../core/options.js";
import type { Path } from "../core/schema.js";
import type { Truncation } from "../core/trajectory.js";
import { temperatures } from "../engine/contract.js";
import { fallbackName } from "../methods/fallback.js";
import { dataOptions } from "../tasks/data-options.js";
import { rolesOption } from "./role-options.js";
import { json } from "./store/schema.js";

const count = z.int().min(1);
const temperature = z.number().min(temperatures.least).max(temperatures.most).default(1);
/** Beyond these a number is a slip: each problem and answer of a batch is held in memory. */
const mostProblems = 1_000_000;
const mostAnswers = 100_000;
/** Problems that are drawn unless more are asked for. */
export const drawnProblems = 100_000;
/** Each step ahead is a copy of the policy. */
const mostOverlap = 8;
/** Threads and processes beyond these would starve any machine. */
const mostThreads = 256;
const named = z.strictObject({ name: z.string().min(1), options: z.record(z.string(), json).default({}) });
/** A name, or a name with options. */
const part = z.union([z.string().min(1), named]);
const method = z.union([z.string().min(1), named.extend({ name: z.string().min(1).default(fallbackName) })]);

const methods = z.union([method, z.array(method).min(1)]);

const stage = z.strictObject({
  method: methods.default(fallbackName),
  steps: count.optional(),
  until: z
    .strictObject({ metric: z.string().min(1), at_least: z.number().optional(), at_most: z.number().optional() })
    .refine(({ at_least, at_most }) => at_least !== undefined || at_most !== undefined, "give at_least or at_most beside the metric")
    .optional(),
  optimizer: z.enum(["keep", "reset"]).default("keep"),
});

const schedule = z.strictObject({
  kind: z
    .enum(["constant", "linear", "cosine"])
    .default("constant")
    .describe("How the learning rate goes after the warm-up; linear and cosine fall to end_lr at the last update."),
  warmup: z.int().min(0).default(0).describe("Updates in which the rate climbs."),
  end_lr: z.number().min(0).default(0).describe("Rate after the last update of linear and cosine."),
});

const optimizer = z.strictObject({
  rule: z
    .enum(["adamw", "sgd", "muon"])
    .default("adamw")
    .describe("Update rule. muon: orthogonalised momentum on the matrices of the layers, AdamW with the same rate on embedding, head, norms and biases."),
  beta1: z.number().min(0).lt(1).default(0.9).describe("Decay of AdamW's mean; momentum of sgd and muon is `momentum`."),
  beta2: z.number().min(0).lt(1).default(0.95).describe("Decay of AdamW's mean square."),
  epsilon: z.number().gt(0).default(1e-8).describe("Added to AdamW's root."),
  momentum: z.number().min(0).lt(1).optional().describe("Momentum of sgd (absent: 0) and of muon (absent: 0.95)."),
  nesterov: z.boolean().default(true).describe("Muon looks one step ahead along its momentum."),
  adjust: z
    .enum(["match_rms_adamw", "original"])
    .default("match_rms_adamw")
    .describe("Size of muon's steps: as large as AdamW's, so that one lr suits both, or sqrt(max(1, rows / columns)), which wants a higher one."),
  weight_decay: z.number().min(0).default(0).describe("Decoupled weight decay."),
});

const evaluation = z.strictObject({
  every: z.int().min(0).default(0).describe("Steps between evaluations; 0: none."),
  at_start: z.boolean().default(true).describe("Also before step 1, and after the last step."),
  problems: count.default(200).describe("Problems that are measured."),
  samples: count.default(1).describe("Answers a problem."),
  temperature: temperature.describe("Temperature of these answers."),
  greedy: z.boolean().default(false).describe("Measure the most likely answer instead of a drawn one."),
  top_k: count.optional().describe("Draw these answers from the k most likely tokens alone."),
  top_p: z.number().gt(0).max(1).optional().describe("Draw from the fewest most likely tokens that reach this share of the probability, after top_k."),
  min_p: z.number().min(0).max(1).optional().describe("Draw from tokens at least so often as likely as the most likely one, after top_k and top_p."),
  verifier: part.optional().describe("Evaluation's own verifier; absent: evaluation during training follows --verifier, or without it the task's own."),
  data: dataOptions.optional().describe("Evaluation's own file; absent: the part of task or data that is held out."),
  seed: z.int().min(0).default(0).describe("Seed of the choice of problems and of the draws; the same at every evaluation."),
  on_failure: z.enum(["continue", "stop"]).default("continue").describe("Whether training goes on when an evaluation fails; the failure is recorded."),
});

const profile = z.strictObject({
  file: z.string().min(1).describe("A file of touchstone profile: how often a policy solves each problem."),
  min_pass: z.number().min(0).max(1).default(0).describe("Problems that are trained on are solved at least so often."),
  max_pass: z.number().min(0).max(1).default(1).describe("Problems that are trained on are solved at most so often."),
  unprofiled: z.enum(["refuse", "drop", "keep"]).default("refuse").describe("What becomes of problems that the profile lacks, or has no scored answer of."),
  weight: z
    .enum(["equal", "spread"])
    .default("equal")
    .describe("spread: a problem comes up in proportion to the expected p(1 - p) of its pass rate p, which is largest where it is solved half of the time."),
});

const limits = z.strictObject({
  silent_batches: count.default(20).describe("Stop after so many batches in a row without any signal."),
  gap: z.number().gt(0).default(0.05).describe("Stop when sampler and trainer differ by more than this: mean |difference of log-prob| a token, in nats."),
});

const checkpoint = z.strictObject({
  every: z.int().min(0).default(25).describe("Steps between checkpoints; 0: only at the start, at evaluations and at the end."),
  keep_last: count.default(2).describe("Newest checkpoints that stay; the first and the best stay too."),
});

const lora = z.strictObject({
  rank: count.optional().describe("Rank of the adapter; absent: 16, or that of the adapter that goes on to learn."),
  alpha: z.number().gt(0).optional().describe("Its product is added times alpha / rank; absent: twice the rank (our choice)."),
  targets: z
    .union([z.literal("all-linear"), z.array(z.string().min(1)).min(1)])
    .optional()
    .describe("Linear layers that it lies on, by PEFT's names such as q_proj; absent: all-linear, which is all of them but the head."),
  from: z.string().min(1).optional().describe("PEFT folder that it goes on from; a model that is an adapter sets it."),
});

const save = z.strictObject({
  form: z
    .enum(["merged", "adapter"])
    .default("merged")
    .describe("Of a run with lora: the base with the adapter added to its weights, or the PEFT folder. Other runs have whole weights alone."),
  dtype: z.enum(["f32", "bf16"]).default("f32").describe("Numbers of whole weights. Adapters and checkpoints are always f32, so that a resume is exact."),
});

const engine = z.strictObject({
  name: z
    .enum(["onnx", "table", "tinker"])
    .default("onnx")
    .describe("onnx: decoders; table: softmax tables and linear softmax; tinker: an adapter on a server of the Tinker protocol (remote.md)."),
  threads: count.max(mostThreads).optional().describe("Threads of each engine process; absent: what suits the size of the policy."),
  workers: count.max(mostThreads).optional().describe("Engine processes; absent: what suits the size of the policy."),
  activations: z.enum(["keep", "recompute"]).optional().describe("Keep activations for the backward pass, or compute them again (less memory)."),
  base_url: z.string().min(1).optional().describe("Of tinker: address of the server, such as http://127.0.0.1:8000."),
  served_model: z.string().min(1).optional().describe("Of tinker: how the server calls the base that is trained; absent: its only one."),
  key_env: z.string().min(1).optional().describe("Of tinker: environment variable with the server's key; absent: TINKER_API_KEY, where that is set."),
  round_tokens: count
    .optional()
    .describe(
      "Of tinker: response budgets are asked for in multiples of this and cut here, so that a server that compiles for shapes (JAX) does so once where budgets differ, as in conversations; absent: 1.",
    ),
  deadline_s: z.number().gt(0).optional().describe("Of tinker: seconds that an operation of the server may take; absent: 900."),
  away_s: z.number().gt(0).optional().describe("Of tinker: seconds that a server which does not answer is waited for; absent: 900."),
});

export const trainConfig = z.strictObject({
  model: z.string().min(1).describe("Folder of the policy to start from, or of a PEFT adapter, which then goes on to learn."),
  base: z.string().min(1).optional().describe("Base of a model that is an adapter; absent: the one that it names."),
  lora: lora.optional().describe("Train a low-rank adapter in place of the weights, which stay as they are."),
  out: z.string().min(1).describe("Folder of the run; it must be new or empty."),
  task: part.optional().describe("A task by name or by the path of a module; or give data."),
  data: dataOptions.optional().describe("Files with mapped columns; or give a task."),
  chat_template: z.string().min(1).optional().describe("File of a chat template (Jinja) in place of the model's (models.md)."),
  chat_template_kwargs: z.record(z.string(), json).optional().describe("Variables of the chat template, such as enable_thinking: false."),
  tools: z.string().min(1).optional().describe("JSON file with a list of functions that the chat template names to the policy."),
  system: z.string().min(1).optional().describe("A system message before conversations that begin without one."),
  profile: profile.optional().describe("Choose and weight the problems that are trained on by how often they are solved."),
  verifier: part
    .optional()
    .describe(
      "Verifier by name, or a reward of your own (rewards.md); needed with data, instead of the task's own with a task. Evaluation during training follows it, unless eval.verifier names another.",
    ),
  method: methods
    .optional()
    .describe(
      `A method by name or by the path of a module, or several to be composed, as dapo+rloo or in a list (methods.md); absent: ${fallbackName}, unless there are stages.`,
    ),
  stages: z
    .array(stage)
    .min(1)
    .optional()
    .describe(
      "Methods one after another: each with method, an end (steps, or until a metric is at_least or at_most a number; absent: the run's) and optimizer (keep or reset, as it begins).",
    ),
  roles: rolesOption,
  steps: count.default(100).describe("Batches."),
  problems: count.max(mostProblems).default(16).describe("Problems a batch."),
  group: count.max(mostAnswers).default(8).describe("Answers a problem."),
  train_problems: count
    .max(mostProblems)
    .optional()
    .describe("Problems that are trained on; absent: all there are, or one for each place of the run where they are drawn, up to 100000."),
  minibatches: count.default(1).describe("Optimizer steps a batch and epoch."),
  epochs: count.default(1).describe("Passes over each batch."),
  overlap: z
    .int()
    .min(0)
    .max(mostOverlap)
    .default(0)
    .describe(
      "Steps by which sampling runs ahead: a batch is drawn while the steps before it train, from the weights of so many steps before. Worth it where sampling waits or runs elsewhere (ARCHITECTURE.md); 0: each batch from the weights that it trains.",
    ),
  microbatch: count.optional().describe("Answers in one forward and backward pass; absent: the whole minibatch. Gradients add up."),
  lr: z.number().min(0).default(1e-5).describe("Peak learning rate."),
  schedule: schedule.prefault({}),
  optimizer: optimizer.optional().describe("Absent: the method's, AdamW with 0.9, 0.95 and no decay by default."),
  max_norm: z
    .number()
    .gt(0)
    .optional()
    .describe("Largest gradient norm; a longer gradient is scaled down to it. Absent: 1, or none where the engine cannot (tinker)."),
  temperature: temperature.describe("Temperature of training's answers, and of their log-probs."),
  max_tokens: count.optional().describe("Response budget in tokens; absent: the task's."),
  stop: z
    .array(z.string().min(1))
    .min(1)
    .optional()
    .describe("Strings that end an answer, beside the end tokens: it ends with the token that completes one, in training and evaluation."),
  max_prompt_tokens: count.optional().describe("Longest prompt; absent: what the model's length leaves beside the response."),
  long_prompts: z.enum(["fail", "skip", "truncate"]).default("fail").describe("What becomes of longer prompts; truncate keeps their end."),
  unscored: z.enum(["drop-sample", "drop-group"]).default("drop-sample").describe("What an answer without a score takes with it."),
  eval: evaluation.prefault({}),
  checkpoint: checkpoint.prefault({}),
  save: save.optional().describe("Also write the final policy to the folder `model` of the run."),
  limits: limits.prefault({}),
  seed: z.int().min(0).default(0).describe("Seed of all randomness of training."),
  engine: engine.prefault({}),
  loggers: z.array(z.string().min(1)).default([]).describe("Where numbers also go: csv, tensorboard, or the path of a module of one's own (loggers.md)."),
  verifier_workers: z
    .int()
    .min(0)
    .max(256)
    .optional()
    .describe(
      "Threads that judge, whose number changes no byte; absent: 1, or 0 (the main one) where the verifier is a function of the calling program. With 0 nothing stops a check that loops for ever behind an await.",
    ),
  verifier_deadline_ms: count.default(30_000).describe("Wall-clock backstop for judging one answer, which then has no score."),
});

/** A configuration with every default filled in. */
export type TrainConfig = z.output<typeof trainConfig>;
/** A configuration as it is written. */
export type TrainConfigInput = z.input<typeof trainConfig>;
export type Part = z.output<typeof part>;

/** The rules of a restricted draw by the names of configurations; undefined without any. */
export function truncationOf({ top_k, top_p, min_p }: TrainConfig["eval"]): Truncation | undefined {
  if (top_k === undefined && top_p === undefined && min_p === undefined) return undefined;
  return { ...(top_k !== undefined && { topK: top_k }), ...(top_p !== undefined && { topP: top_p }), ...(min_p !== undefined && { minP: min_p }) };
}

/** A configuration with its defaults. Throws ConfigError with the place of its first fault. */
export function parseTrainConfig(input: unknown, place: string | ((path: Path) => string)): TrainConfig {
  const restricting = ["top_p", "top_k", "min_p"].find((key) => typeof input === "object" && input !== null && Object.hasOwn(input, key));
  if (restricting !== undefined) {
    throw new ConfigError({
      place: typeof place === "function" ? place([restricting]) : `${place}, option ${restricting}`,
      cause: "training's answers are drawn from the whole distribution, since log-probs of a restricted draw would bias the ratio",
      mend: `leave it out, or restrict the draws of evaluation with eval.${restricting}`,
    });
  }
  const config = parseOptions(trainConfig, input, place);
  const { greedy } = config.eval;
  if (greedy && truncationOf(config.eval) !== undefined) {
    throw new ConfigError({
      place: typeof place === "function" ? place(["eval", "greedy"]) : `${place}, option eval.greedy`,
      cause: "the most likely token is the same whatever top_k, top_p or min_p leave",
      mend: "leave out one or the other",
    });
  }
  return config;
}

/** Name and options of a part. */
export function partOf(value: Part): z.output<typeof named> {
  return typeof value === "string" ? { name: value, options: {} } : value;
}

/** Optimizer steps of the whole run. */
export function updatesOf({ steps, minibatches, epochs }: Pick<TrainConfig, "steps" | "minibatches" | "epochs">): number {
  return steps * minibatches * epochs;
}
