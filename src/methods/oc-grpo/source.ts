/** Selection over some of the problems: shuffled epochs of those that have a guidance level. */
import type { Cell, Lab, ProblemSource } from "../contract.js";
import { type EpochsState, shuffledEpochs } from "../epochs.js";

/** Guidance levels by problem, 0 for none and n for the n-th share, and the epochs over those problems; null before setup. */
export type OcGrpoState = { readonly epochs: EpochsState; readonly content: string; readonly levels: { readonly [problem: string]: number } | null };

/** The problems of a source that have a level, with its mixture and weights. */
export function hardSource(source: ProblemSource, levels: { readonly [problem: string]: number }): ProblemSource {
  const indices = Array.from({ length: source.size }, (_, i) => i).filter((i) => Object.hasOwn(levels, source.get(i).key));
  if (indices.length === source.size) return source;
  const at = new Map(indices.map((index, i) => [index, i]));
  const mixture = source.mixture
    ?.map(({ indices: own, ...rest }) => ({ ...rest, indices: own.flatMap((index) => at.get(index) ?? []) }))
    .filter(({ indices: own }) => own.length > 0);
  return {
    size: indices.length,
    get: (i) => source.get(indices[i] as number),
    ...(mixture && { mixture }),
    ...(source.weights && { weights: indices.map((index) => source.weights?.[index] as number) }),
  };
}

/** The same lab with other problems. */
const withProblems = (lab: Lab, problems: ProblemSource): Lab => Object.create(lab, { problems: { value: problems } }) as Lab;

/** Shuffled epochs over the problems that have a level; over all before there are any. */
export function epochsOver(state: Cell<OcGrpoState>): ReturnType<typeof shuffledEpochs> {
  const own = shuffledEpochs({ get: () => state.get().epochs, set: (epochs) => state.set({ ...state.get(), epochs }) });
  const sources = new WeakMap<ProblemSource, ProblemSource>();
  return {
    propose(n, lab) {
      const { levels } = state.get();
      if (levels === null) return own.propose(n, lab);
      const known = sources.get(lab.problems) ?? hardSource(lab.problems, levels);
      sources.set(lab.problems, known);
      return own.propose(n, withProblems(lab, known));
    },
    learn: own.learn,
  };
}
