/** The groups of a run in a list of any length: rows are drawn and asked for where they are looked at. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { GroupRow, MemberRow } from "../shapes.js";
import { source } from "./data.js";
import { digits } from "./format.js";
import { Word } from "./text.js";

const rowHeight = 54;
const page = 40;
/** Browsers draw no element beyond 33 million pixels: a longer list is scrolled in proportion. */
const tallest = 8_000_000;

export interface GroupListProps {
  readonly id: string;
  readonly total: number;
  /** Number of the group that is open. */
  readonly current: number | undefined;
  readonly onPick: (row: GroupRow) => void;
}

export function GroupList({ id, total, current, onPick }: GroupListProps): JSX.Element {
  const frame = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  const [pages, setPages] = useState<ReadonlyMap<number, readonly GroupRow[]>>(new Map());
  const asked = useRef(new Map<number, number>());
  const height = Math.min(tallest, total * rowHeight);
  const fits = Math.ceil(view.height / rowHeight) + 1;
  const room = Math.max(1, height - view.height);
  const first = height < tallest ? Math.floor(view.top / rowHeight) : Math.floor((view.top / room) * Math.max(0, total - fits + 1));
  const offset = height < tallest ? first * rowHeight : view.top;
  const numbers = Array.from({ length: Math.max(0, Math.min(fits, total - first)) }, (_, i) => first + i);
  const wanted = [...new Set(numbers.map((number) => Math.floor(number / page)))];

  useEffect(() => {
    const element = frame.current;
    if (!element) return;
    const look = (): void => setView({ top: element.scrollTop, height: element.clientHeight });
    const observer = new ResizeObserver(look);
    observer.observe(element);
    element.addEventListener("scroll", look, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener("scroll", look);
    };
  }, []);

  useEffect(() => {
    for (const each of wanted) {
      const complete = Math.min(page, total - each * page);
      // A page that was asked for when the run had fewer groups is asked for again.
      if ((asked.current.get(each) ?? 0) >= complete) continue;
      asked.current.set(each, complete);
      source.groups(id, { from: each * page }, page).then(
        ({ rows }) => setPages((before) => new Map(before).set(each, rows)),
        () => asked.current.delete(each),
      );
    }
  }, [id, total, wanted.join()]);

  useEffect(() => {
    const element = frame.current;
    if (!element || current === undefined) return;
    // As high as it is now: it may not have been measured yet.
    const rows = Math.floor(element.clientHeight / rowHeight);
    if (current >= first && current < first + rows - 1) return;
    const middle = Math.max(0, current - Math.floor(rows / 2));
    element.scrollTop = height < tallest ? middle * rowHeight : (middle / Math.max(1, total - fits + 1)) * room;
  }, [current]);

  return (
    <div class="list" ref={frame}>
      <div style={{ height: `${height}px`, position: "relative" }}>
        <div style={{ transform: `translateY(${offset}px)` }}>
          {numbers.map((number) => {
            const row = pages.get(Math.floor(number / page))?.[number % page];
            if (!row) return <div class="group-row waiting-row" key={number} />;
            return <RowOfGroup key={number} row={row} current={number === current} onPick={() => onPick(row)} />;
          })}
        </div>
      </div>
    </div>
  );
}

export interface RowProps {
  readonly row: GroupRow;
  readonly current: boolean;
  /** Members that a search found; absent: none is set apart. */
  readonly marked?: readonly number[];
  readonly onPick: () => void;
}

export function RowOfGroup({ row, current, marked, onPick }: RowProps): JSX.Element {
  const rewards = row.members.flatMap(({ reward }) => (reward === null ? [] : [reward]));
  const mean = rewards.length === 0 ? null : rewards.reduce((a, b) => a + b, 0) / rewards.length;
  const right = row.members.filter(({ kind }) => kind === "accept").length;
  return (
    <button type="button" class="group-row" aria-current={current ? "true" : undefined} onClick={onPick}>
      <span class="first">
        <span class="muted">
          {row.step}·{row.index}
        </span>{" "}
        <Word text={row.text.replace(/\s+/g, " ")} />
      </span>
      <span class="second">
        <span class="strip" role="img" aria-label={`${right} of ${row.members.length} accepted`}>
          {row.members.slice(0, 32).map((member, i) => (
            <i key={i} class={`cell ${member.kind} ${marked && !marked.includes(i) ? "dim" : ""}`} style={heightOf(member)} />
          ))}
        </span>
        <span class="n muted">{mean === null ? "no score" : `mean ${digits(mean)}`}</span>
      </span>
    </button>
  );
}

/** A partial answer is as high as its reward. */
function heightOf({ kind, reward }: MemberRow): { readonly height?: string } {
  return kind === "partial" && reward !== null ? { height: `${Math.round(4 + 8 * Math.min(1, Math.max(0, reward)))}px` } : {};
}
