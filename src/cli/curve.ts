/** A curve of numbers as lines of text, for a terminal: quarter blocks, two values a column and two a row. */

const quarters = [" ", "▘", "▝", "▀", "▖", "▌", "▞", "▛", "▗", "▚", "▐", "▜", "▄", "▙", "▟", "█"] as const;

export interface CurveOptions {
  /** Columns for the curve itself. Default 60. */
  readonly width?: number;
  /** Rows. Default 8. */
  readonly height?: number;
  /** Ends of the axis; default: those of the values. */
  readonly low?: number;
  readonly high?: number;
  /** What the first value is the value of, a step say. Default 1. */
  readonly first?: number;
}

/** The curve with its axis at the left and the first and last x below; no lines for no values. Values are averaged where there are more than fit; what is not there is a gap. */
export function curve(values: readonly (number | undefined)[], options: CurveOptions = {}): string[] {
  const known = values.filter((value) => value !== undefined);
  if (known.length === 0) return [];
  const { width = 60, height = 8, low = Math.min(...known), high = Math.max(...known), first = 1 } = options;
  const columns = Math.min(2 * width, Math.max(2, values.length));
  const points = Array.from({ length: columns }, (_, i) => meanOf(values, (i * values.length) / columns, ((i + 1) * values.length) / columns));
  const span = high > low ? high - low : 1;
  const levels = 2 * height;
  const level = (value: number): number => Math.min(levels - 1, Math.max(0, Math.round(((value - low) / span) * (levels - 1))));
  const cells = Array.from({ length: height }, () => new Array<number>(Math.ceil(columns / 2)).fill(0));
  points.forEach((value, i) => {
    if (value === undefined) return;
    const from = level(value);
    const last = points[i - 1];
    const before = last === undefined ? from : level(last);
    // Steep parts are drawn as a line, half of it on each side.
    const middle = (from + before) / 2;
    const bottom = Math.min(from, Math.ceil(middle));
    const top = Math.max(from, Math.floor(middle));
    for (let y = bottom; y <= top; y++) {
      const row = cells[height - 1 - Math.floor(y / 2)];
      row[Math.floor(i / 2)] |= (y % 2 === 1 ? 1 : 4) << (i % 2);
    }
  });
  const labels = Array.from({ length: height }, (_, r) => (r === height - 1 ? short(low) : r === 0 && high > low ? short(high) : ""));
  const margin = Math.max(...labels.map(({ length }) => length));
  const lines = cells.map((row, r) => `${labels[r].padStart(margin)} ┤${row.map((cell) => quarters[cell]).join("")}`.trimEnd());
  const drawn = Math.ceil(columns / 2);
  const [from, to] = [String(first), String(first + values.length - 1)];
  return [
    ...lines,
    `${" ".repeat(margin)} └${"─".repeat(drawn)}`,
    `${" ".repeat(margin + 2)}${from}${to.padStart(Math.max(to.length + 1, drawn - from.length))}`,
  ];
}

const eighths = "▁▂▃▄▅▆▇█";

/** The curve in one line, from its lowest to its highest value; "" for no values. Values are averaged where there are more than fit. */
export function sparkline(values: readonly number[], width = 32): string {
  if (values.length === 0) return "";
  const columns = Math.min(width, values.length);
  const points = Array.from({ length: columns }, (_, i) => meanOf(values, (i * values.length) / columns, ((i + 1) * values.length) / columns) ?? values[0]);
  const [low, high] = [Math.min(...points), Math.max(...points)];
  return points.map((value) => eighths[high > low ? Math.round(((value - low) / (high - low)) * (eighths.length - 1)) : 0]).join("");
}

function meanOf(values: readonly (number | undefined)[], from: number, to: number): number | undefined {
  const part = values.slice(Math.floor(from), Math.max(Math.floor(from) + 1, Math.floor(to))).filter((value) => value !== undefined);
  if (part.length === 0) return undefined;
  return part.reduce((a, b) => a + b, 0) / part.length;
}

function short(value: number): string {
  return Math.abs(value) >= 100 || Number.isInteger(value) ? value.toFixed(0) : value.toPrecision(2);
}
