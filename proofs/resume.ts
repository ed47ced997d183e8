/** Exact resume, on runs of `touchstone train` with a policy of 100k parameters: eight steps of six optimizer steps, checkpoints at every second, evaluations at every fourth. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FaultyRuns, type Scene, scenes } from "./lib/faulty-runs.js";
import { type Mode, modes } from "./lib/file-faults.js";
import { boundaries, engineMoments, type Killed, KilledRuns, randomMoments } from "./lib/killed-runs.js";
import { finalHashes, keyed, phases } from "./lib/training-process.js";
import type { Proof } from "./record.js";

const none = { equals: 0 } as const;
const verifierWorkers = [0, 1, 2, 5] as const;
const group = 5;
const changingKinds = ["mkdir", "open", "write", "close", "sync", "rename", "remove", "writeFile", "truncate"];

/** What all faults of one scene led to. */
interface Faulted {
  [name: string]: number | string[];
  readonly faults: number;
  readonly kinds: string[];
  /** A sentence for each fault after which something was wrong. */
  readonly wrong: string[];
  readonly differing: string[];
}

const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);
const differ = (killed: readonly Killed[]): number => killed.filter(({ differing: paths }) => paths.length > 0).length;

/** Lets every `stride`th call of a scene fail, in the modes given in turn, or in each of them. */
async function failing(runs: FaultyRuns, scene: Scene, each: readonly Mode[], stride = 1): Promise<Faulted> {
  const kinds = new Set<string>();
  const wrong: string[] = [];
  const different: string[] = [];
  let faults = 0;
  for (let at = 1; at <= runs.calls[scene].length; at += stride) {
    const mode = each[faults % each.length];
    const { call, faults: found, differing: paths } = await runs.fail(scene, at, mode);
    const what = `${scene}, ${mode}, call ${at}, ${call.kind} of ${call.path}`;
    faults++;
    kinds.add(call.kind);
    if (found.length > 0) wrong.push(`${what}: ${found.join("; ")}`);
    if (paths.length > 0) different.push(`${what}: ${paths.join(", ")}`);
  }
  return { faults, kinds: [...kinds].sort(), wrong, differing: different };
}

/** Gives a folder for the time of some work. */
async function within<T>(act: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "touchstone-resume-"));
  try {
    return await act(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const killing = <T>(act: (runs: KilledRuns) => Promise<T>): Promise<T> => within(async (folder) => act(await KilledRuns.create(folder)));

async function faulting<T>(engine: "table" | "onnx", act: (runs: FaultyRuns) => Promise<T>): Promise<T> {
  return within(async (folder) => {
    const runs = await FaultyRuns.create(engine, folder);
    try {
      return await act(runs);
    } finally {
      await runs.close();
    }
  });
}

async function inTurn<A, B>(items: readonly A[], act: (item: A, index: number) => Promise<B>): Promise<B[]> {
  const results: B[] = [];
  for (const [i, item] of items.entries()) results.push(await act(item, i));
  return results;
}

export default {
  claim:
    "A training run that is killed at any moment, or meets a fault at any file-system call, resumes to the very bytes of a run that was left alone, " +
    "and says until then which checkpoint is intact; the number of verifier workers changes no byte.",
  limits: {
    updates: { atLeast: 48 },
    kills: { atLeast: 20 },
    kills_on_resume: { atLeast: 5 },
    phases_hit: { equals: phases.length },
    kills_differing: none,
    boundary_kills: { equals: boundaries.length },
    boundary_kills_differing: none,
    engine_kills: { equals: engineMoments.length },
    engine_kills_untold: none,
    engine_kills_differing: none,
    verifier_workers: { equals: verifierWorkers.join(", ") },
    verifier_workers_final_weights: { equals: 1 },
    verifier_workers_files_differing: none,
    faults: { atLeast: 1500 },
    fault_kinds_missing: none,
    faults_wrong: none,
    faults_differing: none,
  },

  async run(work) {
    const moments = randomMoments();
    const groups = Array.from({ length: Math.ceil(moments.length / group) }, (_, i) => moments.slice(group * i, group * (i + 1)));
    const kills = await inTurn(groups, (some, i) =>
      work.part(`random kills ${group * i + 1} to ${group * i + some.length}`, () =>
        killing(async (runs) => ({
          updates: runs.updates,
          killed: (await inTurn(some, ({ aim, part, resumes }) => runs.kill(aim, part, resumes))) as never[],
          final: finalHashes(runs.whole),
        })),
      ),
    );
    const random = kills.flatMap(({ killed }) => killed as Killed[]);
    const atBoundaries = (await work.part("boundary kills", () =>
      killing(async (runs) => (await inTurn(boundaries, (aim, i) => runs.kill(aim, keyed("boundary", i)))) as never[]),
    )) as Killed[];
    const engines = (await work.part("engine kills", () =>
      killing(async (runs) => (await inTurn(engineMoments, (aim, i) => runs.killEngine(aim, keyed("engine", i)))) as never[]),
    )) as Killed[];
    const workers = await work.part(`verifier workers ${verifierWorkers.join(", ")}`, () => killing((runs) => runs.withWorkers(verifierWorkers)));

    const faulted: Faulted[] = [];
    for (const mode of modes) {
      for (const scene of scenes)
        faulted.push((await work.part(`faults, table, ${scene}, ${mode}`, () => faulting("table", (runs) => failing(runs, scene, [mode])))) as Faulted);
    }
    faulted.push((await work.part("faults, onnx, run, modes in turn", () => faulting("onnx", (runs) => failing(runs, "run", modes)))) as Faulted);

    work.detail("random kills", random as never[]);
    work.detail("boundary kills", atBoundaries as never[]);
    work.detail("engine kills", engines as never[]);
    work.detail("hashes of final weights and optimizer", kills.map(({ final }) => final) as never[]);
    work.detail("hashes with other numbers of verifier workers", workers);
    work.detail("faults", faulted);

    const hit = new Set(random.map(({ hit: [first] }) => first.split(" ")[0]));
    const kinds = new Set(faulted.flatMap((each) => each.kinds));
    return {
      updates: Math.min(...kills.map(({ updates }) => updates)),
      kills: random.length,
      kills_on_resume: sum(random.map((each) => each.hit.length - 1)),
      phases_hit: hit.size,
      kills_differing: differ(random),
      boundary_kills: atBoundaries.length,
      boundary_kills_differing: differ(atBoundaries),
      engine_kills: engines.length,
      engine_kills_untold: engines.filter(({ untold }) => untold.length > 0).length,
      engine_kills_differing: differ(engines),
      verifier_workers: verifierWorkers.join(", "),
      verifier_workers_final_weights: workers.weights.length,
      verifier_workers_files_differing: workers.differing.length,
      faults: sum(faulted.map(({ faults }) => faults)),
      fault_kinds_missing: changingKinds.filter((kind) => !kinds.has(kind)).length,
      faults_wrong: sum(faulted.map(({ wrong }) => wrong.length)),
      faults_differing: sum(faulted.map((each) => each.differing.length)),
    };
  },

  short: {
    "a kill, and another one while it resumes": {
      limits: { kills: { equals: 2 }, differing: none },
      run: () =>
        killing(async (runs) => {
          const killed = await runs.kill({ phase: "step", step: 3 }, 0.5, [0.4]);
          return { kills: killed.hit.length, differing: killed.differing.length };
        }),
    },
    "kills at the first and the last step and at the end of an epoch": {
      limits: { kills: { equals: 3 }, differing: none },
      run: () =>
        killing(async (runs) => {
          const killed = await inTurn([boundaries[0], boundaries[4], boundaries[8]], (aim) => runs.kill(aim, 0.5));
          return { kills: killed.length, differing: differ(killed) };
        }),
    },
    "an engine's process killed": {
      limits: { untold: none, differing: none },
      run: () =>
        killing(async (runs) => {
          const killed = await runs.killEngine({ phase: "step", step: 5 }, 0.5);
          return { untold: killed.untold.length, differing: killed.differing.length };
        }),
    },
    "faults at every seventh file-system call": {
      limits: { faults: { atLeast: 60 }, wrong: none, differing: none },
      run: () =>
        faulting("table", async (runs) => {
          const faulted = await inTurn(scenes, (scene) => failing(runs, scene, modes, 7));
          return {
            faults: sum(faulted.map(({ faults }) => faults)),
            wrong: sum(faulted.map(({ wrong }) => wrong.length)),
            differing: sum(faulted.map((each) => each.differing.length)),
          };
        }),
    },
  },
} satisfies Proof;
