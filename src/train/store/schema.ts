/** What the files of a run folder hold. Every line and file is checked against these when it is read. */
import { z } from "zod";
import { RunError } from "../../core/errors.js";
import type { Json } from "../../core/json.js";

/** Version of the run folder's format. A reader refuses newer ones. */
export const runVersion = 1;

export const json: z.ZodType<Json> = z.lazy(() => z.union([z.null(), z.boolean(), z.number(), z.string(), z.array(json), z.record(z.string(), json)]));
const record = z.record(z.string(), json);
const count = z.number().int().min(0);

/** Everything that depends on a clock. */
const clock = record;

/** `run.json`. */
export const runFile = z.object({
  format: z.literal("touchstone-run"),
  version: z.literal(runVersion),
  /** The configuration as resolved: every option with its value. */
  config: json,
  /** The resolved table of the method. */
  method: json,
  /** Processor, versions, threads, engine settings: under an equal fingerprint a resume is byte-exact. */
  fingerprint: record,
  versions: z.record(z.string(), z.string()),
  /** Hash of the data set. */
  data: z.string(),
  /** What decides rewards, by what it is (task, verifier): identities, and hashes of the files of its program. */
  program: z.record(z.string(), z.record(z.string(), z.string())).optional(),
  clock,
});
export type RunFile = z.output<typeof runFile>;
/** What the caller of `RunStore.create` says of a run. */
export type RunMeta = Omit<RunFile, "format" | "version" | "clock">;

/** `start`: once; `step`: each optimizer batch; `evaluation`; `stage`: a switch of stages(...), or within a method; `warning`; `nonreplayable`: a wall-clock limit or a remote call decided something; `end`. */
export const eventKinds = ["start", "step", "evaluation", "stage", "warning", "nonreplayable", "end"] as const;

/** A line of `events.jsonl`. */
export const eventLine = z.strictObject({ step: count, kind: z.enum(eventKinds), data: record, clock: clock.optional() });
export type RunEvent = z.output<typeof eventLine>;

/** A line of `rollouts/index.jsonl`: where the rollouts of a step lie. */
export const stepRow = z.strictObject({
  step: count,
  /** Number of the first rollout, counted over the run. */
  first: count,
  count,
  groups: count,
  tokens: count,
  columns: z.string(),
  /** Bytes in rollouts.jsonl; they depend on how long the clocks of its lines are, so they lie here. */
  clock: z.strictObject({ offset: count, bytes: count }),
});
export type StepRow = z.output<typeof stepRow>;

const conditions = z.strictObject({
  context: z.string(),
  weights: z.string(),
  temperature: z.number(),
  truncation: z.strictObject({ topP: z.number().optional(), topK: z.number().optional(), minP: z.number().optional() }).optional(),
});
const finding = { parts: z.record(z.string(), z.number()).optional(), evidence: record.optional(), reward: z.number().optional() };
const verdict = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("accept"), ...finding }),
  z.strictObject({ kind: z.literal("reject"), reason: z.string(), ...finding }),
  z.strictObject({ kind: z.literal("partial"), score: z.number(), ...finding }),
  z.strictObject({ kind: z.literal("unscored"), reason: z.string(), ...finding }),
]);

const rolloutRecord = z.strictObject({
  key: z.string(),
  member: count,
  episode: z.string(),
  turn: count,
  role: z.string(),
  purpose: z.enum(["train", "aux"]),
  text: z.string(),
  /** Indices into the group's contexts. */
  sampledUnder: count,
  trainedUnder: count,
  /** First and one past the last entry in the step's token columns. */
  tokens: z.tuple([count, count]),
  behaviour: conditions,
  old: conditions.optional(),
  spans: z.array(z.strictObject({ name: z.string(), start: count, end: count })),
  turns: z
    .array(
      z.strictObject({
        action: z.string(),
        observation: z.string(),
        verdict: verdict.optional(),
        info: z.record(z.string(), z.number()),
        cut: count.optional(),
        fault: z.string().optional(),
      }),
    )
    .optional(),
  stop: z.enum(["eos", "stop", "length", "cancelled"]),
  parent: z.strictObject({ key: z.string(), fork: count }).optional(),
  policyVersion: count,
  random: z.tuple([z.number(), z.number(), z.number(), z.number()]),
  verdict,
  notes: record,
  /** Reward, advantage and the like. */
  numbers: z.record(z.string(), z.number().nullable()),
});
export type RolloutRecord = z.output<typeof rolloutRecord>;

/** A line of `rollouts/rollouts.jsonl`: one group with its rollouts. */
export const groupRecord = z.strictObject({
  step: count,
  key: z.string(),
  kind: z.string(),
  weight: z.number(),
  problem: z.strictObject({
    key: z.string(),
    prompt: z.array(z.strictObject({ role: z.enum(["system", "user", "assistant", "tool"]), content: z.string() })),
    reference: z.strictObject({ state: z.enum(["gold", "pseudo", "none", "withheld"]), answer: json.optional(), version: count }),
    privileged: record.optional(),
    tags: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])).optional(),
  }),
  problemNotes: record,
  notes: record,
  /** Label, and first and one past the last entry in the column `context_ids`. */
  contexts: z.array(z.strictObject({ label: z.string(), ids: z.tuple([count, count]) })),
  rollouts: z.array(rolloutRecord),
  clock,
});
export type GroupRecord = z.output<typeof groupRecord>;

/** The body of `checkpoint.json`. */
export const checkpointBody = z.object({
  format: z.literal("touchstone-checkpoint"),
  version: z.literal(runVersion),
  step: count,
  /** Rollouts of the run up to this step. */
  rollouts: count,
  data: z.string(),
  fingerprint: record,
  /** Random keys, data cursor, cells of methods, schedules: whatever the trainer needs to go on. */
  state: json,
  /** What keep-best compares; higher is better. */
  score: z.number().nullable(),
  files: z.array(z.strictObject({ path: z.string(), bytes: count, sha256: z.string() })),
  /**
   * What may differ between runs of equal bytes: when it was written; length and hash of the logs at this step, which their
   * clocks decide; and what `run.json` said, with its folders and numbers of workers.
   */
  clock: z.strictObject({
    written: z.string(),
    offsets: z.strictObject({ events: count, rollouts: count, index: count }),
    logs: z.strictObject({ events: z.string(), index: z.string() }).optional(),
    run: json.optional(),
  }),
});
export type CheckpointBody = z.output<typeof checkpointBody>;
export const checkpointFile = z.strictObject({ sha256: z.string(), body: z.unknown() });

/** Parses a JSON text by a schema, or throws a RunError that names the place. */
export function parseJson<T>(place: string, text: string, schema: z.ZodType<T>, mend: string): T {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new RunError({ place, cause: "it is not JSON", mend });
  }
  checkVersion(place, value);
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  throw new RunError({ place, cause: `${issue?.path.join(".") || "its content"}: ${issue?.message}`, mend });
}

/** Refuses what another version wrote, before its shape is looked at. */
export function checkVersion(place: string, value: unknown): void {
  const version = (value as { version?: unknown } | null)?.version;
  if (typeof version === "number" && version > runVersion) {
    throw new RunError({
      place,
      cause: `it was written in version ${version} of the run format, and this Touchstone reads up to ${runVersion}`,
      mend: "open it with the newer Touchstone that wrote it",
      data: { version },
    });
  }
  if (typeof version === "number" && version < runVersion) {
    throw new RunError({
      place,
      cause: `it was written in version ${version} of the run format, and this Touchstone reads version ${runVersion}`,
      mend: "open it with the Touchstone that wrote it",
      data: { version },
    });
  }
}

/** A record without what depends on a clock: what byte-exactness is about. */
export function withoutClock<T extends { readonly clock?: unknown }>(value: T): Omit<T, "clock"> {
  const { clock: _, ...rest } = value;
  return rest;
}
