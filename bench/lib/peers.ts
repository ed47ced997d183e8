/** Where the peers are, and how both sides are run under the same conditions (bench/peers/README.md). */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { totalmem } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { allocatorSettings } from "../../src/engine/remote/spawn.js";

const scripts = fileURLToPath(new URL("../peers", import.meta.url));
const peers = process.env.TOUCHSTONE_PEERS ?? join(scripts, "venv");
const python = join(peers, "bin", "python");

/** Their folder, or why there is none. */
export const peersSaid = existsSync(python) ? peers : "not here (bench/peers/README.md says how to install them)";

/** The peers' own settings (bench/peers/common.py), for both sides. */
export const allocator = {
  ...allocatorSettings(totalmem(), 1),
  MALLOC_TOP_PAD_: "268435456",
  MALLOC_MMAP_THRESHOLD_: "17179869184",
  MALLOC_TRIM_THRESHOLD_: "34359738368",
};

/** The line that a peer's script prints; undefined where the peers are not installed. */
export async function peer(script: string, args: readonly string[]): Promise<{ readonly [key: string]: number } | undefined> {
  if (!existsSync(python)) return undefined;
  const { stdout } = await promisify(execFile)(python, [join(scripts, script), ...args], { maxBuffer: 2 ** 24 });
  return JSON.parse(stdout.trim().split("\n").at(-1) as string) as { readonly [key: string]: number };
}

/** Whether a product rate taken before and after moved by at most 15 %. */
export const steady = (before: number, after: number): boolean => Math.abs(before - after) / Math.max(before, after) <= 0.15;

export const best = (values: readonly number[]): number => Math.min(...values);
export const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
export const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);
export const share = (x: number): string => `${(100 * x).toFixed(0)} %`;
export const say = (...cells: (string | number)[]) => console.log(cells.join("  "));
