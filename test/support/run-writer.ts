/** A run without a model, for tests: deterministic records, weights that say their step. As a program it writes until it is done or killed. */
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { canonicalJson, type Json } from "../../src/core/json.js";
import { note } from "../../src/core/note.js";
import type { Group } from "../../src/core/trajectory.js";
import { accept, unscored } from "../../src/core/verdict.js";
import { type Files, nodeFiles } from "../../src/train/store/files.js";
import { withoutClock } from "../../src/train/store/schema.js";
import { RunStore } from "../../src/train/store/store.js";
import { group, row } from "./batch.js";

export const meta = {
  config: { steps: 30, lr: 1e-4 },
  method: [{ slot: "credit", from: "grpo" }],
  fingerprint: { processor: "test", threads: 2 },
  versions: { touchstone: "0.1.0" },
  data: "d0",
};

/** Files that do not flush: tests cannot see a power failure, and flushing is what takes time. */
export const quickFiles: Files = { ...nodeFiles, sync: () => {}, syncFile: () => {}, syncFolder: () => {} };

const prior = note<number>("prior");

export function groupsOf(step: number): Group[] {
  return [0, 1].map((g) => {
    const old = [-0.1 * step, -1 / 3, -2];
    const made = group(`s${step}g${g}`, [
      row(`s${step}g${g}`, 0, {
        old,
        mask: [1, 0, 1],
        verdict: { ...accept({ evidence: { answer: step } }), elapsedMs: Math.random() },
        spans: [{ name: "answer", start: 1, end: 3 }],
      }),
      row(`s${step}g${g}`, 1, { old: [-step], verdict: unscored("worker lost"), purpose: g === 0 ? "train" : "aux" }),
    ]);
    prior.set(made.trajectories[0]!, step / 7);
    return made;
  });
}

/** One step of the run: an event, rollouts and, every third step, a checkpoint. */
export async function writeStep(store: RunStore, step: number, files: Files = quickFiles): Promise<void> {
  store.appendRollouts(step, groupsOf(step), (t) => ({
    numbers: { reward: t.member === 0 ? 1 : undefined },
    columns: { advantage: Float64Array.from(t.response, () => step / 3) },
  }));
  store.appendEvent({ step, kind: "step", data: { loss: step / 3 }, clock: { ms: Math.random() } });
  if (step % 3 !== 0) return;
  const save = (path: string, text: string) => {
    const fd = files.openWrite(path);
    try {
      files.write(fd, new TextEncoder().encode(text));
    } finally {
      files.close(fd);
    }
  };
  await store.checkpoint({
    step,
    state: { cursor: step * 2, cells: { grpo: { cursor: step * 2 } } },
    saveWeights: async (folder) => {
      files.makeFolder(folder);
      save(`${folder}/model.safetensors`, `weights of step ${step}`);
    },
    saveOptimizer: async (file) => save(file, `moments of step ${step}`),
    score: step === 3 ? 0.9 : 0.5,
  });
}

/** Every file of a run by its path, without what depends on a clock, on who held the lock, or on interruptions. */
export function snapshot(folder: string): { [path: string]: string } {
  const result: { [path: string]: string } = {};
  const visit = (relative: string) => {
    for (const name of nodeFiles.list(join(folder, relative))) {
      const path = relative ? `${relative}/${name}` : name;
      if (["cut", "lock.json", "sessions.jsonl", "run.json"].includes(path)) continue;
      if (nodeFiles.isFolder(join(folder, path))) visit(path);
      else result[path] = contentOf(path, nodeFiles.read(join(folder, path)));
    }
  };
  visit("");
  return result;
}

function contentOf(path: string, bytes: Uint8Array): string {
  const text = new TextDecoder().decode(bytes);
  const strip = (json: string) => canonicalJson(withoutClock(JSON.parse(json)) as Json);
  if (path.endsWith(".jsonl"))
    return text
      .split("\n")
      .map((line) => line && strip(line))
      .join("\n");
  if (path.endsWith("checkpoint.json")) return strip(canonicalJson(JSON.parse(text).body));
  return Buffer.from(bytes).toString("hex");
}

/** Begins a run, or resumes it, and writes up to a step. */
export async function writeUntil(folder: string, last: number, between: () => Promise<void> = async () => {}): Promise<void> {
  const opened =
    nodeFiles.size(`${folder}/run.json`) === undefined
      ? { store: RunStore.create(folder, meta, { files: quickFiles }), resume: undefined }
      : RunStore.open(folder, meta, { files: quickFiles });
  for (let step = (opened.resume?.step ?? 0) + 1; step <= last; step++) {
    await writeStep(opened.store, step);
    await between();
  }
  opened.store.close();
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const [folder, last] = process.argv.slice(2) as [string, string];
  process.stdout.write("ready\n");
  await writeUntil(folder, Number(last), () => new Promise((resolve) => setTimeout(resolve, 5)));
}
