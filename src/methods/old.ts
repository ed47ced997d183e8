/** Log-probs under the conditions of training at the weights of the rollout (C3), for trajectories that lack them. */
import { notesOf, restoreNotes } from "../core/note.js";
import type { Context } from "../core/problem.js";
import type { Conditions, Group, Trajectory } from "../core/trajectory.js";
import type { Sequence } from "../engine/contract.js";
import type { Lab } from "./contract.js";

/** Groups in which every trajectory that `needs` them has `old` log-probs, scored in one call; the others stay as they are. */
export async function withOld(groups: readonly Group[], lab: Lab, needs: (trajectory: Trajectory) => boolean): Promise<Group[]> {
  const missing = groups.flatMap(({ trajectories }) => trajectories.filter(needs));
  if (missing.length === 0) return [...groups];
  const { temperature } = lab.settings;
  const sequences = missing.map((t): Sequence => ({ context: t.trainedUnder, response: t.response, weights: lab.policy, temperature }));
  const scores = await lab.score(sequences);
  const completed = new Map(
    missing.map((t, i) => {
      const score = scores[i] as (typeof scores)[number];
      const conditions = { context: t.trainedUnder.label, weights: score.weights, temperature };
      const next: Trajectory = { ...t, old: { values: score.logp, conditions } };
      restoreNotes(next, notesOf(t));
      return [t, next] as const;
    }),
  );
  return groups.map((group) => {
    if (!group.trajectories.some((t) => completed.has(t))) return group;
    const next = { ...group, trajectories: group.trajectories.map((t) => completed.get(t) ?? t) };
    restoreNotes(next, notesOf(group));
    return next;
  });
}

/** Whether log-probs of two kinds were computed of the same thing, so that a difference is one of precision alone. */
export function sameConditions(a: Conditions, b: Conditions): boolean {
  return a.context === b.context && a.weights === b.weights && a.temperature === b.temperature && a.truncation === undefined && b.truncation === undefined;
}

/** Whether two contexts condition a policy alike, whatever their labels. */
export function sameContext(a: Context, b: Context): boolean {
  if (a === b) return true;
  return a.ids.length === b.ids.length && a.ids.every((id, i) => id === b.ids[i]) && !a.rows && !b.rows && !a.media && !b.media;
}
