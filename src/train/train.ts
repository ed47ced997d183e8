/** `train` and `resume`: a run from its configuration to its end, as a library call. */
import { join } from "node:path";
import { ConfigError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import type { Problem } from "../core/problem.js";
import { packageVersion } from "../core/version.js";
import { refuseUnlessWritable } from "../core/writable.js";
import type { Engine } from "../engine/contract.js";
import { type AnyMethod, anyMethod } from "../methods/catalogue.js";
import type { MethodModule } from "../methods/contract.js";
import { isMethodModule } from "../methods/define.js";
import { overruled, tableJson } from "../methods/resolve.js";
import { isTask } from "../tasks/catalogue.js";
import type { Task } from "../tasks/contract.js";
import { answerClasses } from "../verify/contract.js";
import { Ahead, type Composition, compositionOf } from "./ahead.js";
import type { TrainConfigInput } from "./config.js";
import { measurePolicy } from "./evaluation.js";
import { type Hook, hookOf } from "./hook.js";
import type { LabParts } from "./lab.js";
import { Ledger } from "./ledger.js";
import { type Logger, Loggers } from "./logger.js";
import { isLogger, loggersOf } from "./loggers/catalogue.js";
import { type EndReason, type LoopParts, runLoop } from "./loop.js";
import { saveTokenizer } from "./model-files.js";
import { type Given, type Plan, type Prepared, plan, prepare, startFrom } from "./prepare.js";
import type { OnProgress } from "./progress.js";
import { refuseOtherVerdicts } from "./rejudge.js";
import { changingRoles, followRoles, restoreRoles, saverOf } from "./roles.js";
import { savePolicy } from "./save-policy.js";
import { policyRequest } from "./starts.js";
import { freshState, type RunState, stateFromJson, storedAhead } from "./state.js";
import { refuseUnlessSame } from "./store/begun.js";
import { checkpointPaths } from "./store/checkpoints.js";
import { refuseUnlessNew } from "./store/fresh.js";
import { goOn } from "./store/reader.js";
import { type Opened, RunStore } from "./store/store.js";

/** What a program may hand over beside the configuration. */
export interface TrainHooks {
  /** Finishes the step in hand, saves, and ends with the reason `interrupted`. */
  readonly signal?: AbortSignal;
  readonly onProgress?: OnProgress;
  /** Methods of one's own, as `defineMethod` makes them, which `method` and `stages` may name. */
  readonly methods?: readonly (AnyMethod | OwnMethod)[];
}

/** Folder of a run that `save` writes the final policy to. */
const finalModel = "model";

/** A method module whatever its options and state. */
type OwnMethod = MethodModule<object, Json>;
type Named = NonNullable<TrainConfigInput["method"]>;

interface Hooks extends Omit<TrainHooks, "methods"> {
  /** Loggers that are objects of the program. */
  readonly loggers: readonly Logger[];
}

/** The configuration of a run (docs/configuration.md), where a task, a method, an engine or a logger may also be an object of the program. */
export interface TrainOptions extends Omit<TrainConfigInput, "task" | "engine" | "loggers" | "method">, TrainHooks {
  readonly method?: Named | OwnMethod | readonly (Extract<Named, readonly unknown[]>[number] | OwnMethod)[];
  readonly task?: TrainConfigInput["task"] | Task | (() => Task);
  readonly engine?: TrainConfigInput["engine"] | Engine;
  readonly loggers?: readonly (string | Logger)[];
}

/** What may be other than as the run began. */
export interface ResumeOptions extends TrainHooks, Pick<TrainOptions, "task" | "engine" | "loggers"> {
  /** Where the server of the run is now. */
  readonly baseUrl?: string;
}

export interface TrainResult {
  readonly reason: EndReason;
  /** One sentence: how it ended and, where it stopped by itself, why. */
  readonly message: string;
  /** The run's folder; its checkpoints have the policy as a model folder. */
  readonly folder: string;
  /** Steps finished, and optimizer steps made. */
  readonly steps: number;
  readonly updates: number;
  /** The last checkpoint's policy, a model folder or that of an adapter; with `save`, the folder that it was written to. */
  readonly model: string;
  /** Numbers of the last evaluation (`eval.score`); empty without one. */
  readonly evaluation: { readonly [name: string]: number };
}

/**
 * Trains a policy and writes a run folder. Refuses in one sentence, before any work, what cannot be meant; throws
 * DivergenceError when a loss or gradient is not finite or sampler and trainer drift apart.
 *
 *     await train({ model: "starter", out: "runs/first", task: twice(), steps: 100, lr: 1e-4 });
 */
export async function train(options: TrainOptions): Promise<TrainResult> {
  const { input, given, hooks, check } = separate(options);
  const planned = await plan(input, given, "train", undefined, hooks.onProgress);
  refuseUnlessNew(planned.config.out);
  refuseUnlessWritable(planned.config.out);
  const result = await run(planned, given, hooks, undefined);
  check();
  return result;
}

/** Goes on with a run from its last whole checkpoint. Byte-exact on the same machine and versions; says so where it is not. */
export async function resume(folder: string, { baseUrl, ...options }: ResumeOptions = {}): Promise<TrainResult> {
  if (typeof folder !== "string") throw notGiven("resume", folder, "the folder of a run", 'the folder, such as resume("runs/first")');
  const { run: begun, checkpoint } = RunStore.find(folder);
  const config = begun.config as unknown as TrainOptions;
  const moved = baseUrl === undefined ? {} : { engine: { ...(config.engine as TrainConfigInput["engine"]), base_url: baseUrl } };
  const { given, hooks, input, check } = separate({ ...config, ...moved, ...withoutUndefined(options), out: folder });
  const planned = await plan(input, given, `${folder}/run.json`, checkpoint && checkpointPaths(checkpoint.folder), hooks.onProgress);
  refuseUnlessSame(folder, begun, planned.inputs);
  const result = await run(planned, given, hooks, { step: checkpoint?.step });
  check();
  return result;
}

function notGiven(place: string, value: unknown, what: string, mend: string): ConfigError {
  return new ConfigError({
    place,
    cause: `it was given ${value === null || value === undefined ? "nothing" : `a ${typeof value}`} in place of ${what}`,
    mend: `give ${mend}`,
  });
}

async function run(planned: Plan, given: Given, hooks: Hooks, again: { readonly step: number | undefined } | undefined): Promise<TrainResult> {
  const onProgress = hooks.onProgress ?? (() => undefined);
  const tell = (text: string): void => onProgress({ kind: "message", text });
  const loggers = new Loggers(await loggersOf(planned.config.loggers, hooks.loggers, again && tell), tell);
  const prepared = await prepare(planned, given, onProgress);
  let store: RunStore | undefined;
  const close = async (): Promise<void> => {
    try {
      await loggers.end();
      store?.close();
    } finally {
      await prepared.close();
    }
  };
  let result: TrainResult;
  try {
    if (again?.step !== undefined) await refuseOtherVerdicts(prepared.config.out, again.step, { judges: prepared.judges, verifier: prepared.inputs.verifier });
    const opened = openStore(prepared, again !== undefined);
    store = opened.store;
    const { has, lacks, name } = prepared.engine.info;
    if (again !== undefined && !has.has("exact")) tell(`This resume repeats a run within rounding, not byte by byte: of the engine ${name}, ${lacks.exact}.`);
    for (const text of [...opened.messages, ...prepared.inputs.notes, ...prepared.stages.flatMap(whoseAnswers)]) onProgress({ kind: "message", text });
    const ledger = new Ledger();
    let state: RunState = freshState();
    if (opened.resume) {
      const { engine } = prepared;
      await engine.weights.load(policyRequest(startFrom(prepared, opened.resume.policy), prepared.roles.policyValueHead, true));
      await engine.weights.loadOptimizer("role:policy", opened.resume.optimizer);
      await restoreRoles(engine, prepared.roles, opened.resume.roles);
      const { step, state: stored } = opened.resume;
      state = stateFromJson(step, stored, compositionOf(compositionsOf(prepared), step).cells, ledger);
    }
    const parts = loopParts(prepared, store, ledger, state, opened.resume !== undefined, hooks);
    if (opened.resume) await parts.ahead?.resume(storedAhead(opened.resume.state), opened.resume.ahead, state);
    const { config } = prepared;
    const reader = store.reader();
    await loggers.begin({ folder: config.out, config: JSON.parse(JSON.stringify(config)), step: state.step }, () => reader.events());
    const end = await runLoop({ ...parts, log: (event) => loggers.event(event) });
    const last = store.lastCheckpoint ?? 0;
    const model = config.save && end.reason !== "interrupted" ? await saveFinal(prepared, config.save) : join(reader.checkpoints.pathOf(last), "policy");
    result = {
      reason: end.reason,
      message: end.reason === "interrupted" ? `${end.message}; ${goOn(prepared.config.out)}` : end.message,
      folder: prepared.config.out,
      steps: state.step,
      updates: state.updates,
      model,
      evaluation: state.evaluation,
    };
  } catch (error) {
    await close().catch(() => undefined); // What stopped a run often keeps it from closing too, and the first error tells more.
    throw error;
  }
  await close();
  return result;
}

/** Writes the policy as it is at the end, in the form that was asked for. */
async function saveFinal({ engine, config, tokenizer, start, chat }: Prepared, { form, dtype }: NonNullable<Prepared["config"]["save"]>): Promise<string> {
  const model = join(config.out, finalModel);
  await savePolicy(model, async (folder) => {
    await engine.weights.save({ role: "policy" }, folder, { form, dtype });
    await saveTokenizer(tokenizer, start.folder, folder, chat.template);
  });
  return model;
}

/** What all steps of a run share. */
export function labParts(prepared: Prepared, ledger: Ledger, policyVersion: () => number): LabParts {
  const { engine, tokenizer, settings, contexts, problems, loaded, judges, environment, stages, config, inputs } = prepared;
  const answers = answerClasses(inputs.verifier);
  return {
    engine,
    tokenizer,
    settings,
    problems,
    contexts: contexts.contexts,
    roles: loaded,
    seed: config.seed,
    judge: (problem, response, truncated) => judges.judge(problem, response, truncated),
    ...(answers && { answers }),
    ...(environment && { environment }),
    ledger,
    method: stages[0].resolved,
    policyVersion,
  };
}

const compositionsOf = ({ stages, cells, further }: Prepared): readonly Composition[] => [{ stages, cells }, ...further];

function loopParts(prepared: Prepared, store: RunStore, ledger: Ledger, state: RunState, resumed: boolean, hooks: TrainHooks): Omit<LoopParts, "log"> {
  const { engine, config, inputs, tokenizer, judges, evaluationJudges, environment, contexts, differences, model, rules, stages, cells } = prepared;
  const { evaluation } = inputs;
  const saveRoles = saverOf(engine, prepared.roles);
  const evaluate =
    evaluation && evaluationJudges
      ? (onProgress: (done: number, total: number) => void, signal: AbortSignal | undefined) =>
          measurePolicy(
            engine,
            {
              problems: evaluation.problems,
              verifier: evaluation.verifier,
              judges: evaluationJudges,
              ...(environment && evaluation.conversational && { environment }),
              tokenizer,
              maxTokens: config.max_tokens,
              ...(config.stop && { stop: config.stop }),
              config: config.eval,
            },
            onProgress,
            signal,
          )
      : undefined;
  const lab = labParts(prepared, ledger, () => state.updates);
  const { overlap, steps } = config;
  const changing = changingRoles(prepared.roles);
  const valueHead = prepared.roles.policyValueHead;
  return {
    engine,
    config,
    lab,
    ...(overlap > 0
      ? {
          ahead: new Ahead({
            overlap,
            steps,
            engine,
            compositions: compositionsOf(prepared),
            lab,
            changing,
            valueHead,
            adapter: prepared.start.adapter !== undefined,
          }),
        }
      : {}),
    rule: rules[0],
    stages: stages.map((stage, i) => ({ ...stage, rule: rules[i] })),
    onProgress: hooks.onProgress ?? (() => undefined),
    store,
    cells,
    judges,
    state,
    resumed,
    start: {
      parameters: model.parameters,
      problems: contexts.problems.length,
      prompts_skipped: contexts.skipped,
      prompts_truncated: contexts.truncated,
      evaluation_problems: evaluation?.problems.length ?? 0,
      heldout: (evaluation?.problems ?? []).map(heldoutEntry),
      notes: [...inputs.notes],
      differences: differences.map((difference) => ({ ...difference })),
    },
    ...(evaluate ? { evaluate } : {}),
    learning: ["role:policy", ...prepared.roles.others.filter(({ trainable }) => trainable).map(({ name }) => `role:${name}` as const)],
    followRoles: (step) => followRoles(engine, prepared.roles, step),
    ...(saveRoles ? { saveRoles } : {}),
    saveTokenizer: (folder) => saveTokenizer(tokenizer, prepared.start.folder, folder, prepared.chat.template),
    ...(hooks.signal ? { signal: hooks.signal } : {}),
  };
}

/** Characters that are kept of the text of a held-out problem, to tell it by. */
const heldoutText = 160;

/** In the order of the scores of an evaluation, so that what is right in one run and wrong in another has a name. */
const heldoutEntry = ({ key, prompt }: Problem): Json => ({
  key,
  text: Array.from(prompt.at(-1)?.content.slice(0, 2 * heldoutText) ?? "")
    .slice(0, heldoutText)
    .join(""),
});

function openStore(prepared: Prepared, again: boolean): Opened {
  const { config, fingerprint, inputs, stages } = prepared;
  const keep = { last: config.checkpoint.keep_last, best: true, first: true };
  if (again) return RunStore.open(config.out, { data: inputs.data, program: inputs.program, fingerprint }, { keep });
  const versions = { touchstone: packageVersion(), node: process.version };
  const meta = {
    config: JSON.parse(JSON.stringify(config)) as Json,
    method: tablesOf(stages),
    fingerprint,
    versions,
    data: inputs.data,
    program: inputs.program,
  };
  return { store: RunStore.create(config.out, meta, { keep }), messages: [] };
}

/** What methods that are composed say about the same slots, and who is heard. */
function whoseAnswers({ method, resolved }: Prepared["stages"][number]): string[] {
  const phrases = overruled(resolved);
  return phrases.length === 0 ? [] : [`method ${method.name}: ${phrases.join("; ")}`];
}

/** The resolved table of a run's method, or those of its stages in order. */
function tablesOf(stages: Prepared["stages"]): Json {
  const [first] = stages;
  if (stages.length === 1) return tableJson(first.resolved);
  return stages.map(({ method, optimizer, resolved }) => ({ method: method.name, optimizer, table: tableJson(resolved) }));
}

/** Configuration and objects of the program, apart. A task of the program is recorded by name and options. */
export function separate(options: TrainOptions): {
  readonly input: TrainConfigInput;
  readonly given: Given;
  readonly hooks: Hooks;
  /** Throws what `onProgress` has failed with. */
  readonly check: Hook["check"];
} {
  if (typeof options !== "object" || options === null) {
    throw notGiven("train", options, "its options", 'an object, such as { model: "starter", out: "runs/first", task: "chain" }');
  }
  const { signal, onProgress, methods, method, task, engine, loggers, ...rest } = options;
  const modules = [...methodsIn("methods", methods), ...(Array.isArray(method) ? method : [method]).filter(isMethodModule)].map((each) =>
    isMethodModule(each) ? anyMethod(each) : each,
  );
  const nameOf = (value: unknown): unknown => (isMethodModule(value) ? value.name : value);
  const written = Array.isArray(method) ? method.map(nameOf) : nameOf(method);
  const made: unknown = typeof task === "function" ? task() : task;
  const own = isTask(made) ? made : undefined;
  const instance = isEngine(engine) ? engine : undefined;
  const hook = hookOf(onProgress);
  const named: unknown = Array.isArray(loggers) ? loggers.filter((logger) => !isLogger(logger)) : loggers;
  const input = {
    ...rest,
    ...(written === undefined ? {} : { method: written }),
    ...(named === undefined ? {} : { loggers: named }),
    ...(own ? { task: { name: own.name, options: own.options } } : made === undefined ? {} : { task: made as TrainConfigInput["task"] }),
    ...(instance
      ? { engine: { name: instance.info.name === "table" || instance.info.name === "tinker" ? instance.info.name : "onnx" } }
      : engine === undefined
        ? {}
        : { engine }),
  } as TrainConfigInput;
  return {
    input,
    given: { ...(own ? { task: own } : {}), ...(instance ? { engine: instance } : {}), methods: modules },
    hooks: {
      ...(signal ? { signal } : {}),
      onProgress: hook.call,
      loggers: Array.isArray(loggers) ? loggers.filter(isLogger) : [],
    },
    check: hook.check,
  };
}

/** Methods that the program hands over. Throws ConfigError for what is none. */
function methodsIn(place: string, methods: unknown = []): (AnyMethod | OwnMethod)[] {
  if (!Array.isArray(methods)) throw new ConfigError({ place, cause: "it is no list", mend: "give a list of what defineMethod makes" });
  return methods.map((each: unknown, i) => {
    const { name, make, options } = (each ?? {}) as Partial<AnyMethod>;
    if (isMethodModule(each) || (typeof name === "string" && typeof make === "function" && options !== undefined)) return each as AnyMethod | OwnMethod;
    throw new ConfigError({
      place: `${place}[${i}]`,
      cause: "it is no method",
      mend: "give what defineMethod makes; a method by name or path stands in method",
    });
  });
}

function isEngine(value: unknown): value is Engine {
  return typeof (value as Partial<Engine> | undefined)?.forward === "function";
}

function withoutUndefined<T extends object>(value: T): Partial<T> {
  return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined)) as Partial<T>;
}
