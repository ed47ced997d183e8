/** Logger `csv`: `metrics.csv` in the run's folder, a row a step. A number that first comes up later gets a column at the end. */
import { closeSync, fstatSync, ftruncateSync, openSync, readFileSync, renameSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { LogEntry, LoggedRun, Logger } from "../logger.js";

export class CsvLogger implements Logger {
  private path = "";
  private fd: number | undefined;
  private columns: string[] = [];
  /** The last row, which a second entry of its step is added to, and where it begins. */
  private last: { step: number; values: Map<string, number>; offset: number } | undefined;

  /** Writes the file anew from what there was to log, so that a resumed run has each step once, whatever became of the file. */
  begin({ folder, past }: LoggedRun): void {
    this.path = join(folder, "metrics.csv");
    const rows: { step: number; values: Map<string, number> }[] = [];
    const columns = new Set<string>();
    for (const { step, metrics } of past) {
      for (const name of Object.keys(metrics)) columns.add(name);
      const before = rows.at(-1);
      if (before?.step === step) for (const [name, value] of Object.entries(metrics)) before.values.set(name, value);
      else rows.push({ step, values: new Map(Object.entries(metrics)) });
    }
    this.columns = [...columns];
    const end = rows.pop();
    this.replace(this.header() + rows.map((row) => this.row(row)).join(""));
    this.last = undefined;
    if (end) this.append(end);
  }

  log(step: number, metrics: LogEntry["metrics"]): void {
    if (Object.keys(metrics).some((name) => !this.columns.includes(name))) this.widen(Object.keys(metrics));
    const { last } = this;
    if (last?.step !== step) {
      this.append({ step, values: new Map(Object.entries(metrics)) });
      return;
    }
    for (const [name, value] of Object.entries(metrics)) last.values.set(name, value);
    ftruncateSync(this.file, last.offset);
    this.append(last);
  }

  end(): void {
    if (this.fd !== undefined) closeSync(this.fd);
    this.fd = undefined;
  }

  private get file(): number {
    this.fd ??= openSync(this.path, "a");
    return this.fd;
  }

  private append({ step, values }: { step: number; values: Map<string, number> }): void {
    this.last = { step, values, offset: fstatSync(this.file).size };
    writeSync(this.file, this.row(this.last));
  }

  /** Adds columns: earlier rows have empty cells there. */
  private widen(names: readonly string[]): void {
    const old = Buffer.byteLength(this.header());
    const added = names.filter((name) => !this.columns.includes(name));
    this.columns.push(...added);
    const rows = readFileSync(this.path).subarray(old, this.last?.offset).toString();
    const text = this.header() + rows.replaceAll("\n", `${",".repeat(added.length)}\n`);
    const { last } = this;
    this.replace(text);
    if (last) this.append(last);
  }

  /** Puts another text in place of the file, which is whole at every moment. */
  private replace(text: string): void {
    this.end();
    writeFileSync(`${this.path}.part`, text);
    renameSync(`${this.path}.part`, this.path);
  }

  private header(): string {
    return `${["step", ...this.columns].map(cell).join(",")}\n`;
  }

  private row({ step, values }: { step: number; values: Map<string, number> }): string {
    return `${[step, ...this.columns.map((name) => values.get(name) ?? "")].join(",")}\n`;
  }
}

/** A cell by RFC 4180; numbers need no quotes. */
const cell = (text: string): string => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
