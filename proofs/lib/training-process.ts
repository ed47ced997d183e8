/** A small training run of `touchstone train` as a process: what it is told, where it stands as its folder shows, and how it is killed. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { saveAlphabet } from "../../src/core/alphabet.js";
import { canonicalJson, type Json, sha256 } from "../../src/core/json.js";
import { randomKey, uniform } from "../../src/core/random.js";
import { startOnnx } from "../../src/engine/onnx/start.js";
import { sft } from "../../src/train/sft.js";
import { policyConfig, withEnd } from "../../src/train/starter.js";
import { nodeFiles } from "../../src/train/store/files.js";
import { linesOf } from "../../src/train/store/log.js";
import { runPaths } from "../../src/train/store/reader.js";
import { withoutClock } from "../../src/train/store/schema.js";
import { repository } from "../../test/paths.js";
import { snapshot } from "../../test/support/run-writer.js";
import successor, { tokenizer } from "../../test/support/successor-task.js";

/** Twelve problems by four a step: an epoch has three steps, so it ends at steps 3 and 6, of which 6 has a checkpoint. */
export const shape = { steps: 8, epoch: 3, checkpointEvery: 2, evaluationEvery: 4 } as const;

/** The configuration of the run; each of its 8 steps makes six optimizer steps. */
export const settings: { readonly [name: string]: Json } = {
  task: "test/support/successor-task.ts",
  steps: shape.steps,
  problems: 4,
  group: 8,
  minibatches: 3,
  epochs: 2,
  lr: 1e-3,
  schedule: { kind: "cosine", warmup: 3 },
  method: { name: "grpo", options: { kl_coef: 0.01 } },
  eval: { every: shape.evaluationEvery, problems: 4, samples: 8 },
  checkpoint: { every: shape.checkpointEvery },
  engine: { name: "onnx", workers: 1, threads: 1 },
};

/** Makes a policy of 100k parameters that is right now and then, so that every batch has signal. */
export async function makePolicy(folder: string): Promise<void> {
  const task = successor();
  const examples = task.problems("train", 12, 0).map(({ prompt, reference }) => ({
    context: tokenizer.render(prompt, { addGenerationPrompt: true }),
    response: withEnd(tokenizer, String(reference.answer)),
  }));
  const engine = await startOnnx({ engine: { threads: 1, activations: "keep" }, workers: 1 });
  try {
    const config = policyConfig("100k", tokenizer, 32);
    await engine.weights.load({ role: "policy", source: { from: "config", config, seed: 1 }, trainable: true });
    await sft(engine, { batch: () => examples, steps: 12, schedule: { kind: "constant", rate: 1e-3, warmup: 0 } });
    await engine.weights.save({ role: "policy" }, folder);
    await saveAlphabet(tokenizer, folder);
  } finally {
    await engine.close();
  }
}

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly err: string;
}

/** One process of `touchstone train`. */
export class Trainer {
  readonly started = performance.now();
  readonly ended: Promise<Ended>;
  private readonly child: ChildProcess;
  private running = true;

  /** Begins a run in the folder, or resumes the one that is there. */
  constructor(
    readonly folder: string,
    model: string,
    changes: { readonly [name: string]: Json } = {},
  ) {
    const resumes = nodeFiles.size(runPaths(folder).run) !== undefined;
    const options = Object.entries({ ...settings, ...changes }).flatMap(([name, value]) => ["--set", `${name}=${JSON.stringify(value)}`]);
    const args = resumes ? ["--resume", folder] : ["--model", model, "--out", folder, ...options];
    this.child = spawn(process.execPath, ["--import", "tsx", "src/cli/main.ts", "train", ...args, "--json"], {
      cwd: repository,
      stdio: ["ignore", "ignore", "pipe"],
    });
    let err = "";
    this.child.stderr?.on("data", (piece) => (err += piece));
    this.ended = new Promise((resolve, reject) => {
      this.child.once("error", reject);
      this.child.once("close", (code, signal) => {
        this.running = false;
        resolve({ code, signal, err });
      });
      this.child.once("exit", () => (this.running = false));
    });
  }

  get alive(): boolean {
    return this.running;
  }

  /** Resolves once the run has come so far, or the process has ended. */
  async reaches(aim: Aim): Promise<void> {
    while (this.running && orderOf(whereIs(this.folder)) < orderOf(aim)) await sleep(1);
  }

  /** kill -9 now; resolves with whether it was this that ended the process. */
  async kill(): Promise<boolean> {
    this.child.kill("SIGKILL");
    return (await this.ended).signal === "SIGKILL";
  }

  /** kill -9 of its engine process; false when there was none. */
  killEngine(): boolean {
    const engine = childrenOf(this.child.pid as number).find(({ command }) => command.includes("onnx/process."));
    if (engine === undefined) return false;
    try {
      return process.kill(engine.pid, "SIGKILL");
    } catch {
      return false; // It has ended by itself.
    }
  }
}

function childrenOf(parent: number): { readonly pid: number; readonly command: string }[] {
  return execFileSync("ps", ["-A", "-o", "pid=,ppid=,args="], { encoding: "utf8", maxBuffer: 1 << 26 })
    .split("\n")
    .flatMap((line) => {
      const [, pid, ppid, command] = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? [];
      return Number(ppid) === parent ? [{ pid: Number(pid), command }] : [];
    });
}

export const phases = ["start", "step", "evaluation", "checkpoint", "end"] as const;

/** A place in a run: `start` is all before the checkpoint of step 0 is written, `step` sampling and updates, `end` what comes after the last checkpoint. */
export interface Aim {
  readonly phase: (typeof phases)[number];
  readonly step: number;
}

/** Places in the order in which a run comes to them. */
const orderOf = ({ phase, step }: Aim): number => 10 * step + phases.indexOf(phase);

const evaluated = (step: number): boolean => step % shape.evaluationEvery === 0;
const kept = (step: number): boolean => step % shape.checkpointEvery === 0;

/** Where a run stands, or was killed, by its folder. */
export function whereIs(folder: string): Aim {
  const paths = runPaths(folder);
  let last: { kind: string; step: number } = { kind: "start", step: 0 };
  for (const { text } of linesOf(nodeFiles, paths.events)) last = JSON.parse(text) as typeof last;
  const { kind, step } = last;
  const names = nodeFiles.list(paths.checkpoints);
  const beside = names.find((name) => name.startsWith(".new-"));
  if (beside !== undefined) return { phase: "checkpoint", step: Number(beside.slice(5)) };
  if (kind === "end") return { phase: "end", step };
  const isKept = Number(names.filter((name) => /^\d+$/.test(name)).at(-1) ?? -1) >= step;
  if (isKept) return step === shape.steps ? { phase: "end", step } : { phase: "step", step: step + 1 };
  if (kind === "start") return { phase: "start", step: 0 };
  if (evaluated(step) && kind === "step") return { phase: "evaluation", step };
  return kept(step) ? { phase: "checkpoint", step } : { phase: "step", step: step + 1 };
}

/** All of a finished run that must be equal: every file without clocks, and run.json without its place. */
export function bytesOf(folder: string): { [path: string]: string } {
  const run = withoutClock(JSON.parse(readFileSync(runPaths(folder).run, "utf8")) as { config: { [name: string]: Json }; clock: Json });
  const { out: _, ...config } = run.config;
  return { ...snapshot(folder), "run.json": canonicalJson({ ...run, config } as unknown as Json) };
}

/** Paths of what differs between two runs, or is in one of them alone. */
export function differing(is: { readonly [path: string]: string }, expected: { readonly [path: string]: string }): string[] {
  return [...new Set([...Object.keys(expected), ...Object.keys(is)])].filter((path) => is[path] !== expected[path]).sort();
}

/** SHA-256 of final weights and optimizer state, as a reader may compare them. */
export function finalHashes(bytes: { readonly [path: string]: string }): { readonly weights: string; readonly optimizer: string } {
  const last = `checkpoints/${String(shape.steps).padStart(8, "0")}`;
  const hash = (path: string) => sha256(Buffer.from(bytes[path], "hex")).slice(0, 16);
  return { weights: hash(`${last}/policy/model.safetensors`), optimizer: hash(`${last}/optimizer.safetensors`) };
}

/** A uniform number in [0, 1) by what it is for. */
export const keyed = (purpose: string, n: number): number => uniform(randomKey({ seed: 20, purpose, member: n }), 0);

/** Runs to the end; throws when it does not come there. Resolves with its milliseconds. */
export async function finish(folder: string, model: string, changes: { readonly [name: string]: Json } = {}): Promise<number> {
  const trainer = new Trainer(folder, model, changes);
  const { code, err } = await trainer.ended;
  if (code !== 0) throw new Error(`touchstone train ended with ${code}: ${err}`);
  return performance.now() - trainer.started;
}
