/** From characters of a response to its tokens, and the span `answer`. */
import { ConfigError } from "../core/errors.js";
import { notesOf, restoreNotes } from "../core/note.js";
import type { Group, Trajectory } from "../core/trajectory.js";
import type { AnswerRange } from "../verify/contract.js";
import type { Lab } from "./contract.js";

/**
 * The tokens of which some character lies in a range of the decoded text: first, and one past the last. `decode` must give
 * longer texts for longer prefixes, so that the ends are found in log n steps; tokens without text belong to what is before them.
 */
export function tokensOf({ start, end }: AnswerRange, ids: Int32Array, decode: (ids: ArrayLike<number>) => string): AnswerRange {
  /** The fewest tokens whose text is longer than `length` characters. */
  const reaching = (length: number): number => {
    let [low, high] = [0, ids.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (decode(ids.subarray(0, middle)).length > length) high = middle;
      else low = middle + 1;
    }
    return low;
  };
  const first = reaching(start) - 1;
  return { start: first, end: end > start ? Math.max(first + 1, reaching(end - 1)) : first };
}

/** Groups whose trajectories have a span `answer` where their text has a committed answer; the others stay as they are. Throws ConfigError where the verifier cannot tell. */
export function withAnswerSpans(groups: readonly Group[], lab: Lab, place: string): Group[] {
  const locate = lab.answers?.locate;
  if (locate === undefined) {
    throw new ConfigError({
      place,
      cause: "the run's verifier does not say where the answer of a response stands",
      mend: "take one that does (number, exact with a place, or one of your own with `locate`), or turn the option off",
    });
  }
  const decode = (ids: ArrayLike<number>): string => lab.tokenizer.decode(ids);
  return groups.map((group) => {
    const next = { ...group, trajectories: group.trajectories.map((trajectory) => spanned(trajectory, locate, decode)) };
    restoreNotes(next, notesOf(group));
    return next;
  });
}

function spanned(trajectory: Trajectory, locate: (text: string) => AnswerRange | undefined, decode: (ids: ArrayLike<number>) => string): Trajectory {
  const { spans, text, response } = trajectory;
  const range = spans.some(({ name }) => name === "answer") ? undefined : locate(text);
  if (range === undefined) return trajectory;
  const next: Trajectory = { ...trajectory, spans: [...spans, { name: "answer", ...tokensOf(range, response, decode) }] };
  restoreNotes(next, notesOf(trajectory));
  return next;
}
