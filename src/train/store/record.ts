/** Groups as records and columns, and back. Text, scalars and spans are JSON; everything with one entry a token is a column. */
import type { Json } from "../../core/json.js";
import { notesOf, restoreNotes } from "../../core/note.js";
import type { Context } from "../../core/problem.js";
import type { Group, Trajectory, Turn } from "../../core/trajectory.js";
import type { Verdict } from "../../core/verdict.js";
import type { TensorToWrite } from "../../engine/safetensors-write.js";
import type { GroupRecord, RolloutRecord } from "./schema.js";

/** What a run adds to a trajectory: numbers (reward, advantage) and further columns (coefficients after each stage). */
export interface Extra {
  readonly numbers?: { readonly [name: string]: number | undefined };
  readonly columns?: { readonly [name: string]: Float64Array };
}

/** The columns of a step, each flat over its tokens. */
export interface Columns {
  readonly response: Int32Array;
  readonly sampled: Uint8Array;
  readonly reward: Uint8Array;
  readonly loss: Uint8Array;
  readonly behaviour: Float64Array;
  /** NaN where a trajectory has no log-probs of its own for the conditions of training. */
  readonly old: Float64Array;
  readonly entropy: Float64Array;
  readonly context_ids: Int32Array;
  readonly extra: { readonly [name: string]: Float64Array };
}

/** Prefix of the columns that a run adds. */
const extraPrefix = "extra.";

export interface Encoded {
  readonly records: readonly GroupRecord[];
  readonly columns: Columns;
}

/** Groups of one step as records and columns. Input rows and media of contexts are not stored. */
export function encodeGroups(step: number, groups: readonly Group[], extraOf: (trajectory: Trajectory) => Extra): Encoded {
  const trajectories = groups.flatMap((group) => group.trajectories);
  const total = trajectories.reduce((sum, t) => sum + t.response.length, 0);
  const ids: number[] = [];
  const extra: { [name: string]: Float64Array } = {};
  const flat = {
    response: new Int32Array(total),
    sampled: new Uint8Array(total),
    reward: new Uint8Array(total),
    loss: new Uint8Array(total),
    behaviour: new Float64Array(total),
    old: new Float64Array(total).fill(Number.NaN),
    entropy: new Float64Array(total),
  };
  let at = 0;
  const records = groups.map((group): GroupRecord => {
    const contexts: { label: string; ids: [number, number] }[] = [];
    const known = new Map<string, number>();
    const contextIndex = (context: Context): number => {
      const name = `${context.label}\n${context.ids.join()}`;
      const seen = known.get(name);
      if (seen !== undefined) return seen;
      contexts.push({ label: context.label, ids: [ids.length, ids.length + context.ids.length] });
      for (const id of context.ids) ids.push(id);
      known.set(name, contexts.length - 1);
      return contexts.length - 1;
    };
    const rollouts = group.trajectories.map((t): RolloutRecord => {
      const start = at;
      at += t.response.length;
      flat.response.set(t.response, start);
      flat.sampled.set(t.sampled, start);
      flat.reward.set(t.reward, start);
      flat.loss.set(t.loss, start);
      flat.behaviour.set(t.behaviour.values, start);
      if (t.old) flat.old.set(t.old.values, start);
      flat.entropy.set(t.entropy, start);
      const { numbers = {}, columns = {} } = extraOf(t);
      for (const [name, values] of Object.entries(columns)) {
        extra[name] ??= new Float64Array(total).fill(Number.NaN);
        extra[name].set(values, start);
      }
      const { elapsedMs: _, ...verdict } = t.verdict;
      return {
        key: t.key,
        member: t.member,
        episode: t.episode,
        turn: t.turn,
        role: t.role,
        purpose: t.purpose,
        text: t.text,
        sampledUnder: contextIndex(t.sampledUnder),
        trainedUnder: contextIndex(t.trainedUnder),
        tokens: [start, at],
        behaviour: { ...t.behaviour.conditions },
        ...(t.old ? { old: { ...t.old.conditions } } : {}),
        spans: t.spans.map((span) => ({ ...span })),
        ...(t.turns ? { turns: t.turns.map(storedTurn) } : {}),
        stop: t.stop,
        ...(t.parent ? { parent: { ...t.parent } } : {}),
        policyVersion: t.policyVersion,
        random: [...t.random],
        verdict: verdict as RolloutRecord["verdict"],
        notes: notesOf(t),
        numbers: Object.fromEntries(Object.entries(numbers).map(([name, value]) => [name, value ?? null])),
      };
    });
    return {
      step,
      key: group.key,
      kind: group.kind,
      weight: group.weight,
      problem: group.problem as unknown as GroupRecord["problem"],
      problemNotes: notesOf(group.problem),
      notes: notesOf(group),
      contexts,
      rollouts,
      clock: { elapsedMs: group.trajectories.map((t) => t.verdict.elapsedMs ?? null) },
    };
  });
  return { records, columns: { ...flat, context_ids: Int32Array.from(ids), extra } };
}

/** A turn without what depends on a clock. */
function storedTurn({ verdict, ...turn }: Turn): NonNullable<RolloutRecord["turns"]>[number] {
  if (verdict === undefined) return { ...turn };
  const { elapsedMs: _, ...judged } = verdict;
  return { ...turn, verdict: judged as RolloutRecord["verdict"] };
}

/** Columns as tensors of a safetensors file. */
export function tensorsOf(columns: Columns): TensorToWrite[] {
  const { extra, ...fixed } = columns;
  const named = [...Object.entries(fixed), ...Object.entries(extra).map(([name, data]) => [extraPrefix + name, data] as const)];
  return named
    .map(([name, data]) => ({ name, shape: [data.length], data: data as TensorToWrite["data"] }))
    .sort((a, b) => b.data.BYTES_PER_ELEMENT - a.data.BYTES_PER_ELEMENT);
}

/** Name of an added column among the tensors, or undefined for a fixed one. */
export function extraName(tensor: string): string | undefined {
  return tensor.startsWith(extraPrefix) ? tensor.slice(extraPrefix.length) : undefined;
}

/** A stored rollout: the trajectory, and what the run added to it. */
export interface StoredRollout {
  readonly trajectory: Trajectory;
  readonly numbers: { readonly [name: string]: number | null };
  readonly columns: { readonly [name: string]: Float64Array };
}

export interface StoredGroup {
  readonly step: number;
  readonly group: Group;
  readonly rollouts: readonly StoredRollout[];
}

/** The inverse of `encodeGroups`, notes included. */
export function decodeGroup(record: GroupRecord, columns: Columns): StoredGroup {
  const contexts = record.contexts.map(({ label, ids }): Context => ({ label, ids: columns.context_ids.slice(ids[0], ids[1]) }));
  const rollouts = record.rollouts.map((r, i): StoredRollout => {
    const [start, end] = r.tokens;
    const elapsed = (record.clock.elapsedMs as readonly Json[] | undefined)?.[i];
    const trajectory: Trajectory = {
      key: r.key,
      problem: record.problem.key,
      member: r.member,
      episode: r.episode,
      turn: r.turn,
      role: r.role,
      purpose: r.purpose,
      sampledUnder: contexts[r.sampledUnder] as Context,
      trainedUnder: contexts[r.trainedUnder] as Context,
      response: columns.response.slice(start, end),
      text: r.text,
      sampled: columns.sampled.slice(start, end),
      reward: columns.reward.slice(start, end),
      loss: columns.loss.slice(start, end),
      behaviour: { values: columns.behaviour.slice(start, end), conditions: r.behaviour },
      ...(r.old ? { old: { values: columns.old.slice(start, end), conditions: r.old } } : {}),
      entropy: columns.entropy.slice(start, end),
      spans: r.spans,
      ...(r.turns ? { turns: r.turns as readonly Turn[] } : {}),
      stop: r.stop,
      ...(r.parent ? { parent: r.parent } : {}),
      policyVersion: r.policyVersion,
      random: r.random,
      verdict: { ...r.verdict, ...(typeof elapsed === "number" ? { elapsedMs: elapsed } : {}) } as Verdict,
    };
    restoreNotes(trajectory, r.notes);
    const extra = Object.entries(columns.extra).map(([name, values]) => [name, values.slice(start, end)] as const);
    return { trajectory, numbers: r.numbers, columns: Object.fromEntries(extra) };
  });
  const group: Group = { key: record.key, problem: record.problem, kind: record.kind, weight: record.weight, trajectories: rollouts.map((r) => r.trajectory) };
  restoreNotes(group, record.notes);
  restoreNotes(group.problem, record.problemNotes);
  return { step: record.step, group, rollouts };
}
