/** Runs of the real trainer in this process, each with a fault at one file-system call, and what is left of them. */
import { cpSync, existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { TouchstoneError } from "../../src/core/errors.js";
import type { Engine } from "../../src/engine/contract.js";
import { OnnxEngine } from "../../src/engine/onnx/engine.js";
import { TableEngine } from "../../src/engine/table/engine.js";
import { RunReader } from "../../src/train/store/reader.js";
import { resume, type TrainOptions, train } from "../../src/train/train.js";
import successor from "../../test/support/successor-task.js";
import { tablePolicy } from "../../test/support/tabular.js";
import { type FileCall, type Mode, withFault } from "./file-faults.js";
import { bytesOf, differing, makePolicy } from "./training-process.js";

/** Four steps with checkpoints of steps 0, 2 and 4, of which one is taken away on the way, and evaluations at 0 and 4. */
const settings = { steps: 4, problems: 4, group: 4, minibatches: 2, checkpoint: { every: 2, keep_last: 1 }, eval: { every: 4, problems: 2, samples: 2 } };

/** Where the fault falls: into a run from its beginning, or into the resume of one that died while it wrote its last checkpoint. */
export const scenes = ["run", "resume"] as const;
export type Scene = (typeof scenes)[number];

/** What one fault led to. */
export interface Outcome {
  readonly call: FileCall;
  /** What was wrong with the error, or with what was left on disk. */
  readonly faults: readonly string[];
  /** Paths in which the run that was resumed afterwards differs from the one without a fault. */
  readonly differing: readonly string[];
}

/** What says to whoever reads the error that the work is not lost, or that there was none. */
const tells = /is intact|itself is whole|no checkpoint was written before it|nothing was lost|the run cannot be made|its lock cannot be written/;
/** What may fail in silence: nothing is lost by it. */
const harmless = new Set(["remove", "close"]);

type Options = Omit<TrainOptions, "out">;

export class FaultyRuns {
  private constructor(
    private readonly folder: string,
    private readonly engine: Engine,
    private readonly options: Options,
    private readonly whole: { readonly [path: string]: string },
    /** The calls of each scene, when none fails. */
    readonly calls: { readonly [scene in Scene]: readonly FileCall[] },
  ) {}

  static async create(name: "table" | "onnx", folder: string): Promise<FaultyRuns> {
    mkdirSync(folder, { recursive: true });
    const model = name === "table" ? await tablePolicy() : join(folder, "policy");
    if (name === "onnx") await makePolicy(model);
    // One engine for all runs: each loads its policy anew, and starting is what takes time.
    const engine = name === "table" ? new TableEngine() : await OnnxEngine.create({ threads: 1, activations: "keep" });
    const options = { ...settings, model, task: successor(), engine, lr: name === "table" ? 0.3 : 1e-3 };
    const [whole, died, again] = ["whole", "died", "again"].map((each) => join(folder, each));
    const { calls: run } = await withFault(whole, 0, "once", () => go(whole, options));
    const at = run.findIndex(({ path }) => path.startsWith("checkpoints/.new-00000004/optimizer"));
    await withFault(died, at + 1, "dead", async () => void (await errorOf(() => go(died, options))));
    unlock(died);
    cpSync(died, again, { recursive: true });
    const { calls: resumed } = await withFault(again, 0, "once", () => go(again, options));
    return new FaultyRuns(folder, engine, options, bytesOf(whole), { run, resume: resumed });
  }

  /** Lets call number `at` of a scene fail, looks at what is left, resumes without faults, and compares with the run that met none. */
  async fail(scene: Scene, at: number, mode: Mode): Promise<Outcome> {
    const out = join(this.folder, "failing");
    if (scene === "resume") cpSync(join(this.folder, "died"), out, { recursive: true });
    let error: unknown;
    const { failed } = await withFault(out, at, mode, async () => {
      error = await errorOf(() => go(out, this.options));
    });
    const call = failed ?? { kind: "none", path: "" };
    unlock(out);
    const faults = [...this.wrong(out, call, error)];
    if (scene === "resume" && lastGood(out) === undefined) faults.push("no checkpoint survived");
    let different: string[] = [];
    const after = await errorAfter(out, () => go(out, this.options));
    if (after === undefined) different = differing(bytesOf(out), this.whole);
    else faults.push(`it could not be resumed: ${String(after)}`);
    rmSync(out, { recursive: true, force: true });
    return { call, faults, differing: different };
  }

  close(): Promise<void> {
    return this.engine.close();
  }

  private *wrong(out: string, { kind }: FileCall, error: unknown): Generator<string> {
    if (error === undefined) {
      if (!harmless.has(kind)) yield "nothing was said";
      return;
    }
    if (!(error instanceof TouchstoneError)) return yield `an error without a way out: ${String(error)}`;
    const { message } = error;
    if (!tells.test(message)) yield `it does not say what is left: ${message}`;
    const [, intact] = /the checkpoint of step (\d+) is intact/.exec(message) ?? [];
    const whole = message.includes("itself is whole") ? error.data.good : undefined;
    const said = intact === undefined ? whole : Number(intact);
    if (said !== undefined && lastGood(out) !== said) yield `the last good checkpoint is that of step ${lastGood(out)}: ${message}`;
    if (message.includes("no checkpoint was written") && lastGood(out) !== undefined) yield `the checkpoint of step ${lastGood(out)} is there: ${message}`;
  }
}

const lastGood = (out: string): number | undefined => (begun(out) ? RunReader.open(out).checkpoints.lastGood().checkpoint?.step : undefined);
const begun = (out: string): boolean => existsSync(join(out, "run.json"));
/** What a process that ended leaves behind: its lock, which counts as stale. */
const unlock = (out: string): void => rmSync(join(out, "lock.json"), { force: true });

/** Begins a run, or resumes it. */
async function go(out: string, options: Options): Promise<void> {
  if (begun(out)) await resume(out, { task: options.task, engine: options.engine });
  else await train({ ...options, out });
}

async function errorOf(act: () => Promise<void>): Promise<unknown> {
  try {
    await act();
    return undefined;
  } catch (error) {
    return error;
  }
}

/** As `errorOf`, without faults and without flushing. */
async function errorAfter(out: string, act: () => Promise<void>): Promise<unknown> {
  let error: unknown;
  await withFault(out, 0, "once", async () => {
    error = await errorOf(act);
  });
  return error;
}
