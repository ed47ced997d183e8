import type { Verdict } from "../../src/core/verdict.js";

/** A verdict without what a clock measured. */
export function withoutElapsed({ elapsedMs: _, ...verdict }: Verdict): Omit<Verdict, "elapsedMs"> {
  return verdict;
}
