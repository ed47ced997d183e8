/**
 * What is claimed for OPD-then-RL, on chains: a teacher that is right more often than not and where the policy hardly ever is,
 * and a policy with a strong wrong habit. All arms make equally many steps from answers of their own.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { TensorValue } from "../../engine/contract.js";
import { type Bench, defineDemonstration, type TrainedRun } from "../demonstration.js";
import { signConflict, updateOf } from "./conflict.js";
import { opdThenRl } from "./opd-then-rl.js";

const task = (rate: number) => ({
  name: "chain",
  options: { modulus: 7, min_operations: 4, max_operations: 6, habit: { operation: "*", as: "+", rate }, slips: 0.02, strict: true },
});

const arm = (options: { readonly [option: string]: string | number }) => ({ method: { module: opdThenRl, options } });
const atPlateau = { switch_at: "plateau" } as const;

/** The last step of the first phase; undefined without a switch. */
function switchedAt(trained: TrainedRun): number | undefined {
  const phases = trained.series("opd-then-rl.rl");
  const first = phases.find(({ value }) => value === 1)?.step;
  return first === undefined || first === 1 ? undefined : first - 1;
}

async function tensorsOf(model: string, bench: Bench): Promise<TensorValue[]> {
  const { engine, close } = await bench.open(model);
  try {
    const { tensors } = await engine.weights.info("policy");
    return await engine.weights.read(
      { role: "policy" },
      tensors.map(({ name }) => name),
    );
  } finally {
    await close();
  }
}

export default defineDemonstration({
  paper: opdThenRl.paper,
  method: "opd-then-rl",
  testbed:
    "Chains of four to six operations modulo 7, every line to be right; a policy of 0.1M parameters that works 97 % of products as sums (about 20 % right) and a teacher that does so with 30 % (about 60 %). 140 steps.",
  shared: { task: task(0), steps: 140, problems: 16, group: 8, minibatches: 2, lr: 3e-4, eval: { every: 5, problems: 400, temperature: 1 } },
  prepare: {
    per: "demonstration",
    run: async (bench) => {
      const recipe = { from: "starters/chain-100k", lr: 1e-3 } as const;
      const model = await bench.warmStart({ task: task(0.97), steps: 600, ...recipe });
      const teacher = await bench.warmStart({ task: task(0.3), steps: 300, seed: 1, ...recipe });
      return { model, roles: { teacher: { model: teacher } } };
    },
  },
  arms: {
    rl: { method: "grpo", options: { roles: {} } },
    opd: arm({ switch_at: "never" }),
    // Each evaluation leaves a checkpoint, so that the phases can be told apart afterwards.
    "opd, then rl": { ...arm(atPlateau), options: { checkpoint: { every: 0, keep_last: 99 } } },
    "early switch": arm({ switch_at: 5 }),
    additive: arm({ mode: "additive" }),
    masked: arm({ mode: "masked" }),
    annealed: arm({ mode: "annealed", anneal_steps: 140 }),
    modulated: arm({ mode: "modulated" }),
    "sft, then rl": { about: "as many supervised steps on the teacher's answers as distillation takes", ...arm({ first: "sft", ...atPlateau }) },
  },
  metrics: {
    "pass@1": { kind: "avg", problems: 300, samples: 16, temperature: 1 },
    "pass@16": { kind: "pass", k: 16, problems: 300, samples: 16, temperature: 1 },
    "switched after step": { kind: "own", run: switchedAt },
    "distance of the teacher": { about: "reverse KL on the last steps that saw it", kind: "own", run: (trained) => trained.series("kl_teacher").at(-1)?.value },
    "conflict of the phases": {
      about: "share of parameters that the second phase moved against the first; the checkpoint of the last evaluation before the switch parts them",
      kind: "own",
      run: async (trained, bench) => {
        const at = switchedAt(trained);
        const between = trained.evaluations.filter(({ step }) => at !== undefined && step > 0 && step <= at).at(-1)?.step;
        if (between === undefined) return undefined;
        const policyAt = (step: number): string => join(trained.folder, "checkpoints", String(step).padStart(8, "0"), "policy");
        if (!existsSync(policyAt(between))) return undefined; // Only one arm keeps them all.
        const [start, middle, end] = [await tensorsOf(policyAt(0), bench), await tensorsOf(policyAt(between), bench), await tensorsOf(trained.model, bench)];
        return signConflict(updateOf(start, middle), updateOf(middle, end));
      },
    },
  },
  claims: {
    "above RL": { kind: "above", metric: "pass@1", arm: "opd, then rl", than: "rl" },
    "above distillation": { kind: "above", metric: "pass@1", arm: "opd, then rl", than: "opd" },
    "above the sum": { kind: "above", metric: "pass@1", arm: "opd, then rl", than: "additive" },
    "above the masked sum": { kind: "above", metric: "pass@1", arm: "opd, then rl", than: "masked" },
    "above the annealed sum": { kind: "above", metric: "pass@1", arm: "opd, then rl", than: "annealed" },
    "above the reweighted advantage": { kind: "above", metric: "pass@1", arm: "opd, then rl", than: "modulated" },
    "distillation raises pass@16 more than RL": { kind: "above", metric: "pass@16", arm: "opd", than: "rl" },
    "an early switch is worse": { kind: "below", metric: "pass@1", arm: "early switch", than: "opd, then rl" },
    "a start by distillation is better than one by supervision": { kind: "below", metric: "pass@1", arm: "sft, then rl", than: "opd, then rl" },
  },
  sabotage: {
    about: "the switch comes before the first step: no distillation",
    stands: "opd, then rl",
    arm: { ...arm({ switch_at: 0 }), options: { roles: {} } },
    unshown: ["above RL"],
  },
  quick: { options: { steps: 2, problems: 4, group: 4, eval: { every: 1, problems: 10, temperature: 1 } }, heldout: { problems: 10, samples: 16 }, seeds: 1 },
  minutes: 45,
  differences: ["Chains alone: answers of the pair task have three tokens, too few to tell credit by tokens from credit by answers."],
});
