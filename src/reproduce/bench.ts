/** What an arm of a demonstration has at hand: training runs, held-out answers, warm starts and engines, all on one thread and in its own folder. */
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { hasEnded } from "../compare/run.js";
import { saveAlphabet } from "../core/alphabet.js";
import { ConfigError } from "../core/errors.js";
import { hashJson, type Json } from "../core/json.js";
import type { Engine } from "../engine/contract.js";
import { startOnnx } from "../engine/onnx/start.js";
import { parseSchedule } from "../engine/schedule.js";
import { TableEngine } from "../engine/table/engine.js";
import { anyMethod } from "../methods/catalogue.js";
import type {
  Answers,
  AnyModule,
  Bench,
  Demonstration,
  Heldout,
  MethodSpec,
  Metric,
  TrainedRun,
  TrainingArm,
  TrainingOptions,
  WarmStart,
} from "../methods/demonstration.js";
import { isTask, namedTask } from "../tasks/catalogue.js";
import { tokenizerOf } from "../train/model-files.js";
import { sft } from "../train/sft.js";
import { policyConfig, workedBatches } from "../train/starter.js";
import { RunReader } from "../train/store/reader.js";
import { resume, type TrainOptions, train } from "../train/train.js";
import { answersOf } from "./heldout.js";
import { trainedRun } from "./trained.js";

export interface BenchOptions {
  readonly demonstration: Demonstration;
  readonly arm: string;
  readonly seed: number;
  readonly quick: boolean;
  /** What `prepare` gave. */
  readonly prepared?: TrainingOptions;
  /** The folder of the whole reproduction. */
  readonly out: string;
  /** This arm's own. */
  readonly folder: string;
}

const packageFolder = fileURLToPath(new URL("../../", import.meta.url));
const batchSize = 64;
const longestWarmup = 50;

/** A bench, and what ends its engine. */
export function openBench({ demonstration, arm, seed, quick, prepared, out, folder }: BenchOptions): { readonly bench: Bench; close(): Promise<void> } {
  const { shared = {}, metrics } = demonstration;
  const hurried = quick ? (demonstration.quick.options ?? {}) : {};
  const options = placed({ ...shared, ...prepared, ...hurried });
  const engineName = (): "table" | "onnx" => ((options.engine as { readonly name?: string } | undefined)?.name === "table" ? "table" : "onnx");
  let opened: Promise<Engine> | undefined;
  const engine = (): Promise<Engine> => {
    opened ??= start(engineName());
    return opened;
  };
  const known = new Map<string, Promise<Answers>>();
  const functions: unknown[] = [];
  /** Functions of one text may have closed over different values, so they are told apart by identity. */
  const numberOfFunction = (value: unknown): number => {
    if (!functions.includes(value)) functions.push(value);
    return functions.indexOf(value);
  };

  const measure = (model: string, wanted: Heldout): Promise<Answers> => {
    const heldout = quick ? shortened(wanted, demonstration) : wanted;
    const key = `${model}\n${JSON.stringify(heldout, (_, value: unknown) => (typeof value === "function" ? `function ${numberOfFunction(value)}` : value))}`;
    // One after another: the engine's policy is one model at a time.
    const found =
      known.get(key) ?? Promise.allSettled([engine(), ...known.values()]).then(async () => answersOf(await engine(), { model, heldout, options, seed }));
    known.set(key, found);
    return found;
  };

  const numberOf = async (metric: Metric, trained: TrainedRun): Promise<number | undefined> => {
    switch (metric.kind) {
      case "avg":
        return (await trained.measure(heldoutOf(metric, 1))).avg;
      case "pass":
        return (await trained.measure(heldoutOf(metric, metric.k))).pass(metric.k);
      case "maj":
        return (await trained.measure(heldoutOf(metric, metric.k))).maj(metric.k);
      case "training":
        return meanOver(trained.series(metric.metric), metric);
      case "area":
        return areaOf(trained.evaluations);
      case "own":
        return metric.run(trained, bench);
      case "returned":
        return undefined;
    }
  };

  const bench: Bench = {
    arm,
    seed,
    quick,
    folder,
    options,
    async train(given: TrainingArm, name = "run") {
      const out = join(folder, name);
      const merged = placed({ ...options, ...given.options, ...hurried });
      const { config, modules } = methodsOf(given.method);
      const { engine: asked, ...rest } = merged;
      const form =
        (asked as { readonly name?: string } | undefined)?.name === "table"
          ? { name: "table" }
          : { name: "onnx", activations: "keep", ...(asked as object | undefined) };
      const whole = {
        checkpoint: { every: 25, keep_last: 1 },
        verifier_workers: 0,
        ...rest,
        ...(config === undefined ? {} : { method: config }),
        methods: modules.map((module) => anyMethod(module)),
        engine: { ...form, threads: 1, workers: 1 },
        seed,
        out,
      } as unknown as TrainOptions;
      await trainedOrResumed(whole, out);
      return trainedRun(out, measure);
    },
    async numbers(trained) {
      const numbers: { [metric: string]: number | undefined } = {};
      for (const [name, metric] of Object.entries(metrics)) numbers[name] = await numberOf(metric, trained);
      return numbers;
    },
    measure,
    warmStart: (recipe) => warmStart(join(out, "starters"), quick ? { ...recipe, steps: Math.min(recipe.steps, quickWarmSteps) } : recipe),
    async open(model) {
      const own = await start(engineName());
      try {
        await own.weights.load({ role: "policy", source: { from: "folder", path: inPackage(model) }, trainable: true });
        return { engine: own, tokenizer: await tokenizerOf(inPackage(model), undefined), close: () => own.close() };
      } catch (error) {
        await own.close();
        throw error;
      }
    },
  };
  return { bench, close: async () => (await opened)?.close() };
}

/** A quick run shows that things work, and needs no starter that knows anything. */
const quickWarmSteps = 20;

async function start(name: "table" | "onnx"): Promise<Engine> {
  return name === "table" ? new TableEngine() : startOnnx({ engine: { threads: 1 } });
}

async function trainedOrResumed(options: TrainOptions, out: string): Promise<void> {
  if (!existsSync(join(out, "run.json"))) {
    // What a run left that was killed before it began.
    rmSync(out, { recursive: true, force: true });
    await train(options);
    return;
  }
  if (hasEnded(RunReader.open(out))) return;
  const { methods, task } = options;
  // A task by name is in the run's configuration; one that is an object is not.
  const own = typeof task === "function" || isTask(task) ? { task } : {};
  await resume(out, { ...(methods && { methods }), ...own });
}

/** Paths that begin with `starters/`, which are the package's. */
function inPackage(path: string): string {
  return path.startsWith("starters/") ? join(packageFolder, path) : path;
}

function placed(options: TrainingOptions): TrainingOptions {
  const { model, roles } = options;
  const role = (of: { readonly [option: string]: Json }): { readonly [option: string]: Json } =>
    typeof of.model === "string" ? { ...of, model: inPackage(of.model) } : of;
  return {
    ...options,
    ...(model === undefined ? {} : { model: inPackage(model) }),
    ...(roles === undefined ? {} : { roles: Object.fromEntries(Object.entries(roles).map(([name, of]) => [name, role(of)])) }),
  };
}

/** The configuration's `method`, and the modules that it names. */
function methodsOf(method: TrainingArm["method"]): { readonly config?: Json; readonly modules: readonly AnyModule[] } {
  if (method === undefined) return { modules: [] };
  const list = Array.isArray(method) ? (method as readonly MethodSpec[]) : [method as MethodSpec];
  const modules: AnyModule[] = [];
  const names = list.map((spec): Json => {
    if (typeof spec === "string") return spec;
    const module = "module" in spec ? spec.module : "make" in spec ? spec : undefined;
    if (module === undefined) return { ...(spec as { readonly name: string; readonly options?: Json }) };
    modules.push(module);
    return { name: module.name, options: "module" in spec ? (spec.options ?? {}) : {} };
  });
  return { config: Array.isArray(method) || typeof names[0] !== "string" ? names : (names[0] as string), modules };
}

function shortened(heldout: Heldout, { quick }: Demonstration): Heldout {
  const { problems, samples } = quick.heldout ?? {};
  return {
    ...heldout,
    problems: Math.min(heldout.problems, problems ?? heldout.problems),
    ...(heldout.samples === undefined ? {} : { samples: Math.min(heldout.samples, samples ?? heldout.samples) }),
  };
}

function heldoutOf(metric: Heldout, least: number): Heldout {
  const { problems, samples = least, temperature, greedy, task, keep } = metric;
  return {
    problems,
    samples: greedy ? 1 : Math.max(least, samples),
    ...(temperature === undefined ? {} : { temperature }),
    ...(greedy === undefined ? {} : { greedy }),
    ...(task === undefined ? {} : { task }),
    ...(keep === undefined ? {} : { keep }),
  };
}

type Points = readonly { readonly step: number; readonly value: number }[];

/** The mean over steps `from` to `to`, or over the last ones of the run; undefined where none of them has the metric. */
export function meanOver(
  points: Points,
  { from = 1, to = Number.POSITIVE_INFINITY, last }: { readonly from?: number; readonly to?: number; readonly last?: number },
): number | undefined {
  const end = points.at(-1)?.step ?? 0;
  const chosen = points.filter(({ step }) => (last === undefined ? step >= from && step <= to : step > end - last));
  return chosen.length === 0 ? undefined : chosen.reduce((sum, { value }) => sum + value, 0) / chosen.length;
}

/** Area under a curve by trapezoids, a step. */
export function areaOf(points: Points): number | undefined {
  const [first, last] = [points[0], points.at(-1)];
  if (first === undefined || last === undefined || first.step === last.step) return undefined;
  const area = points.slice(1).reduce((sum, { step, value }, i) => sum + ((step - (points[i]?.step ?? 0)) * (value + (points[i]?.value ?? 0))) / 2, 0);
  return area / (last.step - first.step);
}

/** Supervised training on worked solutions, once for a recipe: made beside and renamed, so that two that make it at once do no harm. */
async function warmStart(folder: string, recipe: WarmStart): Promise<string> {
  const { size = "100k", from, steps, lr, maxLength = 128, seed = 0 } = recipe;
  const place = join(folder, hashJson({ ...recipe } as unknown as Json).slice(0, 16));
  if (existsSync(place)) return place;
  const named = typeof recipe.task === "string" ? { name: recipe.task } : recipe.task;
  const { task } = await namedTask(named.name, named.options ?? {});
  const { tokenizer } = task;
  if (tokenizer === undefined)
    throw new ConfigError({ place: `warm start on ${task.name}`, cause: "the task has no tokenizer", mend: "name a task that has one" });
  if (task.environment)
    throw new ConfigError({
      place: `warm start on ${task.name}`,
      cause: "its answers are conversations",
      mend: "make the starter with touchstone sft, and name its folder",
    });
  const engine = await startOnnx({ engine: { threads: 1, activations: "keep" } });
  try {
    if (from !== undefined) await tokenizerOf(inPackage(from), tokenizer);
    const source =
      from === undefined
        ? ({ from: "config", config: policyConfig(size, tokenizer, maxLength), seed } as const)
        : ({ from: "folder", path: inPackage(from) } as const);
    await engine.weights.load({ role: "policy", source, trainable: true });
    const warmup = Math.min(longestWarmup, Math.floor(steps / 4));
    const schedule = parseSchedule({ kind: "cosine", rate: lr, warmup, steps }, "warm start");
    await sft(engine, { batch: workedBatches(task, tokenizer, batchSize, steps, seed), steps, schedule });
    const beside = `${place}.${process.pid}`;
    mkdirSync(folder, { recursive: true });
    await engine.weights.save({ role: "policy" }, beside);
    await saveAlphabet(tokenizer, beside);
    if (existsSync(place)) rmSync(beside, { recursive: true });
    else renameSync(beside, place);
    return place;
  } finally {
    await engine.close();
  }
}

/** The name of a folder for an arm: its name, with what folders cannot have replaced. */
export const folderName = (arm: string): string => basename(arm.replace(/[^\w.+-]+/g, "-"));
