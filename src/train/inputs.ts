/** What a run trains on and is measured by, found and checked before anything starts. */
import { ConfigError, DataError, movedTo } from "../core/errors.js";
import { hashJson, type Json } from "../core/json.js";
import { type Problem, placeOfProblem } from "../core/problem.js";
import { type HostOptions, type Limits, limitsOf } from "../rollout/environment.js";
import { namedTask } from "../tasks/catalogue.js";
import { posedBy, type Task } from "../tasks/contract.js";
import { dataTask, type Share } from "../tasks/data.js";
import { placeOfData } from "../tasks/data-options.js";
import { refuseUnlessRepeatable } from "../tasks/repeatable.js";
import { namedVerifier } from "../verify/catalogue.js";
import { type Verifier, verifierId } from "../verify/contract.js";
import type { VerifierSource } from "../verify/source.js";
import { byProfile } from "./by-profile.js";
import { drawnProblems, type Part, partOf, type TrainConfig } from "./config.js";
import { programOf } from "./program.js";
import type { OnProgress } from "./progress.js";
import type { RunMeta } from "./store/schema.js";

export interface Inputs {
  readonly problems: readonly Problem[];
  readonly verifier: Verifier;
  readonly source?: VerifierSource;
  /** How the sources of the problems share the places of a batch; absent: as their numbers are. */
  readonly mixture?: readonly Share[];
  /** How often each problem is to come up, by key; absent: all alike. */
  readonly weights?: ReadonlyMap<string, number>;
  /** Present when the run is evaluated. */
  readonly evaluation?: {
    readonly problems: readonly Problem[];
    readonly verifier: Verifier;
    readonly source?: VerifierSource;
    readonly conversational: boolean;
  };
  /** Present where an answer is a conversation; `conversational` says whether it is in evaluation too. */
  readonly environment?: HostOptions;
  /** The task's own, for policies that start from nothing. */
  readonly tokenizer?: Task["tokenizer"];
  /** The configuration with what the task decides: max_tokens, train_problems, eval.problems. */
  readonly config: TrainConfig & { readonly max_tokens: number };
  /** Hash of all problems and verifiers: a resume refuses another. */
  readonly data: string;
  /** What decides rewards: a resume refuses another. */
  readonly program: NonNullable<RunMeta["program"]>;
  /** What the user should hear: lines that were left out. */
  readonly notes: readonly string[];
}

interface Judge {
  readonly verifier: Verifier;
  readonly source?: VerifierSource;
}

interface Training {
  readonly task: Task;
  readonly judge: Judge;
  /** Where a thread finds the task. */
  readonly source?: VerifierSource;
  readonly mixture?: readonly Share[];
  /** The task once more, of a module that ran again. */
  readonly again?: Task;
}

/** Loads tasks, files and verifiers. `given`: a task made in the program. Throws ConfigError or DataError in one sentence. */
export async function loadInputs(config: TrainConfig, given: Task | undefined, onProgress: OnProgress = () => undefined): Promise<Inputs> {
  const notes: string[] = [];
  const { task, judge, source, mixture, again } = await trainingTask(config, given, notes);
  const size = task.size("train");
  if (size === 0) throw new DataError({ place: placeOf(config), cause: "it has no problem to train on", mend: "lower eval_share, or give more problems" });
  const wanted = config.train_problems ?? (Number.isFinite(size) ? size : Math.min(config.steps * config.problems, Math.max(drawnProblems, config.problems)));
  const all = await posedBy(task, "train", wanted, config.seed, (done) => onProgress({ kind: "pose", done, total: wanted }));
  if (all.length < wanted && config.train_problems !== undefined) throw fewerThanAsked(config.train_problems, all.length, placeOf(config));
  if (config.problems > all.length) {
    const widen = Number.isFinite(size) ? "" : ", or widen the task's options or shares (docs/data.md)";
    throw new ConfigError({
      place: "problems",
      cause: `a batch takes ${config.problems} different problems, and there ${all.length === 1 ? "is 1" : `are ${all.length}`}`,
      mend: config.train_problems === undefined ? `set it to at most ${all.length}${widen}` : "set it to at most train_problems, or raise those",
    });
  }
  if (all.length < wanted) notes.push(`${placeOf(config)} has ${all.length} different problems to train on: they come round again`);
  refuseUnlessRepeatable(task, { split: "train", seed: config.seed, wanted: all.length, place: placeOf(config), again });
  const { problems, weights } = config.profile === undefined ? { problems: all } : byProfile(all, config.profile, verifierId(judge.verifier), notes);
  if (config.problems > problems.length) {
    throw new ConfigError({
      place: "problems",
      cause: `a batch takes ${config.problems} different problems, and the profile leaves ${problems.length} of ${all.length}`,
      mend: "set it to fewer, or widen profile.min_pass and profile.max_pass",
    });
  }
  checkReferences(problems, judge.verifier, placeOf(config));
  checkKeys(problems, placeOf(config));
  const maxTokens = config.max_tokens ?? task.maxTokens;
  if (maxTokens === undefined) {
    throw new ConfigError({
      place: "max_tokens",
      cause: `it is missing, and ${task.name} does not say how long an answer may be`,
      mend: "give the response budget in tokens",
    });
  }
  if (judge.verifier.external) notes.push(outsideNote(judge.verifier));
  if (task.environment) notes.push(limitsNote(limitsOf(task.environment), maxTokens));
  const evaluation = config.eval.every === 0 ? undefined : await evaluationInputs(config, task, judge, notes, onProgress);
  if (evaluation) checkApart(problems, evaluation.problems);
  const resolved = {
    ...config,
    train_problems: all.length,
    max_tokens: maxTokens,
    eval: { ...config.eval, ...(evaluation ? { problems: evaluation.problems.length } : {}) },
  };
  const identity = {
    problems: problems.map(publicJson),
    verifier: verifierId(judge.verifier),
    ...(evaluation ? { evaluation: evaluation.problems.map(publicJson), evaluation_verifier: verifierId(evaluation.verifier) } : {}),
    ...(weights && { weights: problems.map(({ key }) => weights.get(key) ?? 1) }),
  };
  return {
    problems,
    ...judge,
    ...(evaluation ? { evaluation } : {}),
    ...(task.tokenizer ? { tokenizer: task.tokenizer } : {}),
    ...(task.environment && { environment: { environment: task.environment, ...(source && { source }) } }),
    config: resolved,
    ...(mixture && { mixture }),
    ...(weights && { weights }),
    data: hashJson(identity as unknown as Json),
    program: programOf(config, { training: judge.verifier, evaluation: evaluation?.verifier }, given !== undefined),
    notes,
  };
}

const outsideNote = ({ name }: Verifier): string => `answers are judged outside of this program (${name}): a resumed run repeats its bytes as far as that does`;
/** Every limit that can end a conversation or cut what it shows. */
function limitsNote({ turns, turnTokens, observationCharacters, observationTokens, deadlineMs }: Limits, maxTokens: number): string {
  const action = turnTokens === undefined ? "" : ` of at most ${turnTokens} tokens`;
  return `a conversation has at most ${turns} actions${action} and ${maxTokens} tokens with its observations, each of at most ${observationCharacters} characters and ${observationTokens} tokens; a step of its environment takes at most ${deadlineMs} ms`;
}

const publicJson = (problem: Problem): Json => problem as unknown as Json;

function placeOf({ task, data }: TrainConfig): string {
  return data !== undefined ? placeOfData(data) : `task ${task === undefined ? "" : partOf(task).name}`;
}

async function trainingTask(config: TrainConfig, given: Task | undefined, notes: string[]): Promise<Training> {
  const own = config.verifier === undefined ? undefined : await verifierOfPart(config.verifier, "verifier");
  if (given !== undefined) return { task: given, judge: own ?? { verifier: given.verifier } };
  if (config.task !== undefined && config.data !== undefined) {
    throw new ConfigError({ place: "task, data", cause: "both are given", mend: "train on one of them" });
  }
  if (config.task !== undefined) {
    const { name, options } = partOf(config.task);
    const { task, source } = await namedTask(name, options, ".", "task");
    const { task: again } = await namedTask(name, options, ".", "task", true);
    return { task, judge: own ?? { verifier: task.verifier, source }, source, again };
  }
  if (config.data === undefined) throw new ConfigError({ place: "task", cause: "there is nothing to train on", mend: "give a task, or data with a verifier" });
  if (own === undefined) {
    throw new ConfigError({
      place: "verifier",
      cause: "it is missing, and a file does not say how its answers are compared",
      mend: "name one: math, number, exact, choice, or a reward of your own (./reward.ts, python:file.py:function, command:…, http://…)",
    });
  }
  const { task, mixture, notes: read } = await dataTask(config.data, own.verifier, { split: "train" });
  notes.push(...read);
  return { task, judge: own, ...(mixture && { mixture }) };
}

/** A number that was set is meant: it is no more than there are. */
function fewerThanAsked(wanted: number, found: number, place: string): ConfigError {
  const cause = `it is ${wanted}, and ${place} has ${found} different problems to train on`;
  return new ConfigError({ place: "train_problems", cause, mend: `set it to at most ${found}, or leave it out: problems come round again` });
}

async function evaluationInputs(
  config: TrainConfig,
  task: Task,
  judge: Judge,
  notes: string[],
  onProgress: OnProgress,
): Promise<NonNullable<Inputs["evaluation"]>> {
  const own = config.eval.verifier === undefined ? judge : await verifierOfPart(config.eval.verifier, "eval.verifier");
  let source = task;
  if (config.eval.data !== undefined) {
    // A file given for evaluation is all for evaluation, unless it says otherwise.
    const options = { ...config.eval.data, ...(config.eval.data.eval_split === undefined && { eval_share: config.eval.data.eval_share || 1 }) };
    const held = await dataTask(options, own.verifier, { split: "test", place: "eval.data" });
    notes.push(...held.notes);
    source = held.task;
  }
  const size = source.size("eval");
  const place = config.eval.data === undefined ? placeOf(config) : placeOfData(config.eval.data);
  if (size === 0) {
    throw new DataError({
      place,
      cause: "no problem is held out for evaluation",
      mend: "set data.eval_share (0.1, say), give eval.data, or set eval.every to 0",
    });
  }
  const total = Math.min(config.eval.problems, size);
  const problems = await posedBy(source, "eval", total, config.eval.seed, (done) => onProgress({ kind: "pose", done, total }));
  if (problems.length < total) notes.push(`${place} has ${problems.length} different problems to evaluate on`);
  checkReferences(problems, own.verifier, place);
  checkKeys(problems, place);
  return { problems, ...own, conversational: source.environment !== undefined };
}

async function verifierOfPart(part: Part, place: string): Promise<Judge> {
  const { name, options } = partOf(part);
  try {
    return await namedVerifier(name, options, place);
  } catch (error) {
    // The verifier names its option; where that was written is known here.
    const option = error instanceof ConfigError ? /^\w+\(\), option (.+)$/.exec(error.place)?.[1] : undefined;
    throw option === undefined ? error : movedTo(error as ConfigError, `${place}.options.${option}`);
  }
}

/** Every reference, by the verifier that will be asked: it need not be the one that the data was loaded with. */
function checkReferences(problems: readonly Problem[], verifier: Verifier, place: string): void {
  for (const problem of problems) {
    const { key, reference } = problem;
    const fault = reference.answer === undefined ? undefined : verifier.checkReference(reference.answer);
    if (fault === undefined) continue;
    throw new DataError({
      place: placeOfProblem(problem).startsWith(place) ? placeOfProblem(problem) : `${place}, ${placeOfProblem(problem)}`,
      cause: `its answer is refused by the verifier ${verifier.name}: ${fault}`,
      mend: "mend the answer, or name another verifier",
      data: { problem: key },
    });
  }
}

function checkKeys(problems: readonly Problem[], place: string): void {
  const seen = new Set<string>();
  for (const { key } of problems) {
    if (seen.has(key))
      throw new DataError({
        place,
        cause: `two problems have the key ${JSON.stringify(key)}`,
        mend: "give each its own: randomness and statistics are keyed by it",
      });
    seen.add(key);
  }
}

function checkApart(training: readonly Problem[], held: readonly Problem[]): void {
  const keys = new Set(training.map(({ key }) => key));
  const prompts = new Set(training.map(({ prompt }) => JSON.stringify(prompt)));
  const common = held.filter(({ key, prompt }) => keys.has(key) || prompts.has(JSON.stringify(prompt)));
  if (common.length === 0) return;
  throw new DataError({
    place: "eval",
    cause: `${common.length} of its ${held.length} problems are trained on too (the first: ${common[0].key})`,
    mend: "evaluate on problems that are held out",
    data: { common: common.length },
  });
}
