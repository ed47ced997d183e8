/** A task gives the same problems for the same seed, or no run of it could be resumed: tried before any work. */
import { DataError } from "../core/errors.js";
import { canonicalJson, type Json } from "../core/json.js";
import type { Split, Task } from "./contract.js";

/** How many problems are compared. */
const compared = 16;

export interface Repeat {
  readonly split: Split;
  readonly seed: number;
  /** How many problems are wanted: there may be no more. */
  readonly wanted: number;
  readonly place: string;
  /** The same task made anew; absent: the task itself is asked twice. */
  readonly again?: Task | undefined;
}

/** Throws DataError where the first problems of a split differ from one time to the next. */
export function refuseUnlessRepeatable(task: Task, { split, seed, wanted, place, again = task }: Repeat): void {
  const [first, second] = [task, again].map((each) =>
    each.problems(split, Math.min(compared, wanted, each.size(split)), seed).map((problem) => canonicalJson(problem as unknown as Json)),
  );
  refuseUnlessAlike(first as string[], second as string[], place);
}

/** The same of two lists of texts. */
export function refuseUnlessAlike(first: readonly string[], second: readonly string[], place: string): void {
  if (first.length === second.length && first.every((text, i) => text === second[i])) return;
  throw new DataError({
    place,
    cause: "it gives other problems each time it is asked with the same seed, so no run of it could be resumed",
    mend: "draw with the random numbers that `draw` is given, never with Math.random() or the time",
  });
}
