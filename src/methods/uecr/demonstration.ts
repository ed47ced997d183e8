/**
 * What is claimed for UECR-GRPO, on chains: a teacher that works nine in ten rightly and errs at one operation now and then,
 * and a policy with a strong wrong habit at another. Rollouts have temperature 0.7, as the paper's.
 */
import type { Tokenizer } from "../../core/tokenizer.js";
import { chain, chainOptions, responseTokens } from "../../tasks/chain/chain.js";
import { groupAdvantages } from "../advantages.js";
import { Credit } from "../credit.js";
import { defineMethod } from "../define.js";
import { defineDemonstration, type StoredAnswers, type TrainedRun } from "../demonstration.js";
import { scoresOf, told } from "./teacher.js";
import { taskNote, uecr } from "./uecr.js";

const chains = { modulus: 7, min_operations: 4, max_operations: 6, strict: true };
const base = { std: "population", eps: 1e-6 } as const;
const unified = (more: { readonly [option: string]: string | number } = {}) => ({ method: { module: uecr, options: { kl_coef: 0, ...more } } });

/** The teacher's scores as advantages of their own, added to those of the rewards after each was normalised. */
const added = defineMethod({
  name: "added",
  make: () => ({
    signal: "beyond",
    needs: [{ for: "the teacher's log-probs", oneOf: [{ capabilities: ["score", "roles"], roles: ["teacher"] }] }],
    slots: {
      credit: {
        owns: async (batch, rewards, lab) => {
          const scores = scoresOf(batch, await told(batch, lab, "none"));
          const values = rewards.values.map((r, i) => (r === undefined ? undefined : scores[i]));
          const teacher = groupAdvantages(batch, { values }, base);
          return Credit.zero(batch).with(
            "trajectory",
            groupAdvantages(batch, rewards, base).map((a, i) => a + (teacher[i] as number)),
          );
        },
      },
    },
  }),
});

const mean = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0) / values.length;

/** Mean weight 1 + rho q of the tokens of a wrong answer's first wrong line, less that of the right lines before it; undefined of any other answer. */
function weightOfMistake({ trajectory, columns }: StoredAnswers["rollouts"][number], tokenizer: Tokenizer): number | undefined {
  const [before, after] = [columns["coefficient.credit.0.uecr"], columns.coefficient];
  const [part, { verdict }] = [taskNote.get(trajectory) ?? 0, trajectory];
  const first = verdict.kind === "reject" ? verdict.evidence?.first_wrong_line : undefined;
  if (before === undefined || after === undefined || part === 0 || typeof first !== "number") return undefined;
  const weights = responseTokens(trajectory.response, tokenizer).map(({ line }, t) => ({ line, w: 1 + ((after[t] as number) - (before[t] as number)) / part }));
  const of = (chosen: (line: number) => boolean): number[] => weights.filter(({ line }) => chosen(line)).map(({ w }) => w);
  const [wrong, right] = [of((line) => line === first - 1), of((line) => line < first - 1)];
  return wrong.length === 0 || right.length === 0 ? undefined : mean(wrong) - mean(right);
}

async function weightOfMistakes(trained: TrainedRun): Promise<number | undefined> {
  const { tokenizer } = chain(chainOptions.parse(chains));
  const found: number[] = [];
  for (let step = 1; step <= Math.min(10, trained.steps); step++)
    for (const { rollouts } of await trained.groups(step))
      for (const rollout of rollouts) found.push(...[weightOfMistake(rollout, tokenizer as Tokenizer) ?? []].flat());
  return found.length === 0 ? undefined : mean(found);
}

export default defineDemonstration({
  paper: uecr.paper,
  method: "uecr",
  testbed:
    "Chains of four to six operations modulo 7, every line to be right; a policy of 0.1M parameters that works two products in three as sums, and a teacher of the same size that works them rightly and gets one subtraction in twenty wrong, so about nine answers in ten right. Temperature 0.7, 30 steps.",
  shared: {
    model: "starters/chain-100k",
    task: { name: "chain", options: chains },
    temperature: 0.7,
    steps: 30,
    problems: 16,
    group: 8,
    minibatches: 2,
    lr: 3e-4,
  },
  prepare: {
    per: "demonstration",
    run: async (bench) => ({
      roles: {
        teacher: {
          model: await bench.warmStart({
            task: { name: "chain", options: { ...chains, habit: { operation: "-", as: "random", rate: 0.05 } } },
            from: "starters/chain-100k",
            steps: 300,
            lr: 1e-3,
            seed: 1,
          }),
        },
      },
    }),
  },
  arms: {
    grpo: { method: { name: "grpo", options: base }, options: { roles: {} } },
    added: { about: "GRPO's advantage and that of the teacher's score, each normalised, added", method: [{ name: "grpo", options: base }, { module: added }] },
    uecr: unified(),
    "entropies shuffled": { about: "the teacher's entropies stand at other tokens of the answer", ...unified({ control: "entropies" }) },
  },
  metrics: {
    "avg@12": { kind: "avg", problems: 300, samples: 12, temperature: 0.7 },
    "weight of the mistake": { about: "first wrong line less right lines before it, of wrong answers in steps 1 to 10", kind: "own", run: weightOfMistakes },
    "teacher's score": { about: "nats a token", kind: "training", metric: "uecr.score" },
  },
  claims: {
    "above GRPO": { kind: "above", metric: "avg@12", arm: "uecr", than: "grpo" },
    "above the sum of two advantages": { kind: "above", metric: "avg@12", arm: "uecr", than: "added" },
    "the first mistake weighs more than what is right": { kind: "above", metric: "weight of the mistake", arm: "uecr", than: 0 },
    "and more so than with shuffled entropies": { kind: "above", metric: "weight of the mistake", arm: "uecr", than: "entropies shuffled" },
  },
  sabotage: {
    about: "the teacher's gaps stand at other tokens of the batch, so that its scores and shares mean nothing",
    stands: "uecr",
    arm: unified({ control: "noise" }),
    unshown: ["above GRPO"],
  },
  quick: { options: { steps: 2, problems: 4, group: 4 }, heldout: { problems: 10 }, seeds: 1 },
  minutes: 12,
  differences: ["No arm has the KL to the reference, so that arms differ in their credit alone."],
});
