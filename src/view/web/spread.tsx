/** A difference with its intervals, drawn around 0 on a scale that the rows of a table share. */
import type { JSX } from "preact";
import type { Interval } from "../shapes.js";

export interface SpreadProps {
  readonly mean: number | null;
  /** Thick; over seeds. */
  readonly interval: Interval | null;
  /** Thin, below; over problems. */
  readonly thin?: Interval | null;
  /** Single pairs, as dots. */
  readonly values?: readonly (number | null)[];
  /** Ends of the scale: minus and plus this. */
  readonly most: number;
}

const size = { width: 170, height: 24 };

export function Spread({ mean, interval, thin, values = [], most }: SpreadProps): JSX.Element {
  const x = (value: number): number => size.width / 2 + (size.width / 2 - 6) * Math.min(1, Math.max(-1, value / most));
  const side = interval === null ? "open" : interval.low > 0 ? "above" : interval.high < 0 ? "below" : "open";
  return (
    <svg class={`spread ${side}`} width={size.width} height={size.height} aria-hidden="true">
      <line class="grid" x1={x(0)} x2={x(0)} y1={0} y2={size.height} />
      {values.map((value, i) => value !== null && <circle key={i} class="pair" cx={x(value)} cy={6} r={2} />)}
      {thin && <line class="thin" x1={x(thin.low)} x2={x(thin.high)} y1={20} y2={20} />}
      {interval && <line class="thick" x1={x(interval.low)} x2={x(interval.high)} y1={13} y2={13} />}
      {mean !== null && <circle class="mean" cx={x(mean)} cy={13} r={4} />}
    </svg>
  );
}

/** The largest distance from 0 of what will be drawn. */
export function mostOf(rows: readonly Pick<SpreadProps, "mean" | "interval" | "thin" | "values">[]): number {
  const all = rows.flatMap(({ mean, interval, thin, values = [] }) => [mean, interval?.low, interval?.high, thin?.low, thin?.high, ...values]);
  return Math.max(1e-9, ...all.map((value) => Math.abs(value ?? 0)));
}
