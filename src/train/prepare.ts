/** Everything of a run that must be right before it begins: configuration, data, method, engine, policy, contexts. */
import { existsSync } from "node:fs";
import { resolve as resolvePath } from "node:path";
import { ConfigError, ModelError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import { isModulePath } from "../core/load.js";
import type { Problem } from "../core/problem.js";
import type { Tokenizer } from "../core/tokenizer.js";
import type { Engine, ModelInfo } from "../engine/contract.js";
import type { AnyMethod } from "../methods/catalogue.js";
import { Cells } from "../methods/cell.js";
import type { Method, ProblemSource, Settings } from "../methods/contract.js";
import { checkNeeds, type Difference } from "../methods/needs.js";
import { checkSettings } from "../methods/resolve.js";
import { type EnvironmentHost, startHost } from "../rollout/environment.js";
import type { Task } from "../tasks/contract.js";
import { withPaths } from "../tasks/data-options.js";
import { readChatOptions } from "../tokenizers/chat-options.js";
import type { TokenizerOptions } from "../tokenizers/load.js";
import { verifierFrom } from "../verify/catalogue.js";
import { telling } from "../verify/faults.js";
import { type JudgePool, startPool } from "../verify/pool.js";
import { refuseUnlessTotal } from "../verify/probe.js";
import type { Composition } from "./ahead.js";
import { type Part, parseTrainConfig, partOf, type TrainConfig, type TrainConfigInput } from "./config.js";
import { type Contexts, renderContexts } from "./contexts.js";
import { type EngineForm, engineForm, isElsewhere, limitsOf, refuseUnlessRoom, startEngine } from "./engines.js";
import { withEpisodes } from "./episodes.js";
import { type FoundModel, findModel, withTemplateOf } from "./find-model.js";
import { type Inputs, loadInputs } from "./inputs.js";
import { isHubModel } from "./local-model.js";
import { type Methods, methodsOf, type RunStage, withMethodPaths, withStagePaths } from "./methods.js";
import { tokenizerOf } from "./model-files.js";
import { problemSource } from "./problem-source.js";
import type { OnProgress } from "./progress.js";
import { hashesOf, loadRoles, planRoles, type RolesPlan, rateOf, rolesFrom } from "./roles.js";
import { normLimit, optimizerMethod, type RuleOf, refuseUnlessAble, ruleOf, scheduleOf } from "./rules.js";
import { adapterSource, isLoraForm, type LoraForm, loraOf, policyRequest, type ServerLora, type Start } from "./starts.js";

/** What a program hands over as objects, beside the configuration. */
export interface Given {
  readonly task?: Task;
  readonly engine?: Engine;
  /** Methods of one's own, by name, which the configuration's `method` may then use. */
  readonly methods?: readonly AnyMethod[];
}

/** The part that needs neither engine nor policy. */
export interface Plan {
  readonly config: Omit<Inputs["config"], "lora"> & { readonly engine: EngineForm; readonly lora?: LoraForm | ServerLora };
  /** What the policy is read from: what the configuration names, or a checkpoint. */
  readonly start: Start;
  /** What the configuration says of the chat template. */
  readonly chat: TokenizerOptions;
  readonly inputs: Inputs;
  readonly cells: Cells;
  readonly stages: readonly RunStage[];
  /** The same once more for each step of overlap, with cells of their own. */
  readonly further: readonly Composition[];
  /** The parts of all stages. */
  readonly composed: Method;
  /** Hashes of methods that are files. */
  readonly methodFiles: Methods["files"];
  readonly roles: RolesPlan;
}

/** Where a run that goes on finds its weights: in a checkpoint. */
export interface From {
  readonly policy: string;
  readonly roles: string;
}

export interface Prepared extends Plan {
  readonly engine: Engine;
  readonly model: ModelInfo;
  readonly tokenizer: Tokenizer;
  readonly contexts: Contexts;
  readonly problems: ProblemSource;
  readonly settings: Settings;
  /** Names of all roles that are loaded. */
  readonly loaded: ReadonlySet<string>;
  readonly differences: readonly Difference[];
  /** The update rule of each stage. */
  readonly rules: readonly RuleOf[];
  /** Everything that decides bytes. */
  readonly fingerprint: { readonly [name: string]: Json };
  readonly judges: JudgePool;
  readonly evaluationJudges: JudgePool | undefined;
  /** Present where an answer is a conversation. */
  readonly environment: EnvironmentHost | undefined;
  /** Ends what was started: pools, and the engine unless it was given. */
  close(): Promise<void>;
}

const drawingAhead: Method = { name: "overlap", needs: [{ for: "drawing batches ahead", oneOf: [{ capabilities: ["snapshots", "score"] }] }], slots: {} };

/** Reads a configuration and loads what it names. Throws before anything is started. */
export async function plan(input: TrainConfigInput, given: Given, place = "train", from?: From, onProgress?: OnProgress): Promise<Plan> {
  const named = await absolute(parseTrainConfig(input, place));
  const elsewhere = isElsewhere(named.engine);
  const find = { elsewhere, onProgress: (what: string) => onProgress?.({ kind: "await", what }) };
  // A run records the folders of the weights, so that it stays the same when the run that was named goes on; a resume reads those.
  const policy: FoundModel = from ? { folder: named.model } : await findModel(named.model, { ...find, base: named.base, baseOption: "base" });
  const chat = withTemplateOf(
    policy,
    readChatOptions(named, (option) => option),
  );
  const lora = from && !elsewhere ? (named.lora as LoraForm | undefined) : await loraOf(named, policy);
  if (from && isLoraForm(lora) && !existsSync(named.model)) {
    const cause = `its checkpoints are adapters on ${named.model}, which is not here`;
    throw new ModelError({
      place: `run ${named.out}`,
      cause,
      mend: "put that folder back; one of the cache comes back where its GGUF file or hub id is named again",
    });
  }
  refuseUnsavable(named.save, lora !== undefined, elsewhere);
  const roleModels = new Map<string, FoundModel>();
  const roleFolders = await withRoleFolders(named.roles, async (model, role) => {
    // Of a run that goes on, a role that changes is in the checkpoint, and what it began with may be gone.
    const found = from && !existsSync(model) ? { folder: model } : await findModel(model, { ...find, what: `roles.${role}.model` });
    roleModels.set(role, found);
    return found.adapter ?? found.folder;
  });
  const { base: _, lora: __, ...rest } = named;
  const read = { ...rest, model: policy.folder, roles: roleFolders, ...(lora && { lora }) };
  const start = startFrom({ config: read }, from?.policy);
  const inputs = await loadInputs(read, given.task, onProgress);
  const cells = new Cells();
  const {
    stages,
    all: composed,
    written,
    files,
  } = await methodsOf(inputs.config, given.methods ?? [], cells, withEpisodes(optimizerMethod(inputs.config), inputs.environment));
  const further: Composition[] = [];
  while (further.length < inputs.config.overlap) {
    const own = new Cells();
    const { stages } = await methodsOf(inputs.config, given.methods ?? [], own, withEpisodes(optimizerMethod(inputs.config), inputs.environment));
    further.push({ stages, cells: own });
  }
  const engine = given.engine ? { name: inputs.config.engine.name, threads: 1, workers: 1 } : await engineForm({ ...inputs.config, model: start.folder });
  const asked = planRoles(inputs.config, composed, lora, roleModels);
  const roles = from ? rolesFrom(asked, from.roles) : asked;
  const { lora: ___, ...configured } = inputs.config;
  const config = { ...configured, ...written, engine, ...(lora ? { lora } : elsewhere && named.lora && { lora: { ...named.lora } }) };
  const answers = config.group * config.problems;
  if (config.minibatches > answers) {
    const cause = `it is ${config.minibatches}, and a batch of ${config.problems} problems with ${config.group} answers has ${answers}`;
    throw new ConfigError({ place: "minibatches", cause, mend: `set it to at most ${answers}` });
  }
  scheduleOf(config);
  for (const { resolved } of stages) checkSettings(resolved, settingsOf(config, []));
  return { config, start, chat, inputs, cells, stages, further, composed, methodFiles: files, roles };
}

/** Starts engine and verifiers, loads the policy and what roles the method needs, and checks each against the others. */
export async function prepare(planned: Plan, given: Given, onProgress: OnProgress): Promise<Prepared> {
  const { config, start, chat, inputs, stages, composed, methodFiles, roles } = planned;
  const tokenizer = await tokenizerOf(start.folder, inputs.tokenizer, chat);
  const closing: (() => Promise<void>)[] = [];
  const close = async (): Promise<void> => {
    for (const act of closing.splice(0).reverse()) await act();
  };
  try {
    // An engine that was given may hold a policy of a kind that only itself can read.
    const early = given.engine === undefined ? posed(planned, tokenizer, await limitsOf(config.engine.name, start.folder)) : undefined;
    if (given.engine === undefined) {
      for (const { path } of roles.others) if (path !== start.folder) await limitsOf(config.engine.name, path);
      await refuseUnlessRoom({ ...config, model: start.folder }, longestPrompt(inputs, tokenizer), roles.others);
    }
    onProgress({ kind: "await", what: "the verifiers" });
    const pool = async ({ verifier, source, problems }: Pick<Inputs, "verifier" | "source" | "problems">): Promise<JudgePool> => {
      const workers = config.verifier_workers === undefined ? {} : { workers: config.verifier_workers };
      const started = await startPool({ verifier, ...(source ? { source } : {}), ...workers, deadlineMs: config.verifier_deadline_ms });
      closing.push(() => started.close());
      await refuseUnlessTotal(problems[0] as Problem, verifier, (...asked) => started.judge(...asked));
      return telling(started, verifier.name, (text) => onProgress({ kind: "message", text }));
    };
    const judges = await pool(inputs);
    const evaluationJudges = inputs.evaluation && (inputs.evaluation.verifier === inputs.verifier ? judges : await pool(inputs.evaluation));
    onProgress({ kind: "await", what: "the engine" });
    const engine = given.engine ?? (await startEngine(config, (text) => onProgress({ kind: "message", text })));
    if (given.engine === undefined) closing.push(() => engine.close());
    const max_norm = normLimit(engine.info, config.max_norm, "max_norm");
    refuseUnlessAble(engine.info, config);
    onProgress({ kind: "await", what: "the policy" });
    if (start.adapter && !engine.info.has.has("adapters")) {
      throw new ConfigError({
        place: "lora",
        cause: `the engine ${engine.info.name} has no adapters: ${engine.info.lacks.adapters ?? ""}`,
        mend: "leave it out",
      });
    }
    const model = await engine.weights.load(policyRequest(start, roles.policyValueHead));
    const { contexts, problems } = early ?? posed(planned, tokenizer, model);
    await loadRoles(engine, roles, model, (name) => onProgress({ kind: "await", what: `the ${name}` }));
    const loaded = new Set(["policy", ...roles.others.map(({ name }) => name)]);
    const differences = checkNeeds(composed, engine.info, loaded);
    if (config.overlap > 0) checkNeeds(drawingAhead, engine.info, loaded);
    const rules = stages.map(({ resolved }) => ruleOf(resolved, engine.info, config, (set) => rateOf(roles, set, config.lr)));
    const environment = inputs.environment && (await startHost(inputs.environment));
    if (environment) closing.push(() => environment.close());
    const fingerprint = {
      engine: { name: engine.info.name, workers: config.engine.workers, ...engine.info.fingerprint },
      tokenizer: tokenizer.id,
      ...(Object.keys(methodFiles).length > 0 ? { methods: methodFiles } : {}),
      ...(roles.others.length > 0 ? { roles: await hashesOf(roles) } : {}),
    };
    const settings = settingsOf(config, tokenizer.eosIds);
    const { max_norm: _, ...limited } = config;
    const decided = { ...limited, ...(max_norm !== undefined && { max_norm }) };
    const parts = { config: decided, engine, model, tokenizer, contexts, problems, settings, loaded, differences, rules, fingerprint };
    return { ...planned, ...parts, judges, evaluationJudges, environment, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** What the policy is read from: as the run begins, or as the folder of a checkpoint has it. */
export function startFrom(
  { config: { model, lora, seed } }: { readonly config: Pick<TrainConfig, "model" | "seed"> & { readonly lora?: LoraForm | ServerLora } },
  saved?: string,
): Start {
  if (!isLoraForm(lora)) return { folder: saved ?? model };
  return { folder: model, adapter: adapterSource(saved === undefined ? lora : { ...lora, from: saved }, seed) };
}

/** Refuses forms of the final policy that there are not. */
function refuseUnsavable(save: TrainConfig["save"], adapter: boolean, elsewhere: boolean): void {
  if (elsewhere && save !== undefined && save.form !== "adapter")
    throw new ConfigError({ place: "save.form", cause: "it is merged, and the base's weights are on the server", mend: "set it to adapter" });
  if (save?.form !== "adapter") return;
  if (!adapter && !elsewhere) throw new ConfigError({ place: "save.form", cause: "it is adapter, and this run has none", mend: "leave it out, or set lora" });
  if (save.dtype !== "f32")
    throw new ConfigError({ place: "save.dtype", cause: "it is bf16, and adapters are always f32", mend: "leave it out, or set save.form to merged" });
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

function settingsOf(config: Inputs["config"], eosIds: readonly number[]): Settings {
  const { group, problems, temperature, max_tokens: maxTokens, minibatches, epochs, overlap, stop: strings } = config;
  return {
    group,
    problems,
    temperature,
    maxTokens,
    stop: { ids: eosIds, ...(strings && { strings }) },
    evaluateEvery: config.eval.every,
    updates: minibatches * epochs,
    overlap,
  };
}

async function withRoleFolders(roles: TrainConfig["roles"], folder: (model: string, role: string) => string | Promise<string>): Promise<TrainConfig["roles"]> {
  const named = Object.entries(roles).map(async ([name, role]) => [name, role.model === undefined ? role : { ...role, model: await folder(role.model, name) }]);
  return Object.fromEntries(await Promise.all(named)) as TrainConfig["roles"];
}

/** A hub id stays one; any other name of a model is a path. */
const modelPath = (model: string): string => (isHubModel(model) ? model : resolvePath(model));

/** The configuration with whole paths, so that a resume from another folder finds them. */
async function absolute(config: TrainConfig): Promise<TrainConfig> {
  const task = config.task === undefined ? undefined : partOf(config.task);
  const whole = (path: string): string => resolvePath(path);
  const judge = (part: Part): Part => {
    const { name, options } = partOf(part);
    const moved = verifierFrom(name, options, ".");
    return typeof part === "string" && Object.keys(moved.options).length === 0 ? moved.name : moved;
  };
  return {
    ...config,
    model: modelPath(config.model),
    ...(config.base === undefined ? {} : { base: modelPath(config.base) }),
    ...(config.lora?.from === undefined ? {} : { lora: { ...config.lora, from: whole(config.lora.from) } }),
    out: resolvePath(config.out),
    ...(config.chat_template === undefined ? {} : { chat_template: whole(config.chat_template) }),
    ...(config.tools === undefined ? {} : { tools: whole(config.tools) }),
    loggers: config.loggers.map((name) => (isModulePath(name) ? resolvePath(name) : name)),
    roles: await withRoleFolders(config.roles, modelPath),
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
