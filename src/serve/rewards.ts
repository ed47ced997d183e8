/** The routes of a verifier: its verdicts in each dialect, and the problems that it goes with. */
import type { Json } from "../core/json.js";
import { openRlhfDialect, plainDialect, verlDialect } from "./dialects.js";
import type { Grader } from "./grader.js";
import { Refusal } from "./refusal.js";
import type { Route } from "./server.js";

const dialects: { readonly [path: string]: (grader: Grader, body: Json, signal: AbortSignal) => Promise<object> } = {
  "/reward": plainDialect,
  "/openrlhf": openRlhfDialect,
  "/verl": verlDialect,
};

export function rewardRoutes(grader: Grader, deadlineMs: number): Route[] {
  const judged = Object.entries(dialects).map(
    ([path, dialect]): Route => ({
      method: "POST",
      path,
      // The verdicts that are there are sent when the time is up, the others as unscored: the answer has a little more time.
      deadlineMs,
      answer: ({ body, signal }) => dialect(grader, body, signal),
    }),
  );
  const listed: Route = { method: "GET", path: "/problems", deadlineMs, answer: async ({ query }) => page(grader, query) };
  return grader.problems.length === 0 ? judged : [...judged, listed];
}

const mostListed = 10_000;

/** The problems from `from` on, `n` of them, as other trainers take them for their data. What only training may see stays here. */
function page({ problems, id }: Grader, query: URLSearchParams): object {
  const from = numberOf(query, "from", 0);
  const n = Math.min(numberOf(query, "n", mostListed), mostListed);
  const shown = problems
    .slice(from, from + n)
    .map(({ key, prompt, reference, tags }) => ({ key, prompt, reference: reference.answer ?? null, tags: tags ?? {} }));
  const next = from + shown.length;
  return { problems: shown, total: problems.length, next: next < problems.length ? next : null, verifier: id };
}

function numberOf(query: URLSearchParams, name: string, otherwise: number): number {
  const text = query.get(name);
  if (text === null) return otherwise;
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new Refusal(400, `${name} is ${JSON.stringify(text.slice(0, 60))}: give a whole number`, { param: name });
}
