/** Which runs are compared, by which number, and with what. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { type Comparable, withFirst } from "../chosen.js";
import type { Comparison } from "../shapes.js";
import { source } from "./data.js";
import { plural } from "./format.js";
import type { Query } from "./route.js";
import { Word } from "./text.js";

export interface PickerProps {
  readonly all: readonly Comparable[];
  readonly chosen: readonly string[];
  readonly metric: string;
  /** Numbers that are offered. */
  readonly metrics: readonly string[];
  /** Sides of the comparison that is shown; the first is what the others are compared with. */
  readonly first: Comparison["arms"];
  readonly onChange: (change: Query) => void;
}

export function Picker({ all, chosen, metric, metrics, first, onChange }: PickerProps): JSX.Element {
  const [part, setPart] = useState("");
  const listed = all.filter(({ name }) => name.includes(part));
  const put = (ids: readonly string[]): void => onChange({ runs: ids.length === 0 ? "-" : ids.join(",") });
  const base = first[0]?.label;
  return (
    <div class="picker">
      <div class="toolbar">
        <label>
          Number
          <select value={metric} onChange={(event) => onChange({ metric: event.currentTarget.value })}>
            {[...new Set([metric, ...metrics])].map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        {first.length > 1 && (
          <label>
            compared with
            <select
              value={base}
              onChange={(event) =>
                put(
                  withFirst(
                    first.find(({ label }) => label === event.currentTarget.value),
                    chosen,
                  ),
                )
              }
            >
              {first.map(({ label }) => (
                <option key={label}>{label}</option>
              ))}
            </select>
          </label>
        )}
      </div>
      {source.live && (
        <details class="fold">
          <summary>
            {plural(chosen.length, "run")} of {all.length}
          </summary>
          <div class="toolbar">
            {all.length > 12 && (
              <input
                type="search"
                aria-label="Part of a run's name"
                placeholder="part of a name"
                value={part}
                onInput={(event) => setPart(event.currentTarget.value)}
              />
            )}
            <button type="button" onClick={() => put([...new Set([...chosen, ...listed.map(({ id }) => id)])])}>
              All
            </button>
            <button type="button" onClick={() => put(chosen.filter((id) => !listed.some((run) => run.id === id)))}>
              None
            </button>
          </div>
          <div class="choices">
            {listed.map(({ id, name }) => (
              <label key={id}>
                <input
                  type="checkbox"
                  checked={chosen.includes(id)}
                  onChange={(event) => put(event.currentTarget.checked ? [...chosen, id] : chosen.filter((each) => each !== id))}
                />
                <Word text={name} />
              </label>
            ))}
          </div>
        </details>
      )}
    </div>
  );
}
