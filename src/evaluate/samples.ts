/** What an evaluation draws: one record a sample, and the vote that it casts among the samples of its problem. */
import { canonicalJson, sha256 } from "../core/json.js";
import type { Problem } from "../core/problem.js";
import type { StopReason, Turn } from "../core/trajectory.js";
import type { Verdict } from "../core/verdict.js";
import type { Verifier } from "../verify/contract.js";

/** One response to one problem, judged. */
export interface EvaluatedSample {
  /** Key of its problem. */
  readonly problem: string;
  readonly member: number;
  /** Token ids of the response, a sampled end token included; of a conversation with the observations in it. */
  readonly ids: Int32Array;
  /** Of a conversation: 1 where the policy drew the token, 0 where it was observed. */
  readonly sampled?: Uint8Array;
  readonly turns?: readonly Turn[];
  /** What was judged: the response, of a conversation its last action. */
  readonly text: string;
  /** Of each token, under the distribution drawn from; where it was asked for. [tokens] */
  readonly logprobs?: Float64Array;
  /** Sum of the tokens' log-probs in nats, under the distribution drawn from; null where the engine does not tell it. */
  readonly logp: number | null;
  /** The same at temperature 1, untruncated. */
  readonly rawLogp: number | null;
  /** Mean entropy of the distributions drawn from, in nats a token that was drawn; null where the engine does not tell it. */
  readonly entropy: number | null;
  readonly stop: StopReason;
  readonly verdict: Verdict;
  /** What the verifier extracted, or the whole text where it has no `extract`; null: no answer. */
  readonly answer: string | null;
  /** Number of its class of equal answers within the problem; null: it does not vote. */
  readonly vote: number | null;
}

/** A sample that has been judged and has not voted yet. */
export type JudgedSample = Omit<EvaluatedSample, "answer" | "vote">;

/**
 * Lets the samples of one problem vote, in member order. Answers belong to one class when the verifier's `same` says so
 * of the class's first answer; verifiers without `extract` compare whole texts.
 */
export function voted(samples: readonly JudgedSample[], verifier: Pick<Verifier, "extract" | "same">): EvaluatedSample[] {
  const same = (a: string, b: string): boolean => (verifier.extract && verifier.same ? verifier.same(a, b) : a === b);
  const classes: string[] = [];
  return samples.map((sample) => {
    const answer = verifier.extract ? (verifier.extract(sample.text) ?? null) : sample.text;
    if (answer === null) return { ...sample, answer, vote: null };
    const known = classes.findIndex((first) => same(first, answer));
    return { ...sample, answer, vote: known >= 0 ? known : classes.push(answer) - 1 };
  });
}

/** Samples by problem, in the order of their first appearance. */
export function byProblem<S extends { readonly problem: string }>(samples: readonly S[]): Map<string, S[]> {
  const groups = new Map<string, S[]>();
  for (const sample of samples) {
    const group = groups.get(sample.problem);
    if (group) group.push(sample);
    else groups.set(sample.problem, [sample]);
  }
  return groups;
}

/** A problem as it may be shown and judged again: without what only training may see. */
export function publicProblem({ privileged: _, ...rest }: Problem): Problem {
  return rest;
}

/** Identity of a list of problems in its order: scores under the same one can be paired by place. */
export function problemSetId(problems: readonly Problem[]): string {
  return sha256(canonicalJson(problems.map(({ key }) => key))).slice(0, 16);
}
