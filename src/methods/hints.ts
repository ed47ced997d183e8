/** Contexts with a hint: a problem's last message after a template of the user's, filled with what the task tells of the problem; and answers scored under them. */
import { DataError } from "../core/errors.js";
import { type Context, type Problem, placeOfProblem } from "../core/problem.js";
import type { Trajectory } from "../core/trajectory.js";
import type { Scores, ScoreWant, Sequence, WeightsRef } from "../engine/contract.js";
import type { Lab } from "./contract.js";
import { rewritten } from "./prompts.js";

/** What templates may name without reading anything but the prompt and the answer. */
const open = ["problem", "response"];

const namesIn = (template: string): string[] => [...template.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as string);

/** Whether some template tells more than the problem and the answer itself, so that the run must not withhold references. */
export function tellsReference(...templates: readonly string[]): boolean {
  return templates.some((template) => namesIn(template).some((name) => !open.includes(name)));
}

/** What a problem tells under a name: its privileged data, else for `answer` its reference. Throws DataError where that is no text or number. */
export function told(problem: Problem, name: string, place: string): string {
  const value = problem.privileged?.[name] ?? (name === "answer" ? problem.reference.answer : undefined);
  if (typeof value === "string" || typeof value === "number") return String(value);
  throw new DataError({
    place: placeOfProblem(problem),
    cause: `it has no ${name} in words, which a hint of ${place} tells`,
    mend: `give each problem privileged data named ${name} (docs/data.md), or write the hint without {${name}}`,
  });
}

/** The context of a problem's hint; `response` is what {response} stands for. */
export function hintContext(problem: Problem, template: string, label: string, lab: Pick<Lab, "render">, place: string, response = ""): Context {
  const names = namesIn(template).filter((name) => !open.includes(name));
  const values = Object.fromEntries(names.map((name) => [name, told(problem, name, place)]));
  return lab.render(rewritten(problem, template, { ...values, response }), label);
}

/** Renders each problem with each hint once. Throws DataError for one that lacks what a hint tells, or whose hint leaves the model no place for the response. */
export async function refuseUnlessHinted(templates: readonly string[], lab: Lab, place: string): Promise<void> {
  const { maxTokens } = await lab.weights.info("policy");
  for (let i = 0; i < lab.problems.size; i++) {
    const problem = lab.problems.get(i);
    for (const template of templates) {
      const { ids } = hintContext(problem, template, "hint", lab, place);
      if (ids.length + lab.settings.maxTokens <= maxTokens) continue;
      throw new DataError({
        place: placeOfProblem(problem),
        cause: `its prompt with a hint of ${place} has ${ids.length} tokens, which with ${lab.settings.maxTokens} for the response are more than the model's ${maxTokens}`,
        mend: "write a shorter hint, lower max_tokens, or leave such problems out",
      });
    }
  }
}

/** An answer to be scored under a context of its own; undefined: not at all. */
export interface Rescored {
  readonly row: Trajectory;
  readonly context: Context | undefined;
}

/** The temperature at which a row is trained. */
const temperatureOf = ({ old, behaviour }: Trajectory): number => (old ?? behaviour).conditions.temperature;

/** Scores of answers under other contexts in one call, at the temperature they are trained at; undefined where there is no context, or no place in the model. */
export async function scoresUnder(items: readonly Rescored[], weights: WeightsRef, lab: Lab, want: ScoreWant = {}): Promise<(Scores | undefined)[]> {
  const { maxTokens } = await lab.weights.info(weights.role);
  const asked = items.flatMap(({ row, context }, i) =>
    context === undefined || context.ids.length + row.response.length > maxTokens
      ? []
      : [{ i, sequence: { context, response: row.response, weights, temperature: temperatureOf(row) } satisfies Sequence }],
  );
  const scores: (Scores | undefined)[] = items.map(() => undefined);
  if (asked.length === 0) return scores;
  const found = await lab.score(
    asked.map(({ sequence }) => sequence),
    want,
  );
  asked.forEach(({ i }, n) => {
    scores[i] = found[n] as Scores;
  });
  return scores;
}

/** Log-probs of rows under their training context by the weights of that identity: those of the rollout, or scored where these are of other weights. */
export async function plainLogp(rows: readonly Trajectory[], weights: WeightsRef, identity: string, lab: Lab): Promise<Float64Array[]> {
  const kept = rows.map(({ old, behaviour }) => (old ?? behaviour).conditions.weights === identity);
  const items = rows.map((row, i) => ({ row, context: kept[i] ? undefined : row.trainedUnder }));
  const scores = kept.includes(false) ? await scoresUnder(items, weights, lab) : [];
  return rows.map(({ old, behaviour }, i) => scores[i]?.logp ?? (old ?? behaviour).values);
}
