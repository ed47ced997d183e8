/** The rollout of one step: from the resolved slots of selection and rollout to the batch that is trained on. */
import { ArgumentError, DataError } from "../core/errors.js";
import { type Batch, type Group, type Purpose, type Trajectory, type Truncation, trained } from "../core/trajectory.js";
import type { Outcome } from "../methods/contract.js";
import { trainsOnTruncated } from "../methods/needs.js";
import { sameContext, withOld as scoreOld } from "../methods/old.js";
import { type Resolved, withholdsReferences } from "../methods/resolve.js";
import type { StepLab } from "./lab.js";

export interface CollectOptions {
  readonly unscored: "drop-sample" | "drop-group";
  /** Identity of the policy's weights at the rollout; undefined until the engine has told it. */
  readonly weights: string | undefined;
}

export interface Collected {
  readonly batch: Batch;
  readonly outcomes: readonly Outcome[];
  /** Groups left out because a member has no score (`unscored: drop-group`). */
  readonly droppedGroups: number;
  /** Sampled tokens of training that are in no group of the batch. */
  readonly discardedTokens: number;
}

/** Draws, expands, enriches and checks the groups of a step, in key order, with old log-probs where they differ from behaviour's. */
export async function collect(method: Resolved, lab: StepLab, options: CollectOptions): Promise<Collected> {
  return assemble(method, await gather(method, lab), { rollout: lab, training: lab }, options);
}

/** The groups of a step as they are drawn. */
export async function gather(method: Resolved, lab: StepLab): Promise<Group[]> {
  let groups: Group[] = [];
  for await (const group of method.one.allocate.value.run(lab)) groups.push(group);
  for (const stage of method.stages.enrich) if (!stage.late) groups = await stage.run(groups, lab);
  return groups;
}

/** The batch of drawn groups, when it is about to be trained. `rollout`: the lab that they were drawn in; `training`: that of the weights which are to be trained. */
export async function assemble(
  method: Resolved,
  drawn: readonly Group[],
  labs: { readonly rollout: StepLab; readonly training: StepLab },
  options: CollectOptions,
): Promise<Collected> {
  const lab = labs.training;
  let groups = [...drawn];
  for (const stage of method.stages.enrich) if (stage.late) groups = await stage.run(groups, lab);
  const all = groups.length;
  // Where references are withheld no verdict is missing: rewards come from elsewhere.
  if (options.unscored === "drop-group" && !withholdsReferences(method))
    groups = groups.filter((group) => trained(group).every(({ verdict }) => verdict.kind !== "unscored"));
  groups.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
  check(lab.step, groups);
  for (const row of groups.flatMap(trained)) refuseTruncated(method, lab.step, row.purpose, row.behaviour.conditions.truncation);
  const batch = { step: lab.step, groups: await withOld(groups, labs.rollout, options.weights) };
  const kept = new Set(batch.groups.flatMap(({ trajectories }) => trajectories.map(({ key }) => key)));
  const inBatch = new Set(batch.groups.map(({ problem }) => problem.key));
  const of = [...new Set([labs.rollout, lab])];
  const everything = of.flatMap((each) => each.drawn);
  const lost = everything.filter(({ key, purpose }) => purpose === "train" && !kept.has(key));
  return {
    batch,
    outcomes: of
      .flatMap(({ proposed }) => proposed)
      .map((problem) => ({ problem, trajectories: ofProblem(everything, problem.key), used: inBatch.has(problem.key) })),
    droppedGroups: all - groups.length,
    discardedTokens: lost.reduce((n, { sampled }) => n + sampled.reduce((a, b) => a + b, 0), 0),
  };
}

/** Answers from a part of the distribution are trained on only where a method's specification asks for them (C8): their log-probs are not the policy's. */
export function refuseTruncated({ name, methods }: Resolved, step: number, purpose: Purpose, truncation: Truncation | undefined): void {
  if (purpose !== "train" || truncation === undefined || trainsOnTruncated(methods)) return;
  throw new ArgumentError({
    place: `rollout of step ${step}`,
    cause: `method ${name} trains on answers that were drawn with ${Object.keys(truncation).join(", ")}, whose log-probs are not the policy's`,
    mend: "draw them from the whole distribution, or let the method need the capability sample.truncation",
  });
}

function ofProblem(drawn: readonly Trajectory[], problem: string): Trajectory[] {
  return drawn.filter((trajectory) => trajectory.problem === problem).sort((a, b) => a.member - b.member || a.turn - b.turn);
}

function check(step: number, groups: readonly Group[]): void {
  const place = `rollout of step ${step}`;
  const keys = new Set<string>();
  for (const group of groups) {
    for (const { key, problem, response } of group.trajectories) {
      const cause =
        problem !== group.problem.key
          ? `the group ${group.key} of problem ${group.problem.key} holds ${key} of problem ${problem}`
          : keys.has(key)
            ? `two trajectories are named ${key}`
            : response.length === 0
              ? `${key} has no token`
              : undefined;
      if (cause !== undefined) throw new ArgumentError({ place, cause, mend: "correct the allocate, expand or enrich slot that made it" });
      keys.add(key);
    }
  }
  const rows = groups.flatMap(trained);
  if (rows.length > 0 && !rows.some(({ loss }) => loss.includes(1))) {
    throw new DataError({
      place,
      cause: `none of the ${rows.length} answers has a token to train on: all their tokens were forced or observed`,
      mend: "check the chat template and what forces tokens (a method's prepare or expand)",
    });
  }
}

/** Log-probs under the conditions of training at the weights of the rollout, for trajectories that were drawn under others (C3). */
function withOld(groups: readonly Group[], lab: StepLab, weights: string | undefined): Promise<Group[]> {
  const { temperature } = lab.settings;
  const needs = (t: Trajectory): boolean => {
    if (t.purpose !== "train" || t.old !== undefined) return false;
    const { conditions } = t.behaviour;
    const sameWeights = weights === undefined ? t.role === "policy" : conditions.weights === weights;
    return !sameContext(t.trainedUnder, t.sampledUnder) || !sameWeights || conditions.temperature !== temperature || conditions.truncation !== undefined;
  };
  return scoreOld(groups, lab, needs);
}
