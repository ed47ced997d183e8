/** Numbers of reproductions as text, for the terminal and for docs/reproductions.md. */
import type { PairedInterval } from "../evaluate/paired.js";
import type { Reproduction } from "./reproduce.js";

/** Four significant digits, without needless zeros. */
export const digits = (value: number): string => Number(value.toPrecision(4)).toString();

const signed = (value: number): string => `${value > 0 ? "+" : ""}${digits(value)}`;

/** `0.612 (0.58 to 0.65)`; a dash where there is nothing. */
export function spanText(mean: number | null, interval: PairedInterval | null): string {
  if (mean === null) return "-";
  return interval === null ? digits(mean) : `${digits(mean)} (${digits(interval.low)} to ${digits(interval.high)})`;
}

/** The numbers of all arms as rows of cells, a header first. */
export function armRows({ arms }: Pick<Reproduction, "arms">): string[][] {
  const metrics = Object.keys(arms[0]?.metrics ?? {});
  return [
    ["arm", ...metrics],
    ...arms.map(({ arm, metrics: of }) => [arm, ...metrics.map((metric) => spanText(of[metric]?.mean ?? null, of[metric]?.interval ?? null))]),
  ];
}

/** The claims as rows of cells, a header first. */
export function claimRows({ claims }: Pick<Reproduction, "claims">): string[][] {
  return [
    ["claim", "statement", "left side, mean of the pairs", "95 %", "pairs", ""],
    ...claims.map(({ claim, statement, mean, interval, values, outcome }) => [
      claim,
      statement,
      mean === null ? "-" : signed(mean),
      interval === null ? "-" : `${signed(interval.low)} to ${signed(interval.high)}`,
      String(values.filter((value) => value !== null).length),
      outcome ?? "",
    ]),
  ];
}
