/** Runs of `touchstone train` that are killed and resumed to their end, beside one that was left alone. */
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Json } from "../../src/core/json.js";
import { RunReader } from "../../src/train/store/reader.js";
import { type Aim, bytesOf, differing, finalHashes, finish, keyed, makePolicy, shape, Trainer, whereIs } from "./training-process.js";

/** What a kill led to. */
export interface Killed {
  readonly aim: string;
  /** Where the folder says that the process was when it ended, for each kill in turn; the second and later ones fell on a resume. */
  readonly hit: readonly string[];
  /** Paths in which the finished run differs from the one that was left alone. */
  readonly differing: readonly string[];
  /** What was wrong with how a process ended that lost its engine. */
  readonly untold: readonly string[];
}

export type WithWorkers = { readonly [what in "weights" | "optimizers" | "differing"]: readonly string[] };

const tries = 5;
/** How long a checkpoint and the end of a run take, in ms, about; the rest is measured. */
const shortMs = 40;

export class KilledRuns {
  private made = 0;

  private constructor(
    private readonly folder: string,
    private readonly model: string,
    /** The run that was left alone: its files, its numbers, and its times in ms. */
    readonly whole: { readonly [path: string]: string },
    readonly updates: number,
    private readonly ms: { readonly start: number; readonly step: number; readonly evaluation: number; readonly whole: number },
    private readonly changes: { readonly [name: string]: Json },
  ) {}

  /** `changes`: of the options that all runs have. */
  static async create(folder: string, changes: { readonly [name: string]: Json } = {}): Promise<KilledRuns> {
    mkdirSync(folder, { recursive: true });
    const [model, whole] = [join(folder, "policy"), join(folder, "whole")];
    await makePolicy(model);
    const trainer = new Trainer(whole, model, changes);
    await trainer.reaches({ phase: "step", step: 1 });
    const start = performance.now() - trainer.started;
    const { code, err } = await trainer.ended;
    if (code !== 0) throw new Error(`touchstone train ended with ${code}: ${err}`);
    const all = performance.now() - trainer.started;
    const events = [...RunReader.open(whole).events()];
    const mean = (kind: string): number => {
      const times = events.filter((event) => event.kind === kind).map(({ clock }) => clock?.ms as number);
      return times.reduce((a, b) => a + b, 0) / times.length;
    };
    const updates = events.findLast(({ kind }) => kind === "step")?.data.policy_version as number;
    return new KilledRuns(folder, model, bytesOf(whole), updates, { start, step: mean("step"), evaluation: mean("evaluation"), whole: all }, changes);
  }

  /** Kills a run at a place, `part` (0 to 1) of the way through it, and each resume at a part of a whole run's time; then resumes to the end. */
  async kill(aim: Aim, part: number, resumes: readonly number[] = []): Promise<Killed> {
    for (let attempt = 0; attempt < tries; attempt++) {
      const folder = this.next();
      const trainer = await this.toAim(folder, aim, part / 2 ** attempt);
      if (!(await trainer.kill())) continue; // It had ended by itself: somewhat earlier, then.
      const hit = [placeOf(whereIs(folder))];
      for (const share of resumes) {
        const again = new Trainer(folder, this.model);
        await Promise.race([sleep(share * this.ms.whole), again.ended]);
        if (await again.kill()) hit.push(placeOf(whereIs(folder)));
      }
      return this.finished(folder, aim, hit, []);
    }
    throw new Error(`no kill came in time for ${placeOf(aim)}`);
  }

  /** Kills the engine's process alone. The trainer must end by itself, and say so; then the run is resumed to the end. */
  async killEngine(aim: Aim, part: number): Promise<Killed> {
    for (let attempt = 0; attempt < tries; attempt++) {
      const folder = this.next();
      const trainer = await this.toAim(folder, aim, part / 2 ** attempt);
      const killed = trainer.killEngine();
      const { code, err } = await trainer.ended;
      if (!killed || code === 0) continue; // It needed its engine no more.
      const untold: string[] = [];
      if (code !== 1) untold.push(`exit code ${code}`);
      if (!/engine.*process \d+ ended \(killed by SIGKILL/s.test(err)) untold.push(`it said ${JSON.stringify(err)}`);
      const end = [...RunReader.open(folder).events()].at(-1);
      if (end?.kind !== "end" || end.data.reason !== "error") untold.push(`its last event is ${JSON.stringify(end)}`);
      return this.finished(folder, aim, [placeOf({ phase: aim.phase, step: end?.step ?? 0 })], untold);
    }
    throw new Error(`no engine was killed in time for ${placeOf(aim)}`);
  }

  /** Runs with other numbers of verifier workers, left alone: their final weights, and the files that differ from the first one's. */
  async withWorkers(counts: readonly number[]): Promise<WithWorkers> {
    const runs: { readonly [path: string]: string }[] = [];
    for (const workers of counts) {
      const folder = this.next();
      await finish(folder, this.model, { ...this.changes, verifier_workers: workers });
      const { "run.json": _, ...files } = bytesOf(folder); // It has the number itself.
      runs.push(files);
      rmSync(folder, { recursive: true });
    }
    const hashes = runs.map(finalHashes);
    return {
      weights: [...new Set(hashes.map(({ weights }) => weights))],
      optimizers: [...new Set(hashes.map(({ optimizer }) => optimizer))],
      differing: [...new Set(runs.flatMap((run) => differing(run, runs[0])))],
    };
  }

  private async toAim(folder: string, aim: Aim, part: number): Promise<Trainer> {
    const trainer = new Trainer(folder, this.model, this.changes);
    await trainer.reaches(aim);
    const { start, step, evaluation } = this.ms;
    const ms = { start, step, evaluation, checkpoint: shortMs, end: shortMs }[aim.phase];
    await Promise.race([sleep(part * ms), trainer.ended]);
    return trainer;
  }

  private async finished(folder: string, aim: Aim, hit: readonly string[], untold: readonly string[]): Promise<Killed> {
    await finish(folder, this.model);
    const different = differing(bytesOf(folder), this.whole);
    rmSync(folder, { recursive: true });
    return { aim: placeOf(aim), hit, differing: different, untold };
  }

  private next(): string {
    return join(this.folder, `run${this.made++}`);
  }
}

export const placeOf = ({ phase, step }: Aim): string => (phase === "start" || phase === "end" ? phase : `${phase} ${step}`);

/** How many of the random kills are aimed at each phase; where in a run and where in the phase is drawn. */
const shares = { start: 4, step: 5, evaluation: 3, checkpoint: 5, end: 3 } as const;

export interface Draw {
  readonly aim: Aim;
  readonly part: number;
  readonly resumes: readonly number[];
}

/** Twenty moments, by a key; every third run is killed once more while it resumes, one of them twice more. */
export function randomMoments(): Draw[] {
  const aimed = Object.entries(shares).flatMap(([phase, count]) => Array<Aim["phase"]>(count).fill(phase as Aim["phase"]));
  return aimed.map((phase, n) => {
    const stride = { start: 0, step: 1, evaluation: shape.evaluationEvery, checkpoint: shape.checkpointEvery, end: shape.steps }[phase];
    const places = stride === 0 ? 1 : shape.steps / stride;
    const step = stride * (1 + Math.floor(keyed("step", n) * places));
    const resumes = n % 3 === 0 ? Array.from({ length: n === 9 ? 2 : 1 }, (_, again) => keyed(`resume ${again}`, n)) : [];
    return { aim: { phase, step }, part: keyed("part", n), resumes };
  });
}

/** Around the first step, the ends of two epochs (step 3 without a checkpoint, step 6 with one), and the last step. */
export const boundaries: readonly Aim[] = [
  { phase: "step", step: 1 },
  { phase: "step", step: shape.epoch },
  { phase: "step", step: shape.epoch + 1 },
  { phase: "step", step: 2 * shape.epoch },
  { phase: "checkpoint", step: 2 * shape.epoch },
  { phase: "step", step: 2 * shape.epoch + 1 },
  { phase: "step", step: shape.steps },
  { phase: "evaluation", step: shape.steps },
  { phase: "checkpoint", step: shape.steps },
];

export const engineMoments: readonly Aim[] = [
  { phase: "step", step: 1 },
  { phase: "step", step: 5 },
  { phase: "evaluation", step: 4 },
  { phase: "checkpoint", step: 6 },
];
