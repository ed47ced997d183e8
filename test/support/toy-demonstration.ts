/** A demonstration in a folder of its own, whose arms are functions. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A demonstration whose arms draw a number from the seed; what runs is written to a file beside it. */
export const written = (more = ""): string => `
import { appendFileSync } from "node:fs";
import { defineDemonstration, randomKey, Stream } from "touchstone-rl";

const arm = (gain) => ({
  run: async ({ arm, seed, options }) => {
    appendFileSync(new URL("ran.txt", import.meta.url), arm + " " + seed + "\\n");
    const noise = new Stream(randomKey({ seed, purpose: "toy" })).next();
    return { score: noise + gain + (options.offset ?? 0), other: seed === 1 ? undefined : 1 };
  },
});
export default defineDemonstration({
  paper: "our choice",
  method: "toy",
  testbed: "A number of the seed.",
  arms: { plain: arm(0), better: { about: "a tenth more", ...arm(0.1) } },
  metrics: { score: { kind: "returned" }, other: { kind: "returned" } },
  claims: { more: { kind: "above", metric: "score", arm: "better", than: "plain" } },
  sabotage: { about: "no gain", stands: "better", arm: arm(0) },
  quick: { seeds: 1 },
  seeds: 3,
  minutes: 1,
  ${more}
});
`;

export function place(text = written()): { readonly file: string; readonly out: string; readonly ran: () => string[] } {
  const folder = mkdtempSync(join(tmpdir(), "touchstone-reproduce-"));
  mkdirSync(join(folder, "toy"));
  const file = join(folder, "toy", "demonstration.ts");
  writeFileSync(file, text);
  const log = join(folder, "toy", "ran.txt");
  return { file, out: join(folder, "out"), ran: () => (existsSync(log) ? readFileSync(log, "utf8").trim().split("\n").sort() : []) };
}
