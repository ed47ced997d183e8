import { judge, type Verifier } from "../verify/contract.js";
import type { Ask } from "./evaluate.js";
import { byProblem, type EvaluatedSample, type JudgedSample, voted } from "./samples.js";
import type { SampleStore } from "./store.js";

/** The samples of a store as another verifier judges them, without sampling again. */
export async function rejudged({ problems, samples }: SampleStore, verifier: Verifier, ask?: Ask): Promise<EvaluatedSample[]> {
  const call: Ask = ask ?? ((problem, response, truncated) => judge(verifier, problem, response, truncated));
  const byKey = new Map(problems.map((problem) => [problem.key, problem]));
  const judged: JudgedSample[] = [];
  for (const sample of samples) {
    const verdict = await call(byKey.get(sample.problem)!, sample.text, sample.stop === "length");
    judged.push({ ...sample, verdict });
  }
  return [...byProblem(judged).values()].flatMap((group) => voted(group, verifier));
}
