import type { IncomingMessage } from "node:http";
import { describe, expect, it } from "vitest";
import { judge } from "./access.js";
import { spread } from "./archive.js";
import { unasked, withFirst } from "./chosen.js";
import { type Filtered, kept } from "./filter.js";
import { Series } from "./series.js";
import { settingsOf } from "./settings.js";
import type { Home, RunCard } from "./shapes.js";

const asked = (headers: { readonly [name: string]: string }): IncomingMessage => ({ headers }) as unknown as IncomingMessage;
const at = (path: string): URL => new URL(path, "http://view");

describe("who may read the view", () => {
  it("is this machine by its own names alone, so that no name of another site leads here", () => {
    for (const host of ["127.0.0.1:7333", "localhost:80", "[::1]:7333", "127.3.2.1"]) expect(judge(asked({ host }), at("/"), {}).allowed, host).toBe(true);
    for (const host of ["evil.example", "127.0.0.1.evil.example", "10.0.0.2:7333", ""])
      expect(judge(asked({ host }), at("/"), {}), host).toMatchObject({ allowed: false, code: 403 });
  });

  it("with a token is who gives it: in the address once, then in a cookie, or as a bearer", () => {
    const access = { token: "s3cret" };
    const host = "box.example";
    expect(judge(asked({ host }), at("/"), access)).toMatchObject({ allowed: false, code: 401 });
    expect(judge(asked({ host }), at("/?token=other"), access)).toMatchObject({ allowed: false });
    const once = judge(asked({ host }), at("/?token=s3cret"), access);
    expect(once).toEqual({ allowed: "once", cookie: "touchstone_view=s3cret; HttpOnly; SameSite=Strict; Path=/" });
    expect(judge(asked({ host, cookie: "a=b; touchstone_view=s3cret" }), at("/api/home"), access).allowed).toBe(true);
    expect(judge(asked({ host, cookie: "touchstone_view=s3cre" }), at("/api/home"), access).allowed).toBe(false);
    expect(judge(asked({ host, authorization: "Bearer s3cret" }), at("/api/home"), access).allowed).toBe(true);
  });
});

describe("numbers over the steps", () => {
  const series = new Series();
  for (let step = 1; step <= 10; step++)
    series.add(
      step,
      step === 3
        ? [["reward", step]]
        : (
            [
              ["reward", step],
              ["late", step],
              ["reason.wrong", 0.5],
            ] as const
          ).slice(0, step < 5 ? 1 : 3),
    );

  it("keep gaps as null, and shares of reasons that nobody gave as 0", () => {
    expect(series.table().columns).toEqual({
      reward: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
      late: [null, null, null, null, 5, 6, 7, 8, 9, 10],
      "reason.wrong": [0, 0, 0, 0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5],
    });
  });

  it("become means of equal parts where there are more than are sent", () => {
    expect(series.table({ most: 4 })).toEqual({
      every: 4,
      steps: [4, 8, 10],
      columns: { reward: [2.5, 6.5, 9.5], late: [null, 6.5, 9.5], "reason.wrong": [0, 0.5, 0.5] },
    });
  });

  it("are sent from a whole point on where points are means: a run of any length grows by its new points alone", () => {
    const growing = new Series();
    let [steps, reward]: [number[], (number | null)[]] = [[], []];
    for (let step = 1; step <= 40; step++) {
      growing.add(step, [["reward", step]]);
      const had = steps.length > 1 && steps[0] === growing.every(8);
      const next = growing.table({ most: 8, ...(had && { after: steps.at(-2) as number }) });
      const kept = had ? steps.length - 1 : 0;
      if (had) expect(next.steps.length).toBeLessThanOrEqual(2);
      [steps, reward] = [
        [...steps.slice(0, kept), ...next.steps],
        [...reward.slice(0, kept), ...(next.columns.reward ?? [])],
      ];
      expect({ steps, reward }).toEqual({ steps: growing.table({ most: 8 }).steps, reward: growing.table({ most: 8 }).columns.reward });
    }
    expect(growing.every(8)).toBe(8);
  });

  it("are sent from a step on, so that old and new rows make the whole", () => {
    const [first, rest] = [new Series(), series.table({ after: 7 })];
    expect(first.table()).toEqual({ every: 1, steps: [], columns: {} });
    expect(rest.steps).toEqual([8, 9, 10]);
    expect(rest.columns.reward).toEqual([8, 9, 10]);
  });
});

describe("a filter", () => {
  const member = (kind: string, text: string, tokens: number, reason?: string): Filtered => ({
    kind,
    stop: tokens > 9 ? "length" : "eos",
    tokens,
    texts: () => [text],
    ...(reason !== undefined && { reason }),
  });
  const members = [member("accept", "it is 7", 4), member("reject", "it is 8", 12, "wrong"), member("reject", "no", 2, "format")];
  const group = { problem: "gsm-17", tags: { level: 3, source: "a" }, prompt: ["what is seven?"] };
  const of = (filter: Parameters<typeof kept>[0]): number[] => kept(filter, group, members);

  it("keeps the members for which all that it says holds", () => {
    expect(of({})).toEqual([0, 1, 2]);
    expect(of({ verdict: "reject" })).toEqual([1, 2]);
    expect(of({ verdict: "reject", reason: "wrong" })).toEqual([1]);
    expect(of({ stop: "length" })).toEqual([1]);
    expect(of({ least: 3, most: 5 })).toEqual([0]);
    expect(of({ text: "it is" })).toEqual([0, 1]);
    expect(of({ text: "absent" })).toEqual([]);
  });

  it("on the group keeps all of it or none: its problem, a tag, a text of the prompt", () => {
    expect(of({ problem: "gsm-1" })).toEqual([0, 1, 2]);
    expect(of({ problem: "math" })).toEqual([]);
    expect(of({ tag: "level=3" })).toEqual([0, 1, 2]);
    expect(of({ tag: "level" })).toEqual([0, 1, 2]);
    expect(of({ tag: "level=4" })).toEqual([]);
    expect(of({ tag: "toString" })).toEqual([]);
    expect(of({ text: "seven", verdict: "accept" })).toEqual([0]);
  });
});

describe("what a page in one file keeps", () => {
  it("is spread over the run: last, first, then halves, each place once", () => {
    expect(spread(0)).toEqual([]);
    expect(spread(1)).toEqual([0]);
    expect(spread(2)).toEqual([1, 0]);
    expect(spread(9)).toEqual([8, 0, 4, 2, 6, 1, 3, 5, 7]);
    for (const count of [3, 10, 57]) expect([...spread(count)].sort((a, b) => a - b)).toEqual(Array.from({ length: count }, (_, i) => i));
  });

  it("compares unasked what is on the same problems, where some runs are", () => {
    const card = (id: string, problems: string) => ({ id, name: id, problems, standing: "ended" }) as RunCard;
    const home = (runs: readonly RunCard[], samples: readonly string[] = []): Home => ({
      version: "0",
      runs,
      samples: samples.map((id) => ({ id, name: id })),
      records: [],
      audits: [],
      live: true,
    });
    expect(unasked(home([card("a", "chain"), card("b", "sums"), card("c", "sums"), card("d", "boxes")]))).toEqual(["b", "c"]);
    expect(unasked(home([card("a", "chain"), card("b", "sums")]))).toEqual(["a", "b"]);
    expect(unasked(home([card("a", "chain"), card("b", "chain"), card("c", "")], ["s"]))).toEqual(["a", "b", "s"]);
    expect(unasked(home([], ["s", "t"]))).toEqual(["s", "t"]);
  });

  it("puts the side first that others are compared with", () => {
    expect(withFirst({ label: "b", runs: ["b0", "b1"] }, ["a0", "b0", "c", "b1"])).toEqual(["b0", "b1", "a0", "c"]);
    expect(withFirst(undefined, ["a"])).toEqual(["a"]);
  });
});

describe("what a run was started with", () => {
  const told = (config: Parameters<typeof settingsOf>[0]): { [name: string]: string } => Object.fromEntries(settingsOf({ method: "grpo", ...config }));

  it("is told by names: a task by its own, with options where it has some, and long paths by their ends", () => {
    expect(told({ task: { name: "chain", options: {} } }).problems).toBe("chain");
    expect(told({ task: { name: "chain", options: { modulus: 7 } } }).problems).toBe('chain {"modulus":7}');
    expect(told({ task: "written" }).problems).toBe("written");
    expect(told({ task: { name: "/home/someone/project/tasks/boxes.ts", options: {} } }).problems).toBe("…/tasks/boxes.ts");
    expect(told({ data: { file: "/home/someone/project/data/rows.jsonl" } }).problems).toBe("…/data/rows.jsonl");
    expect(told({ data: { sources: [{ file: "/home/someone/data/a/main", weight: 3 }, { file: "b.jsonl" }] } }).problems).toBe("…/a/main, b.jsonl");
    expect(
      told({
        data: { file: "rows.jsonl" },
        model: "/home/someone/models/tiny",
        verifier: { name: "number", options: { percent: "refuse" } },
        lora: { rank: 16, alpha: 32 },
        problems: 1,
        group: 4,
      }),
    ).toEqual({
      method: "grpo",
      policy: "…/models/tiny",
      problems: "rows.jsonl",
      verifier: 'number {"percent":"refuse"}',
      adapter: "rank 16",
      batch: "1 problem × 4 answers",
    });
  });
});
