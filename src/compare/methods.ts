/**
 * Runs methods x seeds from one configuration: same policy, problems, evaluation and seeds, so that runs of one seed are
 * pairs. The folder is the state: a run that has ended is kept, one that was interrupted is resumed.
 */
import { existsSync } from "node:fs";
import { basename, join } from "node:path";
import { ConfigError, DivergenceError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import { isModulePath } from "../core/load.js";
import { plan } from "../train/prepare.js";
import { usualNorm } from "../train/rules.js";
import { changesOf } from "../train/store/begun.js";
import { RunReader } from "../train/store/reader.js";
import { resume, separate, type TrainHooks, type TrainOptions, train } from "../train/train.js";
import { hasEnded } from "./run.js";

export interface MethodsOptions {
  /** Names as `method` takes them: `grpo`, `dapo+rloo`, or the path of a module. */
  readonly methods: readonly string[];
  readonly seeds: readonly number[];
  /** What all runs share; its `seed` and `out` are set for each run, its `method` where it is not the same by name. */
  readonly config: Omit<TrainOptions, "out" | keyof TrainHooks>;
  /** Folder of all runs: `METHOD/seed-N`. */
  readonly out: string;
}

export interface PlannedRun {
  readonly label: string;
  readonly seed: number;
  readonly options: TrainOptions;
  readonly state: "new" | "resume" | "kept";
}

/** Evaluations of a run that says nothing of them. */
const evaluations = 10;

/** All runs in the order in which they are made: seed by seed, so that pairs are complete early. Throws ConfigError before any work. */
export async function planRuns({ methods, seeds, config, out }: MethodsOptions): Promise<PlannedRun[]> {
  if (config.stages !== undefined)
    throw new ConfigError({ place: "stages", cause: "methods that are compared take the place of stages", mend: "leave stages out" });
  const labels = methods.map(labelOf);
  const twin = labels.find((label, i) => labels.indexOf(label) !== i);
  if (twin !== undefined) throw new ConfigError({ place: "option --methods", cause: `${twin} is there twice`, mend: "name each method once" });
  const planned: PlannedRun[] = [];
  for (const seed of seeds) {
    for (const [i, method] of methods.entries()) {
      const folder = join(out, labels[i], `seed-${seed}`);
      const options = { ...config, method: own(config.method, method), eval: evaluated(config), seed, out: folder } as TrainOptions;
      const { input, given } = separate(options);
      const state = existsSync(join(folder, "run.json")) ? stateOf(folder, JSON.parse(JSON.stringify((await plan(input, given)).config)) as Json) : "new";
      // A fault of the configuration is the same for all seeds.
      if (state === "new" && seed === seeds[0]) await plan(input, given);
      planned.push({ label: labels[i], seed, options, state });
    }
  }
  return planned;
}

/** Runs what is left of a plan. `hooks` is asked before each run. True: all have come to an end; false: interrupted. A run that diverges is told and counts with what it had. */
export async function runAll(
  runs: readonly PlannedRun[],
  hooks: (run: PlannedRun, number: number) => TrainHooks,
  tell: (text: string) => void,
): Promise<boolean> {
  for (const [i, run] of runs.entries()) {
    if (run.state === "kept") continue;
    const { out } = run.options;
    try {
      const with_ = hooks(run, i + 1);
      const { task, engine } = run.options;
      const objects = { ...(typeof task === "object" && "verifier" in task && { task }), ...(isInstance(engine) && { engine }) } as Pick<
        TrainOptions,
        "task" | "engine"
      >;
      const { reason } = run.state === "new" ? await train({ ...run.options, ...with_ }) : await resume(out, { ...with_, ...objects });
      if (reason === "interrupted") return false;
    } catch (error) {
      if (!(error instanceof DivergenceError)) throw error;
      tell(`${run.label}, seed ${run.seed}: ${error.message}`);
    }
  }
  return true;
}

const isInstance = (engine: unknown): boolean => typeof (engine as { forward?: unknown } | undefined)?.forward === "function";

function labelOf(method: string): string {
  return method
    .split("+")
    .map((part) => (isModulePath(part) ? basename(part).replace(/\.[cm]?[jt]s$/, "") : part))
    .join("+");
}

/** The method of the configuration where it is the one named, so that its options hold; else the name. */
function own(written: TrainOptions["method"], name: string): TrainOptions["method"] {
  const named = typeof written === "object" && !Array.isArray(written) && (written as { name?: string }).name === name;
  return named ? written : name;
}

function evaluated({ eval: written, steps = 100 }: MethodsOptions["config"]): TrainOptions["eval"] {
  return written?.every ? written : { ...written, every: Math.max(1, Math.floor(steps / evaluations)) };
}

/** What to do with a run that is there. Throws ConfigError where it was made otherwise; engines may differ, results then in their last digits. */
function stateOf(folder: string, config: Json): "resume" | "kept" {
  const reader = RunReader.open(folder);
  const bare = ({ out: _, engine: __, loggers: ___, ...rest }: { readonly [name: string]: Json }): Json => rest;
  const [was, is] = [reader.run.config as { readonly [name: string]: Json }, config as { readonly [name: string]: Json }];
  // A run keeps what its engine decided where nothing was written.
  const decided: { readonly [name: string]: Json } = was.max_norm === usualNorm ? { max_norm: usualNorm } : {};
  const changes = changesOf(bare(was), bare({ ...decided, ...is }));
  if (changes.length > 0) {
    throw new ConfigError({
      place: folder,
      cause: `this run is there and was made with other options: ${changes.slice(0, 3).join(", ")}`,
      mend: "write the options as they were, or give another folder with --out",
      data: { changes },
    });
  }
  return hasEnded(reader) ? "kept" : "resume";
}
