/**
 * The family on T-CHAIN modulo 7 with the starter of 0.1M parameters: every member on three seeds, each beside controls whose
 * rewards are permuted over the whole batch (a teacher equal to the starter for distillation), and what the critic explains.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { measure } from "../../src/cli/measure.js";
import { posedProblems } from "../../src/cli/problems.js";
import { chain } from "../../src/tasks/chain/chain.js";
import { type TrainOptions, train } from "../../src/train/train.js";
import { repository } from "../../test/paths.js";
import type { Metric, Proof } from "../record.js";
import { permuted } from "./permuted.js";

export const starter = join(repository, "starters", "chain-100k");
const modulus = 7;
const heldOut = 1000;
const seeds = [0, 1, 2];
const controlSeeds = [0, 1, 2, 3, 4];

/** What a member changes in the run that all share. */
type Member = Pick<TrainOptions, "method" | "roles" | "max_tokens">;

/** Those of docs/starters.md's main job, at the size of this policy. */
const shared = { model: starter, steps: 150, problems: 16, group: 8, minibatches: 4, lr: 3e-4, schedule: { kind: "linear", warmup: 16 } } as const;
const critic = { roles: { critic: { lr: 1e-3 } } } as const;

export const members: { readonly [name: string]: Member } = {
  grpo: { method: "grpo" },
  reinforce: { method: { name: "reinforce", options: { baseline: "batch" } } },
  rloo: { method: "rloo" },
  "dr-grpo": { method: "dr-grpo" },
  // The task's budget is as long as its longest right answer, so the punishment of DAPO's last fifth takes all that a right answer to six
  // operations earns: a policy then leaves lines out (41 of 250 of them right, 745 of the other 750). A fifth of 48 begins beyond the longest.
  dapo: { method: "dapo", max_tokens: 48 },
  gspo: { method: "gspo" },
  "gspo, token form": { method: { name: "gspo", options: { token: true } } },
  cispo: { method: "cispo" },
  "reinforce-pp": { method: "reinforce-pp" },
  "reinforce-pp, baseline form": { method: { name: "reinforce-pp", options: { baseline: "group" } } },
  gpg: { method: "gpg" },
  sapo: { method: "sapo" },
  gmpo: { method: "gmpo" },
  ppo: { method: { name: "ppo", options: { lambda: 1 } }, ...critic },
};

async function within<T>(act: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "touchstone-family-"));
  try {
    return await act(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Part of right answers at temperature 1, of 1,000 held-out problems. */
async function rightAnswers(model: string): Promise<number> {
  const posed = await posedProblems({ task: "chain", taskOptions: { modulus }, nProblems: heldOut }, 0, heldOut);
  const { evaluation } = await measure({ model, posed, flags: { n: 1, seed: 0 }, k: [1], silent: true });
  return evaluation.metrics.estimates.find(({ name }) => name === "avg")?.value as number;
}

/** Trains in a folder; the policy's folder, and the metrics of each step. */
async function trained(out: string, options: Partial<TrainOptions>): Promise<{ model: string; metrics: { readonly [name: string]: number }[] }> {
  const metrics: { readonly [name: string]: number }[] = [];
  const { model } = await train({
    ...shared,
    task: chain({ modulus }),
    checkpoint: { every: 0 },
    out,
    ...options,
    onProgress: (progress) => {
      if (progress.kind === "step") metrics.push(progress.metrics);
    },
  });
  return { model, metrics };
}

const after = (options: Partial<TrainOptions>): Promise<number> => within(async (folder) => rightAnswers((await trained(join(folder, "run"), options)).model));

const asList = (method: TrainOptions["method"]) => (Array.isArray(method) ? method : [method ?? "grpo"]);
const controlled = (member: Member, seed: number): Partial<TrainOptions> => ({
  ...member,
  seed,
  method: [...asList(member.method), { name: "permuted", options: { over: "batch" } }] as TrainOptions["method"],
  methods: [permuted],
});

interface Outcome {
  readonly after: number[];
  readonly controls: number[];
}

/** Distillation from a policy that GRPO made; the controls' teacher is the starter. */
const distilled = (): Promise<Outcome> =>
  within(async (folder) => {
    const teacher = (await trained(join(folder, "teacher"), { seed: 100 })).model;
    const run = (model: string, seed: number) => after({ method: "opd", roles: { teacher: { model } }, seed });
    const outcome = { after: [] as number[], controls: [] as number[] };
    for (const seed of seeds) outcome.after.push(await run(teacher, seed));
    for (const seed of controlSeeds) outcome.controls.push(await run(starter, seed));
    return outcome;
  });

const last = (values: readonly (number | undefined)[], n: number): number => values.slice(-n).reduce<number>((sum, x) => sum + (x ?? 0) / n, 0);

/** Mean explained variance of the last ten of 150 value steps on the frozen starter. */
const explained = (steps: number): Promise<number> =>
  within(async (folder) => {
    const { metrics } = await trained(join(folder, "run"), { method: { name: "ppo", options: { policy: "frozen" } }, ...critic, steps });
    return last(
      metrics.map(({ value_explained }) => value_explained),
      10,
    );
  });

const mean = (values: readonly number[]): number => values.reduce((sum, x) => sum + x, 0) / values.length;

const names = [...Object.keys(members), "opd"];

export default {
  claim:
    "Every member of the family takes a starter of 0.1M parameters from 25 to 45 % right to at least 85 % of 1,000 held-out problems on three of three seeds, " +
    "its control with rewards permuted over the batch ends not above the start (mean of five seeds), and the critic explains returns.",
  limits: {
    members: { equals: names.length },
    seeds: { equals: seeds.length },
    control_seeds: { equals: controlSeeds.length },
    before: { atLeast: 0.25, atMost: 0.45 },
    critic_explained: { atLeast: 0.05 },
    ...Object.fromEntries(names.flatMap((name) => [[`${name}: least after`, { atLeast: 0.85 }] as const, [`${name}: control's rise`, { atMost: 0 }] as const])),
  },

  async run(work) {
    const before = await work.part("before", () => rightAnswers(starter));
    const metrics: { [metric: string]: Metric } = { members: names.length, seeds: seeds.length, control_seeds: controlSeeds.length, before };
    metrics.critic_explained = await work.part("critic, 150 value steps", () => explained(150));
    const outcomes = new Map(Object.keys(members).map((name) => [name, { after: [] as number[], controls: [] as number[] }]));
    // All members on one seed before any on the next, so that what an interrupted run has found is about all of them.
    for (const seed of controlSeeds) {
      for (const [name, member] of Object.entries(members)) {
        const outcome = outcomes.get(name) as { after: number[]; controls: number[] };
        const what = `${name}, ${JSON.stringify(member)}`;
        if (seeds.includes(seed)) outcome.after.push(await work.part(`${what}, seed ${seed}`, () => after({ ...member, seed })));
        outcome.controls.push(await work.part(`${what}, control ${seed}`, () => after(controlled(member, seed))));
      }
    }
    for (const [name, outcome] of outcomes) record(name, outcome);
    record("opd", (await work.part("opd, teacher and starter as teachers", async () => ({ ...(await distilled()) }))) as Outcome);
    return metrics;

    function record(name: string, outcome: Outcome): void {
      metrics[`${name}: least after`] = Math.min(...outcome.after);
      metrics[`${name}: control's rise`] = mean(outcome.controls) - before;
      work.detail(name, { after: outcome.after, controls: outcome.controls });
    }
  },

  short: Object.fromEntries(
    Object.entries(members).map(([name, member]) => [
      `${name}: 25 steps rise`,
      {
        limits: { rise: { atLeast: 0.05 } },
        run: async () => ({ rise: (await after({ ...member, steps: 25, seed: 0 })) - (await rightAnswers(starter)) }),
      },
    ]),
  ),
} satisfies Proof;
