/** The problems that a run draws from: all of them as one set, or as sources that share the places of a batch. */
import { ConfigError } from "../core/errors.js";
import { notePlace, type Problem, placeOfProblem } from "../core/problem.js";
import type { ProblemSource } from "../methods/contract.js";
import type { Share } from "../tasks/data.js";

export interface SourceParts {
  readonly problems: readonly Problem[];
  readonly mixture?: readonly Share[];
  /** By key, how often a problem is to come up relative to the others. */
  readonly weights?: ReadonlyMap<string, number>;
  /** Problems a batch. */
  readonly batch: number;
}

/** Throws ConfigError for a source that has no problem left, or fewer than its share of one batch. */
export function problemSource({ problems, mixture, weights, batch }: SourceParts): ProblemSource {
  const total = mixture?.reduce((sum, { weight }) => sum + weight, 0) ?? 0;
  const sources = mixture?.map(({ name, weight }, i) => {
    const indices = problems.flatMap(({ tags }, at) => (mixture.length === 1 || tags?.source === name ? [at] : []));
    const share = weight / total;
    if (indices.length < Math.max(1, share * batch)) {
      throw new ConfigError({
        place: `data.sources[${i}]`,
        cause: `${name} has ${indices.length} problems to train on, and its weight gives it ${Math.round(1000 * share) / 10} % of the ${batch} places of a batch, where none is twice`,
        mend: "lower its weight or problems, or give it more problems",
        data: { source: name, problems: indices.length, share },
      });
    }
    return { name, weight, indices };
  });
  return {
    size: problems.length,
    get: (index) => problems[index] as Problem,
    ...(sources && { mixture: sources }),
    ...(weights && { weights: problems.map(({ key }) => weights.get(key) ?? 1) }),
  };
}

const withoutReference = new WeakMap<Problem, Problem>();

/** The same problems without their references and privileged data. */
export function withheldSource(source: ProblemSource): ProblemSource {
  return { ...source, get: (index) => withheld(source.get(index)) };
}

function withheld(problem: Problem): Problem {
  const known = withoutReference.get(problem);
  if (known !== undefined) return known;
  const { reference, privileged: _, ...rest } = problem;
  const hidden: Problem = Object.freeze({ ...rest, reference: { state: "withheld", version: reference.version } } satisfies Problem);
  notePlace(hidden, placeOfProblem(problem));
  withoutReference.set(problem, hidden);
  return hidden;
}
