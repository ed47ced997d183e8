/** What a run of a task with an environment answers for rollouts. */
import type { Method } from "../methods/contract.js";
import { compose } from "../methods/resolve.js";

/** A conversation a member: `draw` plays with the run's environment. Only the expansion is the task's, everything else stays the method's. */
const episodes: Method = {
  name: "environment",
  slots: {
    expand: {
      owns: {
        appendable: true,
        async *run(problem, n, step, from) {
          const requests = await Promise.all(Array.from({ length: n }, (_, i) => step.request(problem, from + i)));
          yield* step.draw(requests);
        },
      },
      about: "a conversation with the task's environment",
    },
  },
};

/** What the user's options and the task say of slots, as one method. */
export function withEpisodes(own: Method | undefined, environment: unknown): Method | undefined {
  if (environment === undefined) return own;
  return own === undefined ? episodes : compose(own, episodes);
}
