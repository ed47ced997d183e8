/** Logger `tensorboard`: an event file in the run's folder, so that `tensorboard --logdir runs` shows each run by its name. */
import { closeSync, openSync, readdirSync, readFileSync, truncateSync, writeSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import type { LogEntry, LoggedRun, Logger } from "../logger.js";
import { encodeRecord, steps, type TfEvent } from "./tfevents.js";

const prefix = "events.out.tfevents.";

export class TensorBoardLogger implements Logger {
  private fd: number | undefined;

  /** Goes on with the file that is there: later steps are cut off, and what it lacks is added. */
  begin({ folder, step, past }: LoggedRun): void {
    const before = readdirSync(folder).filter((name) => name.startsWith(prefix));
    const name = before.sort().at(-1) ?? `${prefix}${Math.floor(Date.now() / 1000)}.${hostname()}`;
    const path = join(folder, name);
    const kept = before.length > 0 ? wholeUpTo(readFileSync(path), step) : { length: 0, records: new Map<number, number>() };
    if (before.length > 0) truncateSync(path, kept.length);
    this.fd = openSync(path, "a");
    if (kept.length === 0) this.write({ wall_time: now(), file_version: "brain.Event:2" });
    // A step that was evaluated has two records.
    for (const entry of past) {
      const left = kept.records.get(entry.step) ?? 0;
      if (left > 0) kept.records.set(entry.step, left - 1);
      else this.log(entry.step, entry.metrics);
    }
  }

  log(step: number, metrics: LogEntry["metrics"]): void {
    const value = Object.entries(metrics).map(([name, simple_value]) => ({ tag: tagOf(name), simple_value }));
    this.write({ wall_time: now(), step, summary: { value } });
  }

  end(): void {
    if (this.fd !== undefined) closeSync(this.fd);
    this.fd = undefined;
  }

  private write(event: TfEvent): void {
    if (this.fd !== undefined) writeSync(this.fd, encodeRecord(event));
  }
}

const now = (): number => Date.now() / 1000;

/** `eval/score` of `eval.score`, `train/reward` of `reward`: TensorBoard groups by what stands before the slash. */
const tagOf = (name: string): string => (/^(eval|clock)\./.test(name) ? name.replace(".", "/") : `train/${name}`);

/** Bytes of a file that are whole and of steps up to `last`, and how many records of each step they hold. */
function wholeUpTo(file: Buffer, last: number): { length: number; records: Map<number, number> } {
  const records = new Map<number, number>();
  let length = 0;
  let head = true;
  for (const { step, end } of steps(file)) {
    if (step > last) break;
    // The first record is the file's version.
    if (!head) records.set(step, (records.get(step) ?? 0) + 1);
    head = false;
    length = end;
  }
  return { length, records };
}
