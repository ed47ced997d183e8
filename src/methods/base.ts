/** GRPO's answers to the slots of rollout and reward: a fixed number of answers a problem, one plain answer at a time, the verdict's number. */
import type { Problem } from "../core/problem.js";
import type { Group, Trajectory } from "../core/trajectory.js";
import { rewardOf } from "../core/verdict.js";
import type { OneSlots, Rewards, Step } from "./contract.js";
import { rowsOf } from "./credit.js";

/** A group from a problem and its answers, members in order. The key is unique in the run as long as a step takes a problem once. */
export function groupOf(step: number, problem: Problem, trajectories: readonly Trajectory[]): Group {
  return {
    key: `${step}:${problem.key}`,
    problem,
    kind: "main",
    weight: 1,
    trajectories: [...trajectories].sort((a, b) => a.member - b.member || a.turn - b.turn),
  };
}

/** One group for each of `settings.problems` problems, `settings.group` answers each, all drawn at once; groups come in the order of proposal. */
export const fixedGroups: OneSlots["allocate"] = {
  appends: false,
  once: true,
  async *run(step) {
    yield* await drawGroups(step, await step.propose(step.settings.problems));
  },
};

/** A group of `settings.group` answers for each problem, all drawn at once; in the order of the problems. */
export function drawGroups(step: Step, problems: readonly Problem[]): Promise<Group[]> {
  return Promise.all(
    problems.map(async (problem) => {
      const trajectories: Trajectory[] = [];
      for await (const trajectory of step.expand(problem, step.settings.group)) trajectories.push(trajectory);
      return groupOf(step.step, problem, trajectories);
    }),
  );
}

/** One answer a member, in one turn. */
export const plainAnswers: OneSlots["expand"] = {
  appendable: true,
  async *run(problem, n, step, from) {
    const requests = await Promise.all(Array.from({ length: n }, (_, i) => step.request(problem, from + i)));
    yield* step.draw(requests);
  },
};

/** Accept 1, reject 0, partial its score, unless the verdict has a reward of its own; unscored no number. */
export function verdictReward(batch: Parameters<OneSlots["reward"]>[0]): Rewards {
  return { values: rowsOf(batch).map((row) => rewardOf(row.verdict)) };
}
