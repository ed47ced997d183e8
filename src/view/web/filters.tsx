/** The fields of the search; what is in them stands in the address. */
import type { JSX, RefObject } from "preact";
import type { Filter, VerdictKind } from "../shapes.js";
import type { Query } from "./route.js";

const texts = ["text", "reason", "problem", "tag"] as const;
const numbers = ["least", "most"] as const;
const verdicts: readonly VerdictKind[] = ["accept", "reject", "partial", "unscored"];
const stops = ["eos", "stop", "length", "cancelled"];

/** The filter of an address; empty: everything is shown. */
export function filterOf(query: { readonly [name: string]: string }): Filter {
  const filter: { [name: string]: string | number } = {};
  for (const name of texts) if (query[name]) filter[name] = query[name];
  for (const name of numbers) if (/^\d+$/.test(query[name] ?? "")) filter[name] = Number(query[name]);
  const verdict = verdicts.find((kind) => kind === query.verdict);
  if (verdict) filter.verdict = verdict;
  if (stops.includes(query.stop ?? "")) filter.stop = query.stop;
  return filter;
}

export interface FilterBarProps {
  readonly query: { readonly [name: string]: string };
  readonly field: RefObject<HTMLInputElement | null>;
  readonly onChange: (change: Query) => void;
}

const labels: { readonly [name in (typeof texts)[number]]: string } = { text: "Text", reason: "Reason", problem: "Problem key", tag: "Tag, as level=3" };

export function FilterBar({ query, field, onChange }: FilterBarProps): JSX.Element {
  const more = ["reason", "problem", "tag", "stop", "least", "most"].some((name) => query[name]);
  const given = Object.keys(filterOf(query));
  const text = (name: (typeof texts)[number]): JSX.Element => (
    <input
      type="search"
      aria-label={labels[name]}
      placeholder={labels[name]}
      value={query[name] ?? ""}
      {...(name === "text" ? { ref: field } : {})}
      onInput={(event) => onChange({ [name]: event.currentTarget.value })}
    />
  );
  return (
    <search class="filters">
      <div class="row">
        {text("text")}
        <select aria-label="Verdict" value={query.verdict ?? ""} onChange={(event) => onChange({ verdict: event.currentTarget.value })}>
          <option value="">any verdict</option>
          {verdicts.map((kind) => (
            <option key={kind}>{kind}</option>
          ))}
        </select>
      </div>
      <details open={more}>
        <summary>More filters</summary>
        <div class="row">
          {text("reason")}
          {text("problem")}
        </div>
        <div class="row">
          {text("tag")}
          <select aria-label="How it ended" value={query.stop ?? ""} onChange={(event) => onChange({ stop: event.currentTarget.value })}>
            <option value="">any end</option>
            {stops.map((stop) => (
              <option key={stop} value={stop}>
                {stop === "length" ? "cut off" : stop}
              </option>
            ))}
          </select>
        </div>
        <div class="row">
          {numbers.map((name) => (
            <input
              key={name}
              type="number"
              min="0"
              aria-label={name === "least" ? "Least tokens" : "Most tokens"}
              placeholder={name === "least" ? "tokens, least" : "tokens, most"}
              value={query[name] ?? ""}
              onInput={(event) => onChange({ [name]: event.currentTarget.value })}
            />
          ))}
        </div>
      </details>
      {given.length > 0 && (
        <button type="button" onClick={() => onChange(Object.fromEntries(given.map((name) => [name, undefined])))}>
          Show everything
        </button>
      )}
    </search>
  );
}
