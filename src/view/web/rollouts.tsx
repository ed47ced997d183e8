/** The rollout browser: a run's groups in a list, one of them with its members side by side. Its state is in the address. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Filter, GroupRow, GroupWindow, SearchLine } from "../shapes.js";
import { source } from "./data.js";
import { FilterBar, filterOf } from "./filters.js";
import { count, plural } from "./format.js";
import { Group } from "./group.js";
import { useKeys, useLoad, useNews } from "./hooks.js";
import { GroupList, RowOfGroup } from "./list.js";
import { Fault, Waiting } from "./parts.js";
import { address, go, type Query } from "./route.js";
import { colourings } from "./shade.js";

export interface RolloutsProps {
  readonly id: string;
  readonly query: { readonly [name: string]: string };
}

const whole = (text: string | undefined): number | undefined => (text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined);

export function Rollouts({ id, query }: RolloutsProps): JSX.Element {
  const news = useNews([id]);
  const step = whole(query.step);
  const { value: extent, fault } = useLoad(() => source.groups(id, { from: 0 }, 1), [id, news]);
  const filter = filterOf(query);
  const filtering = Object.keys(filter).length > 0;
  const found = useSearch(id, filter);
  const search = useRef<HTMLInputElement>(null);
  const put = (change: Query, quietly = false): void => go(address(["run", id, "rollouts"], { ...query, ...change }), quietly);
  const open = (row: Pick<GroupRow, "step" | "index">): void => put({ step: row.step, group: row.index, member: undefined, token: undefined });
  // A run that goes on does not take away what is being read: without a step in the address it is the last one of when the page was opened.
  const first = useRef<number | undefined>(undefined);
  first.current ??= extent?.steps?.[1];
  const at = { step: step ?? first.current, group: whole(query.group) ?? 0 };
  const colour = colourings.find((each) => each === query.colour) ?? "coefficient";
  const number = useNumber(id, at.step, at.group, extent);

  const turn = (by: number): void => {
    if (filtering) {
      const place = found.rows.findIndex(({ row }) => row.step === at.step && row.index === at.group);
      const next = found.rows[Math.max(0, place + by)];
      if (next) open(next.row);
      return;
    }
    if (number === undefined || !extent) return;
    const next = number + by;
    if (next >= 0 && next < extent.total) source.groups(id, { from: next }, 1).then(({ rows: [row] }) => row && open(row));
  };
  const stepBy = (by: number): void => {
    if (at.step !== undefined && extent?.steps) toStep(Math.min(extent.steps[1], Math.max(extent.steps[0], at.step + by)));
  };
  const toStep = (wanted: number): void => {
    source.groups(id, { step: wanted }, 1).then(({ rows: [row] }) => row && open(row));
  };
  useKeys({
    j: () => turn(1),
    k: () => turn(-1),
    "]": () => stepBy(1),
    "[": () => stepBy(-1),
    c: () => put({ colour: colourings[(colourings.indexOf(colour) + 1) % colourings.length] }, true),
    t: () => put({ as: query.as === "text" ? undefined : "text" }, true),
    "/": () => search.current?.focus(),
  });

  if (fault && !extent) return <Fault text={fault} />;
  if (!extent) return <Waiting />;
  if (extent.steps === null || at.step === undefined) return <Waiting text="The run has no rollouts yet." />;
  return (
    <div class="browser">
      <div class="side">
        <h1 class="sr">Rollouts</h1>
        <div class="stepper">
          <button type="button" aria-label="Previous step" disabled={at.step <= extent.steps[0]} onClick={() => stepBy(-1)}>
            ‹
          </button>
          <label>
            step{" "}
            <input
              type="number"
              min={extent.steps[0]}
              max={extent.steps[1]}
              value={at.step}
              onChange={(event) => {
                const wanted = whole(event.currentTarget.value);
                if (wanted !== undefined) toStep(wanted);
              }}
            />
          </label>
          <span class="muted">of {count(extent.steps[1])}</span>
          <button type="button" aria-label="Next step" disabled={at.step >= extent.steps[1]} onClick={() => stepBy(1)}>
            ›
          </button>
          <button
            type="button"
            aria-label="Newest step"
            title="newest step"
            disabled={at.step >= extent.steps[1]}
            onClick={() => toStep(extent.steps?.[1] ?? 0)}
          >
            »
          </button>
          <input
            type="range"
            aria-label="Step"
            min={extent.steps[0]}
            max={extent.steps[1]}
            value={at.step}
            onChange={(event) => toStep(Number(event.currentTarget.value))}
          />
        </div>
        <FilterBar query={query} field={search} onChange={(change) => put(change)} />
        <p class="muted tally" role="status">
          {filtering ? found.text : `${plural(extent.total, "group")}, ${plural(extent.rollouts, "rollout")}`}
        </p>
        {extent.without !== undefined && <p class="muted tally">This file leaves out {plural(extent.without, "further group")}.</p>}
        {extent.damage && <Fault text={extent.damage} />}
        {found.fault && filtering && <Fault text={found.fault} />}
        {filtering ? (
          <div class="list">
            {found.rows.map(({ row, members }) => (
              <RowOfGroup
                key={`${row.step} ${row.index}`}
                row={row}
                marked={members}
                current={row.step === at.step && row.index === at.group}
                onPick={() => open(row)}
              />
            ))}
          </div>
        ) : (
          <GroupList id={id} total={extent.total} current={number} onPick={open} />
        )}
      </div>
      <Group id={id} step={at.step} index={at.group} query={query} colour={colour} onChange={put} />
    </div>
  );
}

/** The number of a group among all of the run: what the list is at. */
function useNumber(id: string, step: number | undefined, group: number, extent: GroupWindow | undefined): number | undefined {
  const { value } = useLoad(async () => (step === undefined ? undefined : (await source.groups(id, { step }, 1)).from), [id, step, extent === undefined]);
  return value === undefined ? undefined : value + group;
}

interface Found {
  readonly rows: readonly NonNullable<SearchLine["found"]>[];
  readonly text: string;
  readonly fault?: string;
}

/** Runs a search anew when the filter changes, shortly after the last letter; the one before is ended. */
function useSearch(id: string, filter: Filter): Found {
  const [found, set] = useState<Found>({ rows: [], text: "" });
  const key = JSON.stringify(filter);
  useEffect(() => {
    if (key === "{}") return;
    const stop = new AbortController();
    const rows: NonNullable<SearchLine["found"]>[] = [];
    let fault: string | undefined;
    let drawn = 0;
    const draw = ({ done, total, end }: SearchLine): void => {
      const now = performance.now();
      if (end === undefined && now - drawn < 100) return;
      drawn = now;
      const far =
        end === "all"
          ? `in ${count(total)}`
          : end === "enough"
            ? `in the first ${count(done)} of ${count(total)}; narrow the search for more`
            : `so far, ${count(done)} of ${count(total)} read`;
      set({ rows: [...rows], text: `${plural(rows.length, "group")} found ${far}`, ...(fault !== undefined && { fault }) });
    };
    set({ rows: [], text: "Searching" });
    const timer = setTimeout(() => {
      const on = (line: SearchLine): void => {
        if (line.found) rows.push(line.found);
        fault ??= line.fault;
        draw(line);
      };
      source
        .search(id, JSON.parse(key) as Filter, on, stop.signal)
        .catch((error: Error) => stop.signal.aborted || set({ rows, text: "", fault: error.message }));
    }, 200);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [id, key]);
  return found;
}
