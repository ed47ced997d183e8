/** Everything of a run that must be right before it begins: configuration, data, method, engine, policy, contexts. */
import { resolve as resolvePath } from "node:path";
import { ConfigError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import { isModulePath } from "../core/load.js";
import { parseOptions } from "../core/options.js";
import type { Tokenizer } from "../core/tokenizer.js";
import type { Engine, ModelInfo, UpdateRule } from "../engine/contract.js";
import type { AnyMethod } from "../methods/catalogue.js";
import { Cells } from "../methods/cell.js";
import type { Method, ProblemSource, Settings } from "../methods/contract.js";
import { checkNeeds, type Difference } from "../methods/needs.js";
import { checkSettings } from "../methods/resolve.js";
import type { Task } from "../tasks/contract.js";
import { withPaths } from "../tasks/data-options.js";
import { verifierFrom } from "../verify/catalogue.js";
import type { JudgePool } from "../verify/pool.js";
import { startPool } from "../verify/pool.js";
import { type Part, partOf, type TrainConfig, type TrainConfigInput, trainConfig } from "./config.js";
import { type Contexts, renderContexts } from "./contexts.js";
import { type EngineForm, engineForm, limitsOf, refuseUnlessRoom, startEngine } from "./engines.js";
import { type Inputs, loadInputs } from "./inputs.js";
import { type Methods, methodsOf, type RunStage, withMethodPaths, withStagePaths } from "./methods.js";
import { hashModel, tokenizerOf } from "./model-files.js";
import { namedModel } from "./model-name.js";
import { problemSource } from "./problem-source.js";
import type { OnProgress } from "./progress.js";
import { optimizerMethod, ruleOf, scheduleOf } from "./rules.js";

/** What a program hands over as objects, beside the configuration. */
export interface Given {
  readonly task?: Task;
  readonly engine?: Engine;
  /** Methods of one's own, by name, which the configuration's `method` may then use. */
  readonly methods?: readonly AnyMethod[];
}

/** The part that needs neither engine nor policy. */
export interface Plan {
  readonly config: Inputs["config"] & { readonly engine: EngineForm };
  readonly inputs: Inputs;
  readonly cells: Cells;
  readonly stages: readonly RunStage[];
  /** The parts of all stages. */
  readonly composed: Method;
  /** Hashes of methods that are files. */
  readonly methodFiles: Methods["files"];
}

export interface Prepared extends Plan {
  readonly engine: Engine;
  readonly model: ModelInfo;
  readonly tokenizer: Tokenizer;
  readonly contexts: Contexts;
  readonly problems: ProblemSource;
  readonly settings: Settings;
  readonly roles: ReadonlySet<string>;
  readonly differences: readonly Difference[];
  /** The update rule of each stage. */
  readonly rules: readonly ((update: number) => UpdateRule)[];
  /** Everything that decides bytes. */
  readonly fingerprint: { readonly [name: string]: Json };
  readonly judges: JudgePool;
  readonly evaluationJudges: JudgePool | undefined;
  /** Ends what was started: pools, and the engine unless it was given. */
  close(): Promise<void>;
}

/** Reads a configuration and loads what it names. Throws before anything is started. */
export async function plan(input: TrainConfigInput, given: Given, place = "train"): Promise<Plan> {
  const named = absolute(parseOptions(trainConfig, input, place));
  // A run records the folder of the weights, so that it stays the same when the run that was named goes on.
  const read = {
    ...named,
    model: namedModel(named.model).folder,
    ...(named.reference === undefined ? {} : { reference: namedModel(named.reference, "reference").folder }),
  };
  const inputs = await loadInputs(read, given.task);
  const cells = new Cells();
  const { stages, all: composed, written, files } = await methodsOf(inputs.config, given.methods ?? [], cells, optimizerMethod(inputs.config));
  const engine = given.engine ? { name: inputs.config.engine.name, threads: 1, workers: 1 } : await engineForm(inputs.config);
  if (inputs.config.reference !== undefined && !rolesOf(composed).has("reference")) {
    throw new ConfigError({
      place: "reference",
      cause: `no part of ${composed.name} reads it`,
      mend: "leave it out, or turn a KL on (options.kl_coef of grpo)",
    });
  }
  const config = { ...inputs.config, ...written, engine };
  const answers = config.group * config.problems;
  if (config.minibatches > answers) {
    const cause = `it is ${config.minibatches}, and a batch of ${config.problems} problems with ${config.group} answers has ${answers}`;
    throw new ConfigError({ place: "minibatches", cause, mend: `set it to at most ${answers}` });
  }
  scheduleOf(config);
  for (const { resolved } of stages) checkSettings(resolved, settingsOf(config, []));
  return { config, inputs, cells, stages, composed, methodFiles: files };
}

/** Starts engine and verifiers, loads the policy and what roles the method needs, and checks each against the others. */
export async function prepare(planned: Plan, given: Given, onProgress: OnProgress): Promise<Prepared> {
  const { config, inputs, stages, composed, methodFiles } = planned;
  const tokenizer = await tokenizerOf(config.model, inputs.tokenizer);
  const closing: (() => Promise<void>)[] = [];
  const close = async (): Promise<void> => {
    for (const act of closing.splice(0).reverse()) await act();
  };
  try {
    const wanted = rolesOf(composed);
    // An engine that was given may hold a policy of a kind that only itself can read.
    const early = given.engine === undefined ? posed(planned, tokenizer, await limitsOf(config.engine.name, config.model)) : undefined;
    if (given.engine === undefined && wanted.has("reference")) await limitsOf(config.engine.name, config.reference ?? config.model);
    if (given.engine === undefined) await refuseUnlessRoom(config, longestPrompt(inputs, tokenizer), wanted.size);
    onProgress({ kind: "await", what: "the engine" });
    const engine = given.engine ?? (await startEngine(config));
    if (given.engine === undefined) closing.push(() => engine.close());
    onProgress({ kind: "await", what: "the policy" });
    const model = await engine.weights.load({ role: "policy", source: { from: "folder", path: config.model }, trainable: true });
    const { contexts, problems } = early ?? posed(planned, tokenizer, model);
    const roles = new Set(["policy"]);
    const reference = config.reference ?? config.model;
    if (wanted.has("reference")) {
      onProgress({ kind: "await", what: "the reference" });
      const info = await engine.weights.load({ role: "reference", source: { from: "folder", path: reference }, trainable: false });
      checkSameVocabulary(model, info, reference);
      roles.add("reference");
    }
    const differences = checkNeeds(composed, engine.info, roles);
    const rules = stages.map(({ resolved }) => ruleOf(resolved, engine.info, config));
    onProgress({ kind: "await", what: "the verifiers" });
    const pool = async ({ verifier, source }: Pick<Inputs, "verifier" | "source">): Promise<JudgePool> => {
      const judges = await startPool({ verifier, ...(source ? { source } : {}), workers: config.verifier_workers, deadlineMs: config.verifier_deadline_ms });
      closing.push(() => judges.close());
      return judges;
    };
    const judges = await pool(inputs);
    const evaluationJudges = inputs.evaluation && (inputs.evaluation.verifier === inputs.verifier ? judges : await pool(inputs.evaluation));
    const fingerprint = {
      engine: { name: engine.info.name, workers: config.engine.workers, ...engine.info.fingerprint },
      tokenizer: tokenizer.id,
      ...(Object.keys(methodFiles).length > 0 ? { methods: methodFiles } : {}),
      ...(roles.has("reference") ? { reference: await hashModel(reference) } : {}),
    };
    const settings = settingsOf(config, tokenizer.eosIds);
    return { ...planned, engine, model, tokenizer, contexts, problems, settings, roles, differences, rules, fingerprint, judges, evaluationJudges, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** The contexts of all problems, those of evaluation checked too. */
function posed({ inputs, config }: Plan, tokenizer: Tokenizer, model: Pick<ModelInfo, "vocabulary" | "maxTokens">): Pick<Prepared, "contexts" | "problems"> {
  const contexts = renderContexts(inputs.problems, tokenizer, model, config);
  const { max_tokens, max_prompt_tokens } = config;
  if (inputs.evaluation) renderContexts(inputs.evaluation.problems, tokenizer, model, { max_tokens, max_prompt_tokens });
  if (contexts.problems.length < config.problems) {
    throw new ConfigError({
      place: "problems",
      cause: `a batch takes ${config.problems}, and ${contexts.problems.length} have a prompt that is short enough`,
      mend: "lower problems or max_tokens",
    });
  }
  const { mixture, weights } = inputs;
  return {
    contexts,
    problems: problemSource({ problems: contexts.problems, ...(mixture && { mixture }), ...(weights && { weights }), batch: config.problems }),
  };
}

/** Roles that some part of a method can use, beside the policy. */
function rolesOf(method: Method): Set<string> {
  return new Set((method.parts ?? [method]).flatMap(({ needs = [] }) => needs.flatMap(({ oneOf }) => oneOf.flatMap(({ roles = [] }) => roles))));
}

/** Tokens of the longest prompt that can be rendered; what cannot be is refused with its place once the model is known. */
function longestPrompt({ problems, config }: Inputs, tokenizer: Tokenizer): number {
  let longest = 1;
  for (const { prompt } of problems) {
    try {
      longest = Math.max(longest, tokenizer.render(prompt, { addGenerationPrompt: true }).length);
    } catch {
      return longest;
    }
  }
  return Math.min(longest, config.max_prompt_tokens ?? longest);
}

function settingsOf({ group, problems, temperature, max_tokens }: Inputs["config"], eosIds: readonly number[]): Settings {
  return { group, problems, temperature, maxTokens: max_tokens, stop: { ids: eosIds } };
}

function checkSameVocabulary(policy: ModelInfo, reference: ModelInfo, folder: string): void {
  if (policy.vocabulary === reference.vocabulary) return;
  throw new ConfigError({
    place: "reference",
    cause: `${folder} has a vocabulary of ${reference.vocabulary} and the policy one of ${policy.vocabulary}`,
    mend: "give a reference of the same tokenizer",
  });
}

/** The configuration with whole paths, so that a resume from another folder finds them. */
function absolute(config: TrainConfig): TrainConfig {
  const task = config.task === undefined ? undefined : partOf(config.task);
  const whole = (path: string): string => resolvePath(path);
  const judge = (part: Part): Part => {
    const { name, options } = partOf(part);
    const moved = verifierFrom(name, options, ".");
    return typeof part === "string" && Object.keys(moved.options).length === 0 ? moved.name : moved;
  };
  return {
    ...config,
    model: resolvePath(config.model),
    out: resolvePath(config.out),
    ...(config.reference === undefined ? {} : { reference: resolvePath(config.reference) }),
    ...(config.data === undefined ? {} : { data: withPaths(config.data, whole) }),
    ...(config.profile === undefined ? {} : { profile: { ...config.profile, file: whole(config.profile.file) } }),
    eval: {
      ...config.eval,
      ...(config.eval.data === undefined ? {} : { data: withPaths(config.eval.data, whole) }),
      ...(config.eval.verifier === undefined ? {} : { verifier: judge(config.eval.verifier) }),
    },
    ...(task !== undefined && isModulePath(task.name) ? { task: { ...task, name: resolvePath(task.name) } } : {}),
    ...(config.method === undefined ? {} : { method: withMethodPaths(config.method, whole) as TrainConfig["method"] }),
    ...(config.stages === undefined ? {} : { stages: withStagePaths(config.stages, whole) as TrainConfig["stages"] }),
    ...(config.verifier === undefined ? {} : { verifier: judge(config.verifier) }),
  };
}
