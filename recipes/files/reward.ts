/** 1 for the right answer, 0 for a wrong one, and -0.5 where there is none to be found. */
import type { RewardProblem } from "touchstone-rl";

export default function reward(problem: RewardProblem, response: string): number {
  const answer = /\n#(\d+)$/.exec(response)?.[1];
  if (answer === undefined) return -0.5;
  return answer === problem.reference ? 1 : 0;
}
