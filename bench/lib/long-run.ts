/** Runs of any length without a model, by the store that training writes with: rollouts, token columns and events of the sizes that starters/chain-1M has. */
import { plainContext } from "../../src/core/problem.js";
import type { Group, Trajectory } from "../../src/core/trajectory.js";
import { accept, reject, type Verdict } from "../../src/core/verdict.js";
import { type Files, nodeFiles } from "../../src/train/store/files.js";
import { RunStore } from "../../src/train/store/store.js";

export interface LongRunShape {
  readonly steps: number;
  readonly groups: number;
  readonly members: number;
}

const tokens = 30;
/** Flushing is what would take the time, and a bench has nothing to lose. */
const quickFiles: Files = { ...nodeFiles, sync: () => {}, syncFile: () => {}, syncFolder: () => {} };
const conditions = { context: "plain", weights: "policy@0", temperature: 1 };
const ones = new Uint8Array(tokens).fill(1);
const columnOf = (of: (t: number) => number): Float64Array => Float64Array.from({ length: tokens }, (_, t) => of(t));
const old = columnOf((t) => -0.1 - 0.01 * t);
const entropy = columnOf((t) => 0.2 + 0.01 * t);
const weight = columnOf(() => 1 / 4096);
const response = Int32Array.from({ length: tokens }, (_, t) => 3 + (t % 20));
const context = plainContext([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);

function memberOf(problem: string, step: number, member: number, right: boolean): Trajectory {
  const key = `${step}:${problem}/${member}`;
  const last = (7 * step + member) % 11;
  const verdict: Verdict = right
    ? accept({ evidence: { read: "6" }, parts: { lines: 1 } })
    : reject("wrong", { evidence: { first_wrong_line: 2, read: String(last) }, parts: { lines: 0.83 } });
  return {
    key,
    problem,
    member,
    episode: key,
    turn: 0,
    role: "policy",
    purpose: "train",
    sampledUnder: context,
    trainedUnder: context,
    response,
    text: `+3=10\n*3=${last}\n-7=${(last + 4) % 11}\n+1=${(last + 5) % 11}\n-0=7\n#${right ? 6 : last}`,
    sampled: ones,
    reward: ones,
    loss: ones,
    behaviour: { values: old, conditions },
    old: { values: old, conditions },
    entropy,
    spans: [],
    stop: member % 50 === 49 ? "length" : "eos",
    policyVersion: step - 1,
    random: [step, member, 680_564_015, 3_136_890_644],
    verdict,
  };
}

function groupOf({ steps, members }: LongRunShape, step: number, index: number): Group {
  const problem = `${(step * 7919 + index * 104_729).toString(16).padStart(20, "0")}`;
  const rate = 0.2 + (0.6 * step) / steps;
  const right = (member: number): boolean => ((step * 31 + index * 17 + member * 13) % 100) / 100 < rate;
  return {
    key: `${step}:${problem}`,
    problem: {
      key: problem,
      prompt: [{ role: "user", content: `${step % 10}+3*3-7+${index % 10}-0+4` }],
      reference: { state: "gold", answer: "6", version: 0 },
      tags: { operations: 3 + (index % 4) },
    },
    kind: "main",
    weight: 1,
    trajectories: Array.from({ length: members }, (_, m) => memberOf(problem, step, m, right(m))),
  };
}

/** Names of the numbers that a step of GRPO logs. */
const metricNames =
  `clip_dual clip_high clip_low entropy gap_kl gap_max gap_mean grad_clipped grad_norm groups groups.equal groups.one_scored groups.unscored groups_silent
  kl_k1 kl_k3 loss lr prefill_tokens ratio ratio_clamped ratio_max reward_max reward_min rows rows_trained sampled_tokens tokens_max tokens_mean trained_tokens truncated unscored updates`.split(
    /\s+/,
  );

/** A run that grows by a step at each `write`. */
export function longRun(folder: string, shape: LongRunShape) {
  const config = { steps: shape.steps, seed: 0, method: "grpo", model: "none", task: "generated", problems: shape.groups, group: shape.members, lr: 1e-4 };
  const meta = { config, method: [{ slot: "credit", from: "grpo" }], fingerprint: { processor: "bench", threads: 1 }, versions: {}, data: "none" };
  const store = RunStore.create(folder, meta, { files: quickFiles });
  store.appendEvent({ step: 0, kind: "start", data: {} });
  const writeRollouts = (step: number): void => {
    const groups = Array.from({ length: shape.groups }, (_, index) => groupOf(shape, step, index));
    store.appendRollouts(step, groups, ({ verdict }) => {
      const reward = verdict.kind === "accept" ? 1 : 0;
      const coefficient = columnOf(() => reward - 0.5);
      return { numbers: { reward, advantage: reward - 0.5 }, columns: { coefficient, weight, logp: old } };
    });
  };
  const writeEvent = (step: number): void => {
    const noise = (i: number): number => 0.5 + 0.5 * Math.sin(step * (1 + i / 7) + i);
    const metrics: { [name: string]: number } = Object.fromEntries(metricNames.map((name, i) => [name, noise(i)]));
    metrics.reward = 0.2 + (0.6 * step) / shape.steps + 0.05 * noise(1);
    const accepted = Math.round(metrics.reward * shape.groups * shape.members);
    const rejected = shape.groups * shape.members - accepted;
    const verdicts = { accept: accepted, reject: rejected, partial: 0, unscored: 0, reasons: { wrong: rejected } };
    store.appendEvent({ step, kind: "step", data: { metrics, verdicts }, clock: { ms: 900, sample_ms: 400, train_ms: 450, idle: 0.1, sampled_per_s: 9000 } });
  };
  return {
    /** `rollouts` false: the step's numbers alone. */
    write(step: number, rollouts = true): void {
      if (rollouts) writeRollouts(step);
      writeEvent(step);
    },
    end(): void {
      store.appendEvent({ step: shape.steps, kind: "end", data: { reason: "done", message: `${shape.steps} steps are done` } });
      store.close();
    },
  };
}
