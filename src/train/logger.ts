/**
 * Loggers: where the numbers of a run go beside its folder. The trainer knows this interface and no name; what comes with
 * Touchstone is in `loggers/`. A logger never changes a run: what it throws is told once, and the run goes on.
 */
import type { Json } from "../core/json.js";
import { describeThrown } from "../core/load.js";
import type { RunEvent } from "./store/schema.js";

/** Numbers of one step by name (docs/metrics.md); what depends on a clock under `clock.`, an evaluation's under `eval.`. */
export interface LogEntry {
  readonly step: number;
  readonly metrics: { readonly [name: string]: number };
}

/** The run that a logger is told of. */
export interface LoggedRun {
  /** Its folder. */
  readonly folder: string;
  /** Its options as resolved. */
  readonly config: { readonly [name: string]: Json };
  /** The step that it goes on from, 0 of a new one: what was logged of later steps did not happen. */
  readonly step: number;
  /** What there was to log up to that step, in order. */
  readonly past: Iterable<LogEntry>;
}

/** Calls are made in order, each after the one before has ended; what they return is awaited at the end of the run alone. */
export interface Logger {
  /** Once, before anything is logged. */
  begin?(run: LoggedRun): void | Promise<void>;
  /** A step's numbers as it is done, and an evaluation's: a step that is evaluated is logged twice, with different names. Step 0 is before training. */
  log(step: number, metrics: LogEntry["metrics"]): void | Promise<void>;
  /** Once, however the run ends. */
  end?(): void | Promise<void>;
}

export interface NamedLogger {
  readonly name: string;
  readonly logger: Logger;
}

/** How long the end of a run waits for a logger. */
const patienceMs = 30_000;

/** What of an event there is to log: of a step its numbers but the last evaluation's, which were logged when they were measured. */
export function entryOf({ kind, step, data, clock }: RunEvent): LogEntry | undefined {
  const numbers = (of: unknown, prefix: string): [string, number][] =>
    Object.entries((of ?? {}) as { readonly [name: string]: unknown }).flatMap(([name, value]) =>
      typeof value === "number" ? [[`${prefix}${name}`, value]] : [],
    );
  if (kind === "step") {
    const own = numbers(data.metrics, "").filter(([name]) => !name.startsWith("eval."));
    return { step, metrics: Object.fromEntries([...own, ...numbers(clock, "clock.")]) };
  }
  if (kind !== "evaluation") return undefined;
  const { score, tokens_mean } = data;
  return { step, metrics: Object.fromEntries(numbers({ score, tokens_mean }, "eval.")) };
}

/** All loggers of a run, none of which can stop it. */
export class Loggers {
  private readonly members: Member[];

  /** `tell`: once for each logger that fails. */
  constructor(loggers: readonly NamedLogger[], tell: (text: string) => void) {
    this.members = loggers.map((logger) => new Member(logger, tell));
  }

  /** Resolves when all are ready. `events`: those that the run goes on from. */
  async begin(run: Omit<LoggedRun, "past">, events: () => Iterable<RunEvent>): Promise<void> {
    const past = {
      *[Symbol.iterator](): Generator<LogEntry> {
        for (const event of events()) {
          const entry = entryOf(event);
          if (entry) yield entry;
        }
      },
    };
    await Promise.all(this.members.map((member) => member.begin({ ...run, past })));
  }

  event(event: RunEvent): void {
    const entry = this.members.length > 0 ? entryOf(event) : undefined;
    if (entry) for (const member of this.members) member.log(entry);
  }

  async end(): Promise<void> {
    await Promise.all(this.members.map((member) => member.end()));
  }
}

class Member {
  /** Absent: nothing is under way, so that the next call is made at once. */
  private pending: Promise<void> | undefined;
  private failed = false;
  private begun = false;

  constructor(
    private readonly given: NamedLogger,
    private readonly tell: (text: string) => void,
  ) {}

  async begin(run: LoggedRun): Promise<void> {
    this.call(async () => {
      await this.given.logger.begin?.(run);
      this.begun = true;
    });
    await this.settled("begin");
  }

  log({ step, metrics }: LogEntry): void {
    if (this.begun) this.call(() => this.given.logger.log(step, { ...metrics }));
  }

  async end(): Promise<void> {
    if (this.begun) this.call(() => this.given.logger.end?.());
    await this.settled("end");
  }

  private call(act: () => void | Promise<void>): void {
    if (this.pending !== undefined) {
      this.after(this.pending.then(act));
      return;
    }
    try {
      const result = act();
      if (result !== undefined) this.after(Promise.resolve(result));
    } catch (error) {
      this.fail(error);
    }
  }

  private after(result: Promise<void>): void {
    const pending: Promise<void> = result
      .catch((error: unknown) => this.fail(error))
      .then(() => {
        if (this.pending === pending) this.pending = undefined;
      });
    this.pending = pending;
  }

  private async settled(what: string): Promise<void> {
    if (this.pending === undefined) return;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<"late">((resolve) => {
      timer = setTimeout(() => resolve("late"), patienceMs);
    });
    const first = await Promise.race([this.pending, late]);
    clearTimeout(timer);
    if (first === "late") this.fail(new Error(`its ${what} took longer than ${patienceMs / 1000} s`));
  }

  private fail(error: unknown): void {
    if (this.failed) return;
    this.failed = true;
    this.tell(`the logger ${this.given.name} failed and the run goes on: ${describeThrown(error)}`);
  }
}
