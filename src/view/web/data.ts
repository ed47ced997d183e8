/** Where the page's data come from: a server, or the page's own file. */

import { askedOf } from "../chosen.js";
import { kept } from "../filter.js";
import type { Archive, Comparison, Filter, GroupDetail, GroupWindow, Had, Home, Overview, SearchLine, ShownAudit, ShownRecord, TokenSlice } from "../shapes.js";

export interface Source {
  readonly live: boolean;
  home(): Promise<Home>;
  overview(run: string, had?: Had): Promise<Overview>;
  groups(run: string, from: { readonly from: number } | { readonly step: number }, count: number): Promise<GroupWindow>;
  group(run: string, step: number, index: number, whole?: number): Promise<GroupDetail>;
  tokens(run: string, step: number, index: number, member: number, from: number): Promise<TokenSlice>;
  /** The first tokens of the first members. */
  tokensOfAll(run: string, step: number, index: number, members: number): Promise<readonly TokenSlice[]>;
  /** Calls back with each line; resolves at the end. */
  search(run: string, filter: Filter, on: (line: SearchLine) => void, signal: AbortSignal): Promise<void>;
  compare(runs: readonly string[], metric: string): Promise<Comparison>;
  /** Numbers that can be compared; undefined: any. */
  readonly metrics?: readonly string[];
  record(id: string): Promise<ShownRecord>;
  audit(id: string): Promise<ShownAudit>;
  /** Calls back with runs that have changed, and with whether the server can be reached. Returns how to stop. */
  watch(on: (runs: readonly string[]) => void, reached: (is: boolean) => void): () => void;
}

type Query = { readonly [name: string]: string | number | undefined };

function pathOf(parts: readonly (string | number)[], query: Query = {}): string {
  const given = Object.entries(query).flatMap(([name, value]): [string, string][] => (value === undefined ? [] : [[name, String(value)]]));
  const text = new URLSearchParams(given).toString();
  return `/api/${parts.map((part) => encodeURIComponent(part)).join("/")}${text === "" ? "" : `?${text}`}`;
}

async function ask<T>(parts: readonly (string | number)[], query?: Query): Promise<T> {
  const response = await fetch(pathOf(parts, query)).catch(() => {
    throw new Error("The server of this view cannot be reached: start it again with touchstone view.");
  });
  const text = await response.text();
  const value = parsed(text);
  if (!response.ok) throw new Error((value as { error?: string } | undefined)?.error ?? text.trim());
  return value as T;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const served: Source = {
  live: true,
  home: () => ask(["home"]),
  overview: (run, had) => ask(["runs", run, "overview"], { ...had }),
  groups: (run, from, count) => ask(["runs", run, "groups"], { ...from, count }),
  group: (run, step, index, whole) => ask(["runs", run, "steps", step, "groups", index], { whole }),
  tokens: (run, step, index, member, from) => ask(["runs", run, "steps", step, "groups", index, "members", member], { from }),
  tokensOfAll: (run, step, index, members) => ask(["runs", run, "steps", step, "groups", index, "tokens"], { members }),
  search: async (run, filter, on, signal) => {
    const response = await fetch(pathOf(["runs", run, "search"], { ...filter }), { signal });
    if (!response.ok || !response.body) throw new Error((parsed(await response.text()) as { error?: string } | undefined)?.error ?? "the search failed");
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ; ) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) on(JSON.parse(line) as SearchLine);
    }
  },
  compare: (runs, metric) => ask(["compare"], { runs: runs.join(","), metric }),
  record: (id) => ask(["records", id]),
  audit: (id) => ask(["audits", id]),
  watch: (on, reached) => {
    const events = new EventSource("/api/live");
    events.onopen = () => reached(true);
    events.onerror = () => reached(false);
    events.onmessage = ({ data }) => on((JSON.parse(String(data)) as { runs: string[] }).runs);
    return () => events.close();
  },
};

/** The same from a file. What it does not hold is said, never asked of a server. */
function archived(archive: Archive): Source {
  const left = (what: string) => new Error(`This page in one file does not hold ${what}; touchstone view shows it from the run's folder.`);
  const run = (id: string): Archive["runs"][string] => {
    const found = archive.runs[id];
    if (!found) throw left(`the run ${id}`);
    return found;
  };
  const entry = (id: string, step: number, index: number) => {
    const found = run(id).groups.find(({ row }) => row.step === step && row.index === index);
    if (!found) throw left(`group ${index} of step ${step}`);
    return found;
  };
  return {
    live: false,
    metrics: [...new Set(Object.values(archive.comparisons).map(({ report }) => report.metric))],
    home: async () => archive.home,
    overview: async (id) => run(id).overview,
    groups: async (id, from, count) => {
      const rows = run(id).groups.map(({ row }) => row);
      const first =
        "step" in from
          ? Math.max(
              0,
              rows.findIndex(({ step }) => step >= from.step),
            )
          : from.from;
      const [a, b] = [rows[0], rows.at(-1)];
      const rollouts = rows.reduce((sum, { members }) => sum + members.length, 0);
      const { left: without, damage } = run(id);
      const found = { from: first, total: rows.length, rollouts, steps: a && b ? ([a.step, b.step] as const) : null, rows: rows.slice(first, first + count) };
      return { ...found, ...(without > 0 && { without }), ...(damage !== undefined && { damage }) };
    },
    group: async (id, step, index) => entry(id, step, index).detail,
    tokens: async (id, step, index, member) => {
      const slice = entry(id, step, index).tokens[member];
      if (!slice) throw left(`the tokens of member ${member}`);
      return slice;
    },
    tokensOfAll: async (id, step, index, members) => entry(id, step, index).tokens.slice(0, members),
    search: async (id, filter, on) => {
      const all = run(id).groups;
      all.forEach(({ row, detail }, i) => {
        const members = kept(
          filter,
          { problem: row.problem, ...(row.tags && { tags: row.tags }), prompt: detail.problem.prompt.map(({ content }) => content.text) },
          detail.members.map(({ text, verdict, stop, tokens, turns = [] }) => ({
            kind: verdict.kind,
            ...(verdict.reason !== undefined && { reason: verdict.reason }),
            stop,
            tokens,
            texts: () => [text.text, ...turns.flatMap(({ action, observation }) => [action.text, observation.text])],
          })),
        );
        if (members.length > 0) on({ found: { row, members }, done: i + 1, total: all.length });
      });
      on({ done: all.length, total: all.length, end: "all" });
    },
    compare: async (runs, metric) => {
      const found = archive.comparisons[askedOf(runs, metric)];
      if (found === undefined) throw left(`this comparison of ${metric}`);
      return found;
    },
    record: async (id) => {
      const found = archive.records[id];
      if (found === undefined) throw left(`the record ${id}`);
      return found;
    },
    audit: async (id) => {
      const found = archive.audits[id];
      if (found === undefined) throw left(`the audit ${id}`);
      return found;
    },
    watch: () => () => undefined,
  };
}

/** What all components ask; a page in one file unpacks its own before anything is drawn. */
export let source: Source = served;

export async function unpack(): Promise<void> {
  const own = document.getElementById("archive");
  if (!own) return;
  const bytes = Uint8Array.from(atob(own.textContent ?? ""), (letter) => letter.charCodeAt(0));
  const text = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  source = archived(JSON.parse(text) as Archive);
  own.remove();
}
