/** Selection by expected learnability: which problems come next, and what their answers change. */
import type { Json } from "../../core/json.js";
import type { Problem } from "../../core/problem.js";
import { uniform } from "../../core/random.js";
import type { Trajectory } from "../../core/trajectory.js";
import { scoreOf } from "../../core/verdict.js";
import { varied } from "../advantages.js";
import type { Cell, Lab, OneSlots, Outcome } from "../contract.js";
import { sourceAt } from "../epochs.js";
import { expectedLearnability } from "./learnability.js";

/** What is kept between steps. Proposals change `cursor` and `taken`, outcomes `counts` and `spent`, so that under overlap neither is in the other's way. */
export type ThinkPriorState = {
  /** Of the problems and options that `prior` was made for. */
  readonly content: string;
  /** By problem, the anchor's pass rate. */
  readonly prior: { readonly [key: string]: number | null };
  /** By problem, its answers so far: right, wrong. */
  readonly counts: { readonly [key: string]: readonly [right: number, wrong: number] };
  /** Places handed out. */
  readonly cursor: number;
  /** What the last step was given, and the mean of what was expected of it. */
  readonly taken: { readonly step: number; readonly keys: readonly string[]; readonly expected: number };
  /** Answers of the last step that was learnt from: drawn, in groups that were trained on, in groups whose rewards are all equal. */
  readonly spent: { readonly generated: number; readonly used: number; readonly silent: number };
} & { readonly [key: string]: Json };

export const initialState: ThinkPriorState = {
  content: "",
  prior: {},
  counts: {},
  cursor: 0,
  taken: { step: 0, keys: [], expected: 0 },
  spent: { generated: 0, used: 0, silent: 0 },
};

export interface Belief {
  readonly kappa: number;
  readonly epsilon: number;
  /** Beta(1, 1) for all problems. */
  readonly flat: boolean;
}

const countsOf = ({ counts }: Pick<ThinkPriorState, "counts">, key: string): readonly [number, number] =>
  Object.hasOwn(counts, key) ? (counts[key] as readonly [number, number]) : [0, 0];

/** Beta parameters of a problem: the prior's, plus what its answers were. */
export function posterior({ prior, counts }: Pick<ThinkPriorState, "prior" | "counts">, key: string, { kappa, epsilon, flat }: Belief): [a: number, b: number] {
  const rate = (Object.hasOwn(prior, key) ? prior[key] : null) ?? 0.5;
  const [right, wrong] = countsOf({ counts }, key);
  return flat ? [1 + right, 1 + wrong] : [kappa * rate + epsilon + right, kappa * (1 - rate) + epsilon + wrong];
}

/** The problems with the largest expected learnability that the step does not have yet, ties in the order of the pool; a share of the places is drawn evenly. */
export function mostLearnable(state: Cell<ThinkPriorState>, belief: Belief, explore: number): OneSlots["select"] {
  return {
    propose(n, lab) {
      const { problems } = lab;
      const now = state.get();
      const taken = now.taken.step === lab.step ? now.taken : { step: lab.step, keys: [], expected: 0 };
      const gone = new Set(taken.keys);
      const expected = Array.from({ length: problems.size }, (_, i) =>
        expectedLearnability(...posterior(now, problems.get(i).key, belief), lab.settings.group),
      );
      const ranked = new Map<string, readonly number[]>();
      const chosen: number[] = [];
      for (let place = now.cursor; place < now.cursor + n; place++) {
        const index = placed(place, { lab, ranked, gone, expected, explore });
        if (index === undefined) continue; // All problems of this place's source are in the step already.
        gone.add(problems.get(index).key);
        chosen.push(index);
      }
      const keys = [...gone];
      const sum = chosen.reduce((total, index) => total + (expected[index] as number), taken.expected * taken.keys.length);
      state.set({ ...now, cursor: now.cursor + n, taken: { step: lab.step, keys, expected: keys.length === 0 ? 0 : sum / keys.length } });
      return chosen.map((index): Problem => problems.get(index));
    },
    learn(outcomes) {
      const now = state.get();
      const counts: { [key: string]: readonly [number, number] } = { ...now.counts };
      for (const { problem, trajectories } of outcomes) {
        const [before, wrongBefore] = countsOf(now, problem.key);
        const scores = scoresOf(trajectories);
        const right = scores.reduce((sum, score) => sum + score, 0);
        const value = [before + right, wrongBefore + scores.length - right];
        // A plain assignment to a key such as __proto__ would add nothing.
        Object.defineProperty(counts, problem.key, { value, writable: true, enumerable: true, configurable: true });
      }
      state.set({ ...now, counts, spent: spentOn(outcomes) });
    },
  };
}

interface Placing {
  readonly lab: Lab;
  /** By source, its indices in the order of expected learnability, once they were asked for. */
  readonly ranked: Map<string, readonly number[]>;
  readonly gone: ReadonlySet<string>;
  /** By index. */
  readonly expected: readonly number[];
  readonly explore: number;
}

/** The index of the problem that a place gets; undefined where its source has none left. */
function placed(place: number, { lab, ranked, gone, expected, explore }: Placing): number | undefined {
  const { problems } = lab;
  const source = problems.mixture && sourceAt(place, problems.mixture, lab);
  const order = ranked.get(source?.name ?? "") ?? ordered(source?.indices ?? expected.map((_, index) => index), expected);
  ranked.set(source?.name ?? "", order);
  const free = (index: number): boolean => !gone.has(problems.get(index).key);
  const key = lab.key({ purpose: "thinkprior/explore" });
  if (uniform(key, place, 0) >= explore) return order.find(free);
  const left = order.filter(free);
  return left[Math.floor(uniform(key, place, 1) * left.length)];
}

function ordered(indices: readonly number[], expected: readonly number[]): number[] {
  return [...indices].sort((i, j) => (expected[j] as number) - (expected[i] as number) || i - j);
}

/** Scores of a problem's scored answers; of a conversation in several rows the last one's. */
function scoresOf(trajectories: readonly Trajectory[]): number[] {
  const last = new Map<string, number>();
  for (const { purpose, episode, verdict } of trajectories) {
    const score = scoreOf(verdict);
    if (purpose === "train" && score !== undefined) last.set(episode, score);
  }
  return [...last.values()];
}

function spentOn(outcomes: readonly Outcome[]): ThinkPriorState["spent"] {
  const drawn = outcomes.map(({ trajectories, used }) => ({
    scores: scoresOf(trajectories),
    size: trajectories.filter(({ purpose }) => purpose === "train").length,
    used,
  }));
  const sum = (of: typeof drawn): number => of.reduce((n, { size }) => n + size, 0);
  return { generated: sum(drawn), used: sum(drawn.filter(({ used }) => used)), silent: sum(drawn.filter(({ scores }) => !varied(scores))) };
}
