/** A comparison in the terminal: tables, the curve of each arm on one scale, notes. */
import type { ArmReport, Difference, Mean, Report } from "../compare/report.js";
import type { PairedInterval } from "../evaluate/paired.js";
import { curve } from "./curve.js";
import { table } from "./output.js";

export const noInterval = "no interval";

export function reportLines(report: Report, bold: (text: string) => string): string[] {
  const { metric, arms, notes } = report;
  const show = numbersOf(report);
  const threshold = arms[0]?.threshold;
  const difference = arms.length > 1 ? `, and the difference to ${arms[0].label}` : "";
  return [
    bold(`${metric} at the end${difference}; intervals of 95 %`),
    ...table(
      [
        ["", "runs", "mean", "over seeds", "difference", "over seeds", "over problems"],
        ...arms.map(({ label, runs, final, difference }) => [label, String(runs.length), ...meanCells(final, show), ...differenceCells(difference, show)]),
      ],
      [1, 2, 4],
    ),
    "",
    bold("on the way"),
    ...table(
      [
        [
          "",
          "area",
          "difference",
          "over seeds",
          ...(threshold ? [`steps to ${show.value(threshold.value)}`, "reached"] : []),
          "tokens drawn",
          "trained",
          "evaluation",
        ],
        ...arms.map((arm) => [arm.label, ...wayCells(arm, show)]),
      ],
      threshold ? [1, 2, 4, 5, 6, 7, 8] : [1, 2, 4, 5, 6],
    ),
    ...arms.flatMap((arm) => curveLines(arm, report, bold)),
    ...(notes.length > 0 ? ["", ...notes.map((note) => `note: ${note}`)] : []),
  ];
}

interface Numbers {
  value(value: number): string;
  change(value: number): string;
}

/** Scores between 0 and 1 as per cent, and their differences in points; other metrics as they are. */
function numbersOf({ arms }: Report): Numbers {
  const all = arms.flatMap(({ final, curve: points }) => [final.mean, ...points.map(({ high }) => high), ...points.map(({ low }) => low)]);
  const share = all.every((value) => value >= 0 && value <= 1);
  const value = (x: number): string => (share ? `${(100 * x).toFixed(1)} %` : Number(x.toPrecision(4)).toString());
  const change = (x: number): string => `${x > 0 ? "+" : ""}${share ? (100 * x).toFixed(1) : Number(x.toPrecision(4))}`;
  return { value, change };
}

const meanCells = ({ mean, interval }: Mean, { value }: Numbers): string[] => [value(mean), span(interval, value)];
const span = (interval: PairedInterval | null, show: (value: number) => string): string =>
  interval ? `${show(interval.low)} to ${show(interval.high)}` : noInterval;

function differenceCells(difference: Difference | null, { change }: Numbers): string[] {
  if (difference === null) return ["", "", ""];
  return [change(difference.mean), span(difference.seeds, change), span(difference.problems, change)];
}

function wayCells({ area, area_difference, threshold, tokens, runs }: ArmReport, { value, change }: Numbers): string[] {
  const reached = threshold ? [threshold.steps === null ? "–" : String(threshold.steps), `${threshold.reached} of ${runs.length}`] : [];
  return [
    area ? value(area.mean) : "–",
    area_difference ? change(area_difference.mean) : "",
    area_difference ? span(area_difference.seeds, change) : "",
    ...reached,
    ...[tokens.sampled, tokens.trained, tokens.evaluation].map((count) => Math.round(count).toLocaleString("en-US")),
  ];
}

/** Places of a drawn curve, two a column. */
const drawn = 80;

/** Mean of the arm's runs over the steps, straight between those measured; all arms on one scale. */
function curveLines({ label, curve: points }: ArmReport, { arms }: Report, bold: (text: string) => string): string[] {
  if (points.length < 2) return [];
  const means = arms.flatMap((arm) => arm.curve.map(({ mean }) => mean));
  const [first, last] = [points[0].step, points[points.length - 1].step];
  const values = Array.from({ length: drawn }, (_, i) => between(points, first + (i / (drawn - 1)) * (last - first)));
  const lines = curve(values, { low: Math.min(...means), high: Math.max(...means), height: 5 });
  return ["", bold(`${label} (steps ${first} to ${last})`), ...lines.slice(0, -1)];
}

function between(points: ArmReport["curve"], step: number): number {
  const next = Math.max(
    1,
    points.findIndex((point) => point.step >= step),
  );
  const [a, b] = [points[next - 1], points[next]];
  return a.mean + ((step - a.step) / (b.step - a.step)) * (b.mean - a.mean);
}
