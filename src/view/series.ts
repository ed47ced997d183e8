/** The numbers of a run's steps as columns, and fewer points of them where there are many. */
import type { Table } from "./shapes.js";

/** Points of a column that are sent: more than a screen has, and few enough for a slow link. */
export const mostPoints = 3000;

export class Series {
  readonly steps: number[] = [];
  private readonly columns = new Map<string, (number | null)[]>();

  /** Adds a step; names that are new have no numbers in the steps before. */
  add(step: number, numbers: Iterable<readonly [string, number]>): void {
    const at = this.steps.push(step) - 1;
    for (const [name, value] of numbers) {
      if (!Number.isFinite(value)) continue;
      const column = this.columns.get(name) ?? [];
      this.columns.set(name, column);
      while (column.length < at) column.push(absent(name));
      column[at] = value;
    }
  }

  names(): string[] {
    return [...this.columns.keys()];
  }

  /** The numbers of a column that are there, in order. */
  known(name: string): number[] {
    return (this.columns.get(name) ?? []).filter((value) => value !== null);
  }

  /** One entry a step. */
  column(name: string): readonly (number | null)[] {
    const column = this.columns.get(name) ?? [];
    return Array.from(this.steps, (_, i) => column[i] ?? absent(name));
  }

  last(name: string): number | null {
    return this.columns.get(name)?.[this.steps.length - 1] ?? null;
  }

  /** Steps that are one point: a power of two, so that it rarely changes while a run grows. */
  every(most = mostPoints): number {
    let every = 1;
    while (this.steps.length > every * most) every *= 2;
    return every;
  }

  /** All, as means of `every` steps each; with `after`, the last step of a whole point, the points behind it alone. */
  table({ after, most = mostPoints }: { readonly after?: number; readonly most?: number } = {}): Table {
    const every = this.every(most);
    const first = after === undefined ? 0 : every * Math.floor(this.place(after + 1) / every);
    const starts: number[] = [];
    for (let i = first; i < this.steps.length; i += every) starts.push(i);
    const columns: { [name: string]: (number | null)[] } = {};
    for (const [name, column] of this.columns)
      columns[name] = starts.map((start) => rounded(meanOf(column, start, Math.min(this.steps.length, start + every), absent(name))));
    return { every, steps: starts.map((start) => this.steps[Math.min(this.steps.length, start + every) - 1]), columns };
  }

  /** Index of the first step at or above one. */
  private place(step: number): number {
    let [low, high] = [0, this.steps.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.steps[middle] < step) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** What a step has where it says nothing: a reason that nobody gave is a share of 0. */
const absent = (name: string): 0 | null => (name.startsWith("reason.") ? 0 : null);

function meanOf(column: readonly (number | null)[], from: number, to: number, otherwise: 0 | null): number | null {
  let [sum, count] = [0, 0];
  for (let i = from; i < to; i++) {
    const value = column[i] ?? otherwise;
    if (value === null) continue;
    sum += value;
    count++;
  }
  return count === 0 ? null : sum / count;
}

/** Six digits: more than a picture shows. */
export const rounded = (value: number | null): number | null => (value === null || !Number.isFinite(value) ? null : Number(value.toPrecision(6)));
