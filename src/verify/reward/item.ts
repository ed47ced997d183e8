/** What a reward of one's own sees of an answer: the same for functions, programs and servers. */
import type { Json } from "../../core/json.js";
import type { Message } from "../../core/problem.js";
import type { VerifierInput } from "../contract.js";

/** A problem as rewards see it. */
export interface RewardProblem {
  readonly key: string;
  readonly prompt: readonly Message[];
  /** The reference answer; null where there is none. */
  readonly reference: Json;
  /** Facts for tables, such as `source` and `data_source`. */
  readonly tags: { readonly [name: string]: string | number | boolean };
  /** Columns that `info_columns` names, worked solutions and the like: never shown to the policy. */
  readonly info: { readonly [name: string]: Json };
}

/** One answer to be rewarded, as programs and servers are sent it. */
export interface RewardItem {
  readonly problem: RewardProblem;
  readonly response: string;
  /** The response ended because its token budget was used up. */
  readonly truncated: boolean;
}

export function itemOf({ problem, reference, response, truncated }: VerifierInput): RewardItem {
  const { key, prompt, tags = {}, privileged = {} } = problem;
  return { problem: { key, prompt, reference, tags, info: privileged }, response, truncated };
}
