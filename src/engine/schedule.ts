/** Learning-rate schedules: the rate of an update as a pure function of its number. */
import { z } from "zod";
import { ArgumentError } from "../core/errors.js";
import { parseOptions } from "../core/options.js";

const rate = z.number().nonnegative();
const count = z.number().int().positive();
const warmup = z.number().int().nonnegative().optional();
const decaying = { rate, steps: count, warmup, endRate: rate.optional() };

export const scheduleSchema = z
  .discriminatedUnion("kind", [
    z.strictObject({ kind: z.literal("constant"), rate, warmup }),
    z.strictObject({ kind: z.literal("linear"), ...decaying }),
    z.strictObject({ kind: z.literal("cosine"), ...decaying }),
  ])
  .refine((schedule) => schedule.kind === "constant" || (schedule.warmup ?? 0) < schedule.steps, { path: ["warmup"], message: "must be less than steps" });

/**
 * `rate` is the peak. `warmup` updates climb to it in equal parts; then it stays (constant), or falls over the rest of
 * `steps` towards `endRate` (default 0) in a line or half a cosine (Loshchilov and Hutter 2017, without restarts).
 */
export type Schedule = z.output<typeof scheduleSchema>;

/** Reads the options of a schedule; throws a ConfigError that names `place`. */
export function parseSchedule(value: unknown, place: string): Schedule {
  return parseOptions(scheduleSchema, value, place);
}

/**
 * The rate of update number `step`, counted from 1. Our choice of ends: no update has the rate 0 of either end, since it
 * would be spent on nothing; warm-up reaches the peak with its last update, and `endRate` is reached right after `steps`.
 */
export function rateAt(schedule: Schedule, step: number): number {
  if (!Number.isSafeInteger(step) || step < 1) throw new ArgumentError({ place: "rateAt", cause: `step is ${step}`, mend: "count updates from 1" });
  const { rate: peak, warmup: climb = 0 } = schedule;
  if (step <= climb) return (peak * step) / climb;
  if (schedule.kind === "constant") return peak;
  const { steps, endRate = 0 } = schedule;
  const progress = Math.min(1, (step - 1 - climb) / (steps - climb));
  const left = schedule.kind === "linear" ? 1 - progress : (1 + Math.cos(Math.PI * progress)) / 2;
  return endRate + (peak - endRate) * left;
}
