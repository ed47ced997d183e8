/**
 * Which problem comes next: shuffled epochs, of one set or of several that are mixed by weight. Whatever comes is a function
 * of the run's seed and of how many problems were handed out before, so a resumed run goes on in the same order.
 */
import { ConfigError } from "../core/errors.js";
import { Stream, uniform } from "../core/random.js";
import type { Cell } from "./cell.js";
import type { Lab, OneSlots, ProblemSource } from "./contract.js";

/** Problems handed out so far; of a mixture, from each source too. */
export type EpochsState = { readonly cursor: number } | { readonly cursor: number; readonly taken: { readonly [source: string]: number } };

/**
 * Problems in shuffled order, epoch after epoch; each epoch has its own order. Of a mixture the source of each place is drawn
 * anew with probabilities as the weights are, and its own epochs go on by one. Weighted problems come up in an epoch as
 * often as their weights say, rounded up or down.
 */
export function shuffledEpochs(state: Cell<EpochsState>): OneSlots["select"] {
  const known = new Map<string, { readonly epoch: number; readonly order: readonly number[] }>();
  /** The index at a place of a set's own epochs. */
  const at = (position: number, indices: readonly number[], source: string, lab: Lab): number => {
    const epoch = Math.floor(position / indices.length);
    let current = known.get(source);
    if (current?.epoch !== epoch) {
      current = { epoch, order: orderOf(epoch, indices, source, lab) };
      known.set(source, current);
    }
    return current.order[position % indices.length] as number;
  };
  let all: readonly number[] | undefined;
  return {
    propose(n, lab) {
      const { problems } = lab;
      if (problems.size === 0) throw new ConfigError({ place: "data", cause: "it has no problem", mend: "give at least one" });
      const before = state.get();
      const { cursor } = before;
      const places = Array.from({ length: n }, (_, i) => cursor + i);
      if (problems.mixture === undefined) {
        if (all?.length !== problems.size) all = Array.from({ length: problems.size }, (_, i) => i);
        state.set({ cursor: cursor + n });
        return places.map((place) => problems.get(at(place, all as readonly number[], "", lab)));
      }
      const next: { [source: string]: number } = "taken" in before ? { ...before.taken } : {};
      const proposed = places.map((place) => {
        const { name, indices } = sourceAt(place, problems.mixture as Mixture, lab);
        const position = Object.hasOwn(next, name) ? (next[name] as number) : 0;
        Object.defineProperty(next, name, { value: position + 1, writable: true, enumerable: true, configurable: true });
        return problems.get(at(position, indices, name, lab));
      });
      state.set({ cursor: cursor + n, taken: next });
      return proposed;
    },
    learn() {},
  };
}

type Mixture = NonNullable<ProblemSource["mixture"]>;

/** The source of a place: a draw that depends on the seed and the place alone. */
export function sourceAt(place: number, mixture: Mixture, lab: Pick<Lab, "key">): Mixture[number] {
  const total = mixture.reduce((sum, { weight }) => sum + weight, 0);
  const point = uniform(lab.key({ purpose: "mixture" }), place) * total;
  let end = 0;
  for (const source of mixture) {
    end += source.weight;
    if (point < end) return source;
  }
  return mixture.at(-1) as Mixture[number];
}

function orderOf(epoch: number, indices: readonly number[], source: string, lab: Lab): number[] {
  const purpose = source === "" ? "shuffle" : `shuffle/${source}`;
  const random = new Stream(lab.key({ purpose, step: epoch }));
  const { weights } = lab.problems;
  return random.shuffle(weights === undefined ? indices : repeated(indices, weights, random.next()));
}

/**
 * As many entries as there are indices, each index n·w/Σw times, rounded up or down so that the expectation over `offset`
 * (uniform in [0, 1)) is exact: systematic sampling (Madow 1949).
 */
export function repeated(indices: readonly number[], weights: readonly number[], offset: number): number[] {
  const n = indices.length;
  const total = indices.reduce((sum, index) => sum + (weights[index] as number), 0);
  const chosen: number[] = [];
  let sum = 0;
  for (const index of indices) {
    sum += (weights[index] as number) / total;
    // The last sum may miss 1 by rounding, and there are n places whatever it is.
    const end = index === indices[n - 1] ? n : Math.min(n, Math.max(0, Math.ceil(n * sum - offset)));
    while (chosen.length < end) chosen.push(index);
  }
  return chosen;
}
