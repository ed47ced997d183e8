import { ArgumentError } from "../core/errors.js";
import type { Batch, Trajectory } from "../core/trajectory.js";
import { trained } from "../core/trajectory.js";
import { turnOfTokens } from "../losses/ratio.js";
import { type Level, levels } from "./contract.js";

const rowsOfBatch = new WeakMap<Batch, readonly Trajectory[]>();

/** The trajectories of a batch that enter statistics and loss, in the order of groups and members. */
export function rowsOf(batch: Batch): readonly Trajectory[] {
  let rows = rowsOfBatch.get(batch);
  if (!rows) {
    rows = batch.groups.flatMap(trained);
    rowsOfBatch.set(batch, rows);
  }
  return rows;
}

/** Indices into `rowsOf(batch)`, a group. */
export function rowsByGroup(batch: Batch): number[][] {
  let next = 0;
  return batch.groups.map((group) => trained(group).map(() => next++));
}

/** Lifts a function of one group's rows to the batch: [rows] numbers, in row order. */
export function perGroup<T>(batch: Batch, f: (rows: readonly number[], group: number) => readonly T[]): T[] {
  return rowsByGroup(batch).flatMap((rows, g) => [...f(rows, g)]);
}

/** Values of one level: [groups] or [rows] numbers, or [rows] arrays over turns or tokens. */
export interface LevelValues {
  group: Float64Array;
  trajectory: Float64Array;
  turn: readonly Float64Array[];
  token: readonly Float64Array[];
}

/**
 * Coefficients on four levels. Each level is a broadcast of the level above until something writes it, and all are kept.
 * Immutable: every write gives a new credit, so the run can keep the coefficients after each stage.
 */
export class Credit {
  private constructor(
    readonly batch: Batch,
    private readonly values: { readonly [L in Level]?: LevelValues[L] },
    private readonly cache: { [L in Level]?: LevelValues[L] } = {},
  ) {}

  /** All zero, nothing written. */
  static zero(batch: Batch): Credit {
    return new Credit(batch, {});
  }

  /** Whether something wrote this level. */
  wrote(level: Level): boolean {
    return this.values[level] !== undefined;
  }

  get group(): Float64Array {
    return this.at("group", () => new Float64Array(this.batch.groups.length));
  }

  get trajectory(): Float64Array {
    return this.at("trajectory", () => Float64Array.from(perGroup(this.batch, (rows, g) => rows.map(() => this.group[g] as number))));
  }

  /** One number a `turn` span; a response without such spans is one turn. */
  get turn(): readonly Float64Array[] {
    return this.at("turn", () => rowsOf(this.batch).map((row, i) => new Float64Array(turnsOf(row)).fill(this.trajectory[i] as number)));
  }

  /** One number a response token; tokens outside all turns take the trajectory's. */
  get token(): readonly Float64Array[] {
    return this.at("token", () => {
      const turn = this.turn;
      return rowsOf(this.batch).map((row, i) => {
        const whole = this.trajectory[i] as number;
        const values = turn[i] as Float64Array;
        return Float64Array.from(turnOfTokens(row), (u) => (u < 0 ? whole : (values[u] as number)));
      });
    });
  }

  /** A credit with one level replaced. Refused when a finer level was written before, because that would be lost: scale it instead. */
  with<L extends Level>(level: L, values: LevelValues[L]): Credit {
    const finer = levels.slice(levels.indexOf(level) + 1).find((l) => this.wrote(l));
    if (finer) {
      throw new ArgumentError({
        place: `credit at the ${level} level`,
        cause: `the ${finer} level was written before and would be lost`,
        mend: `multiply with scaled("${level}", factors), or write the ${finer} level`,
      });
    }
    this.checkShape(level, values);
    return new Credit(this.batch, { ...this.values, [level]: values });
  }

  /** A credit with one level, and all finer ones, multiplied by factors of that level's shape. */
  scaled<L extends Level>(level: L, factors: LevelValues[L]): Credit {
    this.checkShape(level, factors);
    const spread = new Credit(this.batch, { [level]: factors });
    const next: { [M in Level]?: LevelValues[M] } = { ...this.values };
    for (const l of levels.slice(levels.indexOf(level))) {
      if (l !== level && !this.wrote(l)) continue;
      if (l === "group" || l === "trajectory") next[l] = this[l].map((v, i) => v * (spread[l][i] as number));
      else next[l] = this[l].map((row, i) => row.map((v, j) => v * ((spread[l][i] as Float64Array)[j] as number)));
    }
    return new Credit(this.batch, next);
  }

  private at<L extends Level>(level: L, broadcast: () => LevelValues[L]): LevelValues[L] {
    const written = this.values[level] ?? this.cache[level];
    if (written !== undefined) return written as LevelValues[L];
    const values = broadcast();
    (this.cache as { [M in Level]?: unknown })[level] = values;
    return values;
  }

  private checkShape<L extends Level>(level: L, values: LevelValues[L]): void {
    const rows = rowsOf(this.batch);
    const length = level === "group" ? this.batch.groups.length : rows.length;
    let cause = values.length === length ? "" : `${values.length} entries were given for ${length} ${level === "group" ? "groups" : "trajectories"}`;
    if (!cause && (level === "turn" || level === "token")) {
      rows.forEach((row, i) => {
        const given = (values[i] as Float64Array).length;
        const wanted = level === "turn" ? turnsOf(row) : row.response.length;
        if (given !== wanted) cause ||= `${given} entries were given for the ${wanted} ${level}s of ${row.key}`;
      });
    }
    if (cause) throw new ArgumentError({ place: `credit at the ${level} level`, cause, mend: "give one number for each, in the order of rowsOf(batch)" });
  }
}

function turnsOf(row: Trajectory): number {
  return row.spans.reduce((n, span) => n + (span.name === "turn" ? 1 : 0), 0) || 1;
}
