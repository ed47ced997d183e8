/**
 * VIGOR: more answers to the problems whose rewards vary most (P52).
 *
 *     round 1 .. T over the active problems A, which in round 1 are the batch:
 *       draw m answers to each of A, into its pool;   u_x = Var(rewards of the pool of x)
 *       A <- the share alpha of A with the largest u;   m <- gamma m
 *     GRPO on each problem's pool, ragged as they are                        (the paper, as a third party tells it, and its defaults)
 *
 * With alpha gamma = 1 a batch of B problems takes B m0 T answers, B m0 a round. Our choice: ties are broken by a random key
 * of step, problem and round; alpha |A| and gamma m are rounded down, so that the budget is never exceeded; the variance has
 * divisor n and is that of the scored answers' rewards, before anything is added to them. A round is decided when all of
 * its answers are in. Answers that are drawn are trained on, so none is booked as discarded but those of whole groups that
 * another method leaves out. The paper averages over tokens, where large pools weigh more, as they do in GRPO's own average;
 * which average it is, is left to the run. theory.ts has what is proved of it.
 */
import { z } from "zod";
import type { Problem } from "../../core/problem.js";
import { uniform } from "../../core/random.js";
import { type Group, type Trajectory, trained } from "../../core/trajectory.js";
import { rewardOf } from "../../core/verdict.js";
import { meanOf } from "../advantages.js";
import { groupOf } from "../base.js";
import type { Method, MethodModule, OneSlots, Step } from "../contract.js";
import { training } from "../needs.js";

export { eta, gradientBound, type SpeedUp, speedUp } from "./theory.js";

export const vigorOptions = z.strictObject({
  m0: z.int().min(2).default(2).describe("Answers to each problem in the first round; the run's group is not read."),
  rounds: z.int().min(1).default(4).describe("Rounds of a step (T); 1: GRPO with groups of m0."),
  alpha: z.number().gt(0).max(1).default(0.5).describe("Share of the problems that goes on to the next round."),
  gamma: z.number().min(1).default(2).describe("Factor by which the answers to a problem grow from round to round."),
  by: z
    .enum(["variance", "success", "random"])
    .default("variance")
    .describe("Which problems go on: those whose rewards vary most; for comparison those with the lowest mean reward, or any."),
  equal_prompts: z
    .boolean()
    .default(false)
    .describe("Divide a problem's weight by its number of answers, so that all problems of a batch weigh alike; else large pools weigh more."),
});
export type VigorOptions = z.output<typeof vigorOptions>;

/** Rewards of a pool's scored answers. */
const rewardsOf = (pool: readonly Trajectory[]): number[] => pool.flatMap(({ purpose, verdict }) => (purpose === "train" ? (rewardOf(verdict) ?? []) : []));

/** Variance of rewards, with divisor n; 0 of fewer than two. */
export function variance(rewards: readonly number[]): number {
  if (rewards.length < 2) return 0;
  const mean = meanOf(rewards);
  return meanOf(rewards.map((r) => (r - mean) ** 2));
}

/** Answers that a batch of so many problems takes, a round. */
export function roundsOf(problems: number, { m0, rounds, alpha, gamma }: Pick<VigorOptions, "m0" | "rounds" | "alpha" | "gamma">): number[] {
  const sizes: number[] = [];
  for (let [round, active, m] = [0, problems, m0]; round < rounds; round++) {
    sizes.push(active * m);
    [active, m] = [keptOf(active, alpha), grown(m, gamma)];
  }
  return sizes;
}

// A product such as 0.29 x 100 lies a little below the whole number that is meant.
const keptOf = (active: number, alpha: number): number => Math.floor(alpha * active + 1e-9);
const grown = (m: number, gamma: number): number => Math.floor(gamma * m + 1e-9);

/** What problems are ordered by, the largest first: two scores that differ by rounding alone are equal. */
function scoreOf(pool: readonly Trajectory[], by: VigorOptions["by"]): number {
  const rewards = rewardsOf(pool);
  const score = { variance: () => variance(rewards), success: () => (rewards.length === 0 ? 0 : -meanOf(rewards)), random: () => 0 }[by]();
  return Number(score.toPrecision(12));
}

/** Allocation in rounds. Groups come in the order of proposal. */
export function variedRounds({ m0, rounds, alpha, gamma, by }: VigorOptions): OneSlots["allocate"] {
  return {
    appends: true,
    once: true,
    async *run(step) {
      const problems = await step.propose(step.settings.problems);
      const pools = new Map<Problem, Trajectory[]>(problems.map((problem) => [problem, []]));
      let active = problems;
      for (let [round, m, from] = [1, m0, 0]; round <= rounds && active.length > 0; [round, m, from] = [round + 1, grown(m, gamma), from + m]) {
        await Promise.all(
          active.map(async (problem) => {
            for await (const trajectory of step.expand(problem, m, from)) pools.get(problem)?.push(trajectory);
          }),
        );
        // Answers arrive in any order, and sums of rewards round by theirs.
        for (const problem of active) pools.get(problem)?.sort((a, b) => a.member - b.member || a.turn - b.turn);
        if (round < rounds) active = chosen(active, pools, round, { alpha, by, step });
      }
      yield* problems.map((problem) => groupOf(step.step, problem, pools.get(problem) as Trajectory[]));
    },
  };
}

interface Choosing extends Pick<VigorOptions, "alpha" | "by"> {
  readonly step: Pick<Step, "step" | "key">;
}

/** The problems that go on, whatever their order: by score, then by a random number of their own. */
function chosen(active: readonly Problem[], pools: ReadonlyMap<Problem, readonly Trajectory[]>, round: number, { alpha, by, step }: Choosing): Problem[] {
  const scored = active.map((problem, place) => ({
    problem,
    place,
    score: scoreOf(pools.get(problem) as readonly Trajectory[], by),
    tie: uniform(step.key({ purpose: "vigor/tie", step: step.step, problem: problem.key }), round),
  }));
  return scored
    .sort((a, b) => b.score - a.score || a.tie - b.tie)
    .slice(0, keptOf(active.length, alpha))
    .sort((a, b) => a.place - b.place)
    .map(({ problem }) => problem);
}

/** Groups whose weights make all problems of a kind weigh alike: the mean number of scored answers over the group's own. */
function weighedAlike(groups: readonly Group[]): Group[] {
  const sizes = groups.map((group) => rewardsOf(trained(group)).length);
  return groups.map((group, i) => {
    const own = sizes[i] as number;
    const mean = meanOf(sizes.filter((size, j) => size > 0 && groups[j]?.kind === group.kind));
    return own === 0 ? group : { ...group, weight: (group.weight * mean) / own };
  });
}

export const vigor: MethodModule<VigorOptions, null> = {
  name: "vigor",
  paper: "P52 VIGOR",
  options: vigorOptions,
  initial: null,
  make(options): Method {
    const { m0, rounds, alpha, gamma, by, equal_prompts } = options;
    const kept = { variance: "whose rewards vary most", success: "with the lowest mean reward", random: "at random" }[by];
    return {
      name: "vigor",
      needs: [training],
      references: "judged",
      slots: {
        allocate: {
          owns: variedRounds(options),
          about: rounds === 1 ? `${m0} answers a problem` : `${rounds} rounds from ${m0} answers on, ${gamma} times as many for the ${alpha} ${kept}`,
        },
        ...(equal_prompts ? { enrich: { late: true, about: "problems weigh alike", run: async (groups) => weighedAlike(groups) } } : {}),
        observe: {
          run: ({ batch }): { readonly [name: string]: number } => {
            const pools = batch.groups.map((group) => rewardsOf(trained(group)));
            const sizes = pools.map(({ length }) => length);
            const answers = sizes.reduce((a, b) => a + b, 0);
            if (answers === 0) return {};
            const variances = pools.map(variance);
            return {
              "vigor.largest": Math.max(...sizes),
              "vigor.variance": meanOf(variances),
              "vigor.variance_answers": variances.reduce((sum, u, i) => sum + u * (sizes[i] as number), 0) / answers,
            };
          },
        },
      },
    };
  },
};
