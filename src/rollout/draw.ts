/** Plain rollouts: requests to trajectories. Sampling and judging overlap; nothing depends on the order in which answers arrive. */
import { EngineError } from "../core/errors.js";
import { Inbox } from "../core/inbox.js";
import type { Problem } from "../core/problem.js";
import type { Trajectory } from "../core/trajectory.js";
import type { Verdict } from "../core/verdict.js";
import type { Sample, SampleRequest } from "../engine/contract.js";
import type { Request } from "../methods/contract.js";
import type { SampleCall } from "./coalesce.js";

export interface DrawParts {
  readonly step: number;
  /** Optimizer steps behind the current weights. */
  readonly policyVersion: number;
  readonly sample: SampleCall;
  readonly judge: (problem: Problem, response: string, truncated: boolean) => Promise<Verdict>;
  readonly decode: (ids: ArrayLike<number>) => string;
}

/** What a request asks of the engine. */
export function sampleRequest(request: Request): SampleRequest {
  const { context, weights, temperature, maxTokens, stop, key, forced, truncation } = request;
  return { context, weights, temperature, maxTokens, stop, key, ...(forced ? { forced } : {}), ...(truncation ? { truncation } : {}) };
}

/** Samples, verifies and records requests; trajectories come as their verdicts do, so a caller who needs an order sorts them. */
export async function* draw(requests: readonly Request[], parts: DrawParts): AsyncGenerator<Trajectory> {
  const inbox = new Inbox<Trajectory>();
  const work = async (): Promise<void> => {
    const judging: Promise<void>[] = [];
    for await (const sample of parts.sample(requests.map(sampleRequest))) {
      const request = requests[sample.index] as Request;
      const text = parts.decode(sample.ids);
      const judged = parts
        .judge(request.problem, text, sample.stop === "length")
        .then((verdict) => inbox.put(trajectoryOf(request, sample, text, verdict, parts)));
      judged.catch((error: unknown) => inbox.fail(error));
      judging.push(judged);
    }
    if (judging.length !== requests.length) {
      throw new EngineError({
        place: `rollout of step ${parts.step}`,
        cause: `the engine answered ${judging.length} of ${requests.length} requests`,
        mend: "start a new engine and resume the run",
      });
    }
    await Promise.all(judging);
    inbox.end();
  };
  work().catch((error: unknown) => inbox.fail(error));
  yield* inbox;
}

/** Name of a trajectory within the run. */
export function trajectoryKey(step: number, problem: string, member: number, turn: number): string {
  return `${step}:${problem}/${member}${turn > 0 ? `.${turn}` : ""}`;
}

/** One answered request. Sampled tokens are trained, a sampled end token included; forced ones are not. */
export function trajectoryOf(
  request: Request,
  sample: Sample,
  text: string,
  verdict: Verdict,
  { step, policyVersion }: Pick<DrawParts, "step" | "policyVersion">,
): Trajectory {
  const { problem, member, turn, role, purpose, context, trainedUnder, temperature, truncation, key } = request;
  const name = trajectoryKey(step, problem.key, member, turn);
  return {
    key: name,
    problem: problem.key,
    member,
    episode: trajectoryKey(step, problem.key, member, 0),
    turn,
    role,
    purpose,
    sampledUnder: context,
    trainedUnder,
    response: sample.ids,
    text,
    sampled: sample.sampled,
    reward: sample.sampled.slice(),
    loss: sample.sampled.slice(),
    behaviour: { values: sample.logp, conditions: { context: context.label, weights: sample.weights, temperature, ...(truncation && { truncation }) } },
    entropy: sample.entropy,
    spans: [],
    stop: sample.stop,
    policyVersion,
    random: key,
    verdict,
  };
}
