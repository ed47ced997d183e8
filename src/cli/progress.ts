/**
 * The progress line of long commands, on stderr: how far, what is awaited and since when. A bar that is drawn again on a
 * terminal; elsewhere a plain line now and then, so that a log stays readable; nothing when silent (`--json`).
 */
import { colours } from "./output.js";

/** The part of a terminal's stream that is used. */
export interface ProgressStream {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

export interface ProgressOptions {
  readonly label: string;
  /** How many units there are; absent: a line without a bar. */
  readonly total?: number;
  /** Units that were done before; default 0. */
  readonly first?: number;
  /** When the first of the others was begun, by `performance.now()`; default now. */
  readonly since?: number;
  readonly silent?: boolean;
  readonly stream?: ProgressStream;
}

const redrawMs = 200;
/** Where lines cannot be drawn again, one comes at most so often, and at least so often while something is awaited. */
const sparseMs = 15_000;
/** A wait shorter than this is not worth its seconds. */
const shortMs = 2000;
const barWidth = 24;
const narrowBar = 8;
const leastWords = 16;

export class Progress {
  private readonly stream: ProgressStream;
  private readonly started: number;
  private readonly timer: NodeJS.Timeout | undefined;
  private done = 0;
  private note = "";
  private awaited = "";
  private awaitedSince = 0;
  private lastLine = Number.NEGATIVE_INFINITY;
  private drawn = false;
  private lines: readonly string[] = [];
  private ended = false;

  constructor(private readonly options: ProgressOptions) {
    this.stream = options.stream ?? process.stderr;
    this.started = options.since ?? performance.now();
    if (options.silent) return;
    this.timer = setInterval(() => this.tick(), redrawMs);
    this.timer.unref();
  }

  /** `done` units are finished; `note` is shown beside (a reward, a loss). */
  at(done: number, note = this.note): void {
    this.done = done;
    this.note = note;
    this.tick();
  }

  /** What is being waited for now (`samples`, `the engine`). */
  waitFor(what: string): void {
    if (what === this.awaited) return;
    this.awaited = what;
    this.awaitedSince = performance.now();
    this.tick();
  }

  /** Prints a line of its own above the bar. */
  say(line: string): void {
    if (this.options.silent) return;
    this.clear();
    this.stream.write(`${line}\n`);
    this.tick();
  }

  /** Lines drawn above the bar, in place of earlier ones; only on a terminal, since elsewhere nothing can be drawn again. */
  picture(lines: readonly string[]): void {
    if (!this.stream.isTTY || this.options.silent || this.ended) return;
    this.clear();
    this.lines = lines;
  }

  /** Takes the bar away; with a sentence, that stays in its place. */
  end(sentence?: string): void {
    if (this.ended) return;
    this.ended = true;
    clearInterval(this.timer);
    if (this.options.silent) return;
    this.clear();
    if (sentence !== undefined) this.stream.write(`${sentence}\n`);
  }

  private tick(): void {
    if (this.options.silent || this.ended) return;
    const now = performance.now();
    if (this.stream.isTTY) {
      const above = this.drawn ? [] : this.lines.map((line) => `${this.fit(line, true)}\n`);
      this.stream.write(`${above.join("")}\r\x1b[2K${this.line(now, true)}`);
      this.drawn = true;
    } else if (now - this.lastLine >= sparseMs) {
      this.lastLine = now;
      this.stream.write(`${this.line(now, false)}\n`);
    }
  }

  private clear(): void {
    // Up to the first line of the picture, and everything below is gone.
    const up = this.lines.length > 0 ? `\x1b[${this.lines.length}A\x1b[J` : "";
    if (this.drawn) this.stream.write(`\r\x1b[2K${up}`);
    this.drawn = false;
  }

  private line(now: number, bar: boolean): string {
    const { label, total } = this.options;
    const parts = [this.note, this.remaining(now), this.waiting(now)].filter((part) => part !== "");
    if (total === undefined) return this.fit(`${label}${parts.length > 0 ? `: ${parts.join(" · ")}` : ""}`, bar);
    const share = total === 0 ? 1 : Math.min(1, this.done / total);
    const tail = [`${this.done}/${total}`, ...parts].join(" · ");
    if (!bar) return `${label}: ${tail}`;
    // On a narrow terminal the bar gives way before the words do. The last column stays free.
    const free = (this.stream.columns || 80) - label.length - 3;
    // Where the first numbers would not fit beside a narrow bar, there is none.
    const width = free - narrowBar < leastWords ? 0 : Math.max(narrowBar, Math.min(barWidth, free - tail.length));
    const full = Math.round(share * width);
    const paint = colours(this.stream);
    const room = Math.max(0, free - width);
    if (width === 0) return this.fit(`${label} ${tail}`, true);
    return `${label} ${paint.cyan("█".repeat(full))}${paint.dim("░".repeat(width - full))} ${tail.slice(0, room)}`;
  }

  /** A drawn line must not wrap, or the next one leaves half of it behind. */
  private fit(text: string, drawn: boolean): string {
    return drawn ? text.slice(0, (this.stream.columns || 80) - 1) : text;
  }

  private remaining(now: number): string {
    const { total, first = 0 } = this.options;
    if (total === undefined || this.done <= first || this.done >= total) return "";
    return `${duration(((now - this.started) / (this.done - first)) * (total - this.done))} left`;
  }

  private waiting(now: number): string {
    if (this.awaited === "") return "";
    const since = now - this.awaitedSince;
    return since < shortMs ? `waiting for ${this.awaited}` : `waiting for ${this.awaited} (${duration(since)})`;
  }
}

/** `8 s`, `3 min 20 s`, `2 h 5 min`. */
export function duration(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min${seconds % 60 === 0 ? "" : ` ${seconds % 60} s`}`;
  return `${Math.floor(minutes / 60)} h${minutes % 60 === 0 ? "" : ` ${minutes % 60} min`}`;
}
