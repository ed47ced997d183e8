/** Problems chosen and weighted by how often a policy solves them, as `touchstone profile` measured it. */
import { ConfigError, DataError } from "../core/errors.js";
import { type Problem, placeOfProblem } from "../core/problem.js";
import { readProfile } from "../evaluate/profile.js";
import type { TrainConfig } from "./config.js";

type ProfileOptions = NonNullable<TrainConfig["profile"]>;

export interface ByProfile {
  readonly problems: readonly Problem[];
  /** By key; absent where all are alike. */
  readonly weights?: ReadonlyMap<string, number>;
}

/**
 * The problems whose pass rate lies within the limits, in their order. `verifier`: identity of the run's, which is noted
 * where the profile had another. Throws DataError for problems that the profile lacks, and where none is left.
 */
export function byProfile(problems: readonly Problem[], options: ProfileOptions, verifier: string, notes: string[]): ByProfile {
  const { file, min_pass, max_pass, unprofiled, weight } = options;
  if (min_pass > max_pass) throw new ConfigError({ place: "profile.min_pass", cause: `it is ${min_pass}, above max_pass ${max_pass}`, mend: "set it lower" });
  const { head, lines } = readProfile(file);
  const known = new Map(lines.map((line) => [line.key, line]));
  const passOf = ({ key }: Problem): number | null => known.get(key)?.pass ?? null;
  const missing = problems.filter((problem) => passOf(problem) === null);
  if (missing.length > 0 && unprofiled === "refuse") {
    const [first] = missing as [Problem, ...Problem[]];
    throw new DataError({
      place: file,
      cause: `it has no pass rate of ${missing.length} of the ${problems.length} problems (the first: ${placeOfProblem(first)})`,
      mend:
        missing.length === problems.length
          ? "give the profile of this data, with the same columns and system"
          : "profile these too, or set profile.unprofiled to drop or keep",
      data: { missing: missing.length, problems: problems.length },
    });
  }
  const kept = problems.filter((problem) => {
    const pass = passOf(problem);
    return pass === null ? unprofiled === "keep" : pass >= min_pass && pass <= max_pass;
  });
  if (kept.length === 0) {
    throw new DataError({
      place: file,
      cause: `none of the ${problems.length} problems has a pass rate from ${min_pass} to ${max_pass}`,
      mend: "widen profile.min_pass and profile.max_pass",
    });
  }
  notes.push(`${kept.length} of ${problems.length} problems are kept by their pass rate under ${head.model} (k ${head.k}, temperature ${head.temperature})`);
  if (head.truncation) notes.push("the profile was drawn from the most likely tokens alone, and training draws from the whole distribution");
  if (head.verifier !== verifier) notes.push(`the profile was judged by ${head.verifier}, and this run by ${verifier}`);
  if (weight === "equal") return { problems: kept };
  // A problem without a pass rate is weighted as one that was never asked.
  return { problems: kept, weights: new Map(kept.map((problem) => [problem.key, spread(passOf(problem) ?? 0, known.get(problem.key)?.scored ?? 0)])) };
}

/** E[p(1 - p)] after n answers with the mean score `pass`, p uniform before: ab / ((a + b)(a + b + 1)), a = n pass + 1, b = n(1 - pass) + 1. */
export function spread(pass: number, n: number): number {
  const a = n * pass + 1;
  const b = n * (1 - pass) + 1;
  return (a * b) / ((a + b) * (a + b + 1));
}
