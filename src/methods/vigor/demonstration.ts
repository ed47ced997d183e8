/**
 * What is claimed for VIGOR, on chains whose difficulty has a long tail: half of them need no product, and each further
 * product, which the policy nearly always works as a sum, is half as frequent. So half of the problems vary hardly at all
 * from the start. Every arm draws 128 answers a step.
 */
import { trained as membersOf } from "../../core/trajectory.js";
import { defineDemonstration, type TrainedRun } from "../demonstration.js";
import { vigor } from "./vigor.js";

const task = {
  name: "chain",
  options: {
    modulus: 7,
    min_operations: 4,
    max_operations: 6,
    counts: { operation: "*", weights: [16, 8, 4, 2, 1] },
    habit: { operation: "*", as: "+", rate: 0.85 },
    strict: true,
  },
};

const target = 0.85;

/** Answers drawn until two evaluations in a row average the target, interpolated; all of the run's where they never do. */
function rolloutsToTarget(run: TrainedRun): number | undefined {
  const rows = run.series("rows");
  const until = (step: number): number => rows.reduce((sum, row) => sum + (row.step <= step ? row.value : 0), 0);
  const smooth = run.evaluations.slice(1).map(({ step, value }, i) => {
    const before = run.evaluations[i] as { readonly step: number; readonly value: number };
    return { step: (before.step + step) / 2, value: (before.value + value) / 2 };
  });
  const at = smooth.findIndex(({ value }) => value >= target);
  if (at < 0) return rows.length === 0 ? undefined : until(run.steps);
  const [before, here] = [smooth[at - 1], smooth[at]] as [(typeof smooth)[number] | undefined, (typeof smooth)[number]];
  const share = before ? (target - before.value) / (here.value - before.value) : 1;
  const step = before ? before.step + share * (here.step - before.step) : here.step;
  const whole = Math.floor(step);
  return until(whole) + (step - whole) * (until(whole + 1) - until(whole));
}

/** Mean over a run's steps from one to another of a number of its groups. */
async function overSteps(
  run: TrainedRun,
  [from, to]: readonly [number, number],
  of: (groups: Awaited<ReturnType<TrainedRun["groups"]>>) => number,
): Promise<number> {
  let sum = 0;
  for (let step = from; step <= to; step++) sum += of(await run.groups(step));
  return sum / (to - from + 1);
}

/** Mean number of products of a problem, each problem as often as it has answers. */
const difficulty = (groups: Awaited<ReturnType<TrainedRun["groups"]>>): number => {
  const answers = groups.flatMap(({ group }) => membersOf(group).map(() => Number(group.problem.tags?.difficulty ?? 0)));
  return answers.reduce((a, b) => a + b, 0) / answers.length;
};

/** Share of the answers that are in groups whose verdicts are all equal. */
const withoutSignal = (groups: Awaited<ReturnType<TrainedRun["groups"]>>): number => {
  const sizes = groups.map(({ group }) => {
    const kinds = membersOf(group).map(({ verdict }) => verdict.kind);
    return { all: kinds.length, silent: new Set(kinds).size < 2 ? kinds.length : 0 };
  });
  return sizes.reduce((sum, { silent }) => sum + silent, 0) / sizes.reduce((sum, { all }) => sum + all, 0);
};

const thirdOf = (run: TrainedRun): number => Math.max(1, Math.floor(run.steps / 3));
const base = { name: "grpo", options: { aggregation: "token-mean" } };
const allocated = (by: string) => ({ method: [base, { module: vigor, options: { by } }] });

export default defineDemonstration({
  paper: vigor.paper,
  method: "vigor",
  testbed:
    "Chains of four to six operations modulo 7, every line to be right, half of them without a product and each further one half as frequent; a policy of 0.1M parameters that works 85 % of products as sums. 128 answers to 16 problems a step, 120 steps, averages over tokens.",
  shared: {
    task,
    steps: 120,
    problems: 16,
    group: 8,
    minibatches: 2,
    lr: 3e-4,
    eval: { every: 5, problems: 300, temperature: 1 },
  },
  prepare: {
    per: "demonstration",
    run: async (bench) => ({ model: await bench.warmStart({ task, from: "starters/chain-100k", steps: 300, lr: 1e-3 }) }),
  },
  arms: {
    grpo: { about: "eight answers to each problem", method: [base] },
    vigor: allocated("variance"),
    random: { about: "the same rounds, problems that go on chosen at random", ...allocated("random") },
    "by success": { about: "the same rounds, the hardest problems go on", ...allocated("success") },
  },
  metrics: {
    "rollouts to target": { about: `until ${100 * target} % of held-out answers are right, or all`, kind: "own", run: rolloutsToTarget },
    "answers without signal": {
      about: "share of the answers in groups whose verdicts are equal",
      kind: "own",
      run: (run) => overSteps(run, [1, run.steps], withoutSignal),
    },
    "difficulty, first third": { about: "products a problem, weighted by answers", kind: "own", run: (run) => overSteps(run, [1, thirdOf(run)], difficulty) },
    "difficulty, last third": {
      about: "products a problem, weighted by answers",
      kind: "own",
      run: (run) => overSteps(run, [run.steps - thirdOf(run) + 1, run.steps], difficulty),
    },
    accuracy: { about: "after all steps", kind: "avg", problems: 500, temperature: 1 },
    area: { about: "mean held-out score while it trained", kind: "area" },
  },
  claims: {
    "at most 0.8 of GRPO's rollouts to the target": { kind: "atMostRatio", ratio: 0.8, metric: "rollouts to target", arm: "vigor", than: "grpo" },
    "random reallocation needs more than 0.8 of them": { kind: "atLeastRatio", ratio: 0.8, metric: "rollouts to target", arm: "random", than: "grpo" },
    "fewer rollouts than by random reallocation": { kind: "below", metric: "rollouts to target", arm: "vigor", than: "random" },
    "answers move to harder problems while it learns": {
      kind: "above",
      of: ({ vigor: own, grpo: even }) => {
        const rise = (of: typeof own): number | undefined =>
          of?.["difficulty, last third"] === undefined || of["difficulty, first third"] === undefined
            ? undefined
            : of["difficulty, last third"] - of["difficulty, first third"];
        const [with_, without] = [rise(own), rise(even)];
        return with_ === undefined || without === undefined ? undefined : with_ - without;
      },
      than: 0,
    },
    "fewer answers without signal": { kind: "below", metric: "answers without signal", arm: "vigor", than: "grpo" },
  },
  sabotage: {
    about: "the variances are ignored: any problem goes on",
    stands: "vigor",
    arm: allocated("random"),
    unshown: ["at most 0.8 of GRPO's rollouts to the target"],
  },
  quick: { options: { steps: 3, problems: 8, eval: { every: 3, problems: 20, temperature: 1 } }, heldout: { problems: 20 }, seeds: 1 },
  minutes: 15,
  differences: ["Difficulty is the number of products of a chain; the paper's variances are those of its own problems."],
});
