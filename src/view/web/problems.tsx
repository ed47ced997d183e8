/** Held-out problems one by one: solved by one side and not by the other. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { ComparedProblem, Comparison } from "../shapes.js";
import { percent, plural } from "./format.js";
import { Wide } from "./parts.js";
import type { Query } from "./route.js";
import { Word } from "./text.js";

export interface ProblemsProps {
  readonly of: Comparison;
  readonly query: { readonly [name: string]: string };
  readonly onChange: (change: Query) => void;
}

const sides = ["gained", "lost", "both", "neither"] as const;
type Side = (typeof sides)[number];

/** Mean score from which on a side has solved a problem: in at least half of its runs and answers. */
const solvedFrom = 0.5;
/** Rows that are drawn before one asks for more. */
const shown = 60;

function sideOf(a: number | null, b: number | null): Side | undefined {
  if (a === null || b === null) return undefined;
  if (a >= solvedFrom) return b >= solvedFrom ? "both" : "lost";
  return b >= solvedFrom ? "gained" : "neither";
}

export function Problems({ of: { arms: all, problems }, query, onChange }: ProblemsProps): JSX.Element | null {
  const [part, setPart] = useState("");
  const [limit, setLimit] = useState(shown);
  const arms = all.map(({ label }, place) => ({ label, place })).filter(({ place }) => problems.some(({ scores }) => scores[place] !== null));
  if (arms.length < 2) return null;
  const { place: a, label: before } = arms.find(({ label }) => label === query.a) ?? arms[0];
  const { place: b, label: after } = arms.find(({ label }) => label === query.b) ?? arms.find(({ place }) => place !== a) ?? arms[1];
  const side = sides.find((each) => each === query.side) ?? "gained";
  const of = (problem: ComparedProblem): Side | undefined => sideOf(problem.scores[a], problem.scores[b]);
  const tally = new Map(sides.map((each) => [each, problems.filter((problem) => of(problem) === each).length]));
  const names: { readonly [side in Side]: string } = {
    gained: `solved by ${after}, not by ${before}`,
    lost: `solved by ${before}, not by ${after}`,
    both: "solved by both",
    neither: "solved by neither",
  };
  const change = ({ scores }: ComparedProblem): number => (scores[b] ?? 0) - (scores[a] ?? 0);
  const rows = problems
    .filter((problem) => of(problem) === side && (part === "" || problem.key.includes(part) || problem.text.includes(part)))
    .sort((one, other) => Math.abs(change(other)) - Math.abs(change(one)));
  const choose = (label: string, name: "a" | "b", value: string): JSX.Element => (
    <label>
      {label}
      <select value={value} onChange={(event) => onChange({ [name]: event.currentTarget.value })}>
        {arms.map((arm) => (
          <option key={arm.label}>{arm.label}</option>
        ))}
      </select>
    </label>
  );
  return (
    <section aria-label="Problems">
      <h2>Held-out problems one by one; solved means a mean score of at least {percent(solvedFrom)}</h2>
      <div class="toolbar gap">
        {choose("from", "a", before)}
        {choose("to", "b", after)}
        <input
          type="search"
          aria-label="Part of a problem"
          placeholder="part of a problem"
          value={part}
          onInput={(event) => setPart(event.currentTarget.value)}
        />
      </div>
      <div class="facts gap">
        {sides.map((each) => (
          <button type="button" class="fact" key={each} aria-pressed={each === side} onClick={() => onChange({ side: each })}>
            <span>{names[each]}</span>
            <b>{tally.get(each)}</b>
          </button>
        ))}
      </div>
      <Wide label={`Problems ${names[side]}`}>
        <table>
          <thead>
            <tr>
              <th scope="col">problem</th>
              <th scope="col" class="n">
                {before}
              </th>
              <th scope="col" class="n">
                {after}
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, limit).map(({ key, text, scores }) => (
              <tr key={key}>
                <th scope="row">
                  <Word text={key} />
                  <div class="muted">
                    <Word text={text.replace(/\s+/g, " ")} />
                  </div>
                </th>
                <td class="n">{percent(scores[a])}</td>
                <td class="n">{percent(scores[b])}</td>
              </tr>
            ))}
            {rows.length === 0 && (
              <tr>
                <td colSpan={3} class="muted">
                  none
                </td>
              </tr>
            )}
          </tbody>
        </table>
      </Wide>
      {rows.length > limit && (
        <p>
          <button type="button" onClick={() => setLimit(limit + 4 * shown)}>
            Show more of {plural(rows.length, "problem")}
          </button>
        </p>
      )}
    </section>
  );
}
