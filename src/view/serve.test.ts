/** The view's server over written run folders: what it answers is what is stored, live and afterwards, whole or damaged; and nothing is changed. */
import { appendFileSync, cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hostileText, longLine, viewRun, writtenRun } from "../../test/support/view-run.js";
import { RunReader, runPaths } from "../train/store/reader.js";
import { Answers } from "./answers.js";
import { archiveOf, fileOf } from "./archive.js";
import { kept } from "./filter.js";
import { search } from "./search.js";
import { type Served, serve } from "./serve.js";
import type { Comparison, Filter, GroupDetail, GroupWindow, Home, Overview, SearchLine, TokenSlice } from "./shapes.js";

const scratch = mkdtempSync(join(tmpdir(), "touchstone-view-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const folder = join(scratch, "runs", "whole");

/** A page that was built: what it holds does not matter here. */
const page = join(scratch, "page");
const served: Served[] = [];
afterAll(() => Promise.all(served.map((each) => each.close())));

async function open(paths: readonly string[], more: { readonly expected?: readonly string[]; readonly token?: string } = {}): Promise<string> {
  const { expected, ...rest } = more;
  const one = await serve({ answers: new Answers({ paths, ...(expected && { expected }) }), port: 0, page, everyMs: 20, ...rest });
  served.push(one);
  return one.address;
}

async function get<T>(address: string, path: string): Promise<T> {
  const response = await fetch(new URL(`/api/${path}`, address));
  const value = (await response.json()) as T & { readonly error?: string };
  if (!response.ok) throw new Error(value.error);
  return value;
}

async function found(address: string, run: string, filter: Filter): Promise<SearchLine[]> {
  const query = new URLSearchParams(Object.entries(filter).map(([name, value]): [string, string] => [name, String(value)]));
  const text = await (await fetch(new URL(`/api/runs/${run}/search?${query}`, address))).text();
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as SearchLine);
}

/** Every byte of a folder. */
function bytesOf(path: string): { readonly [file: string]: string } {
  const names = readdirSync(path, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return Object.fromEntries(names.map((entry) => [join(entry.parentPath, entry.name), readFileSync(join(entry.parentPath, entry.name), "latin1")]));
}

let address: string;
let before: ReturnType<typeof bytesOf>;
beforeAll(async () => {
  mkdirSync(page);
  for (const [name, text] of [
    ["app.js", 'if (1 < 2) document.title = "</script>";'],
    ["app.css", "b { color: red }"],
    [
      "index.html",
      '<!doctype html>\n<html>\n  <head>\n    <meta charset="utf-8" />\n    <link rel="stylesheet" href="/app.css" />\n    <script src="/app.js" defer></script>\n  </head>\n  <body></body>\n</html>\n',
    ],
  ] as const)
    writeFileSync(join(page, name), text);
  writtenRun(folder);
  before = bytesOf(folder);
  address = await open([folder]);
});

describe("the view of a run", () => {
  it("shows its numbers, its evaluations with intervals, and how it stands", async () => {
    const home = await get<Home>(address, "home");
    expect(home).toMatchObject({ live: true, runs: [{ id: "whole", standing: "ended", method: "grpo", step: 12, steps: 12, score: 0.75, reward: 1 }] });
    const { table, evaluations, insight, end, damage } = await get<Overview>(address, "runs/whole/overview");
    expect(table.steps).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    expect(table.columns.entropy?.slice(0, 3)).toEqual([1, 0.5, 0.333333]);
    expect(table.columns["clock.ms"]?.[0]).toBe(21);
    expect(evaluations.map(({ step, score }) => [step, score])).toEqual([
      [0, 0.25],
      [12, 0.75],
    ]);
    expect(insight.verdict).toBe("learning");
    expect([end, damage]).toEqual(["12 steps are done", []]);
  });

  it("gives windows of its groups by number and by step", async () => {
    const all = await get<GroupWindow>(address, "runs/whole/groups?from=0&count=100");
    expect([all.total, all.rollouts, all.steps]).toEqual([27, 106, [1, 12]]);
    const part = await get<GroupWindow>(address, "runs/whole/groups?from=5&count=3");
    expect(part.rows).toEqual(all.rows.slice(5, 8));
    const ofStep = await get<GroupWindow>(address, "runs/whole/groups?step=3&count=1");
    expect([ofStep.from, ofStep.rows[0]?.step, ofStep.rows[0]?.index]).toEqual([7, 3, 0]);
  });

  it("gives a group with verdicts, reasons and evidence as they are stored, and long texts in part until they are asked for", async () => {
    const detail = await get<GroupDetail>(address, "runs/whole/steps/2/groups/2");
    expect(detail.problem).toMatchObject({ key: "hostile-2", tags: { level: 5 }, reference: { state: "gold", answer: "7" } });
    expect(detail.problem.prompt[0]?.content.text).toBe(hostileText);
    const [first, long, part] = detail.members;
    expect(first?.verdict).toMatchObject({ kind: "reject", evidence: { extracted: expect.stringContaining("<script>") } });
    expect(long?.text).toEqual({ text: longLine.slice(0, 20_000), total: longLine.length });
    expect(part?.verdict).toMatchObject({ kind: "partial", score: 0.25, parts: { form: 1, value: -0.5 } });
    const whole = await get<GroupDetail>(address, "runs/whole/steps/2/groups/2?whole=1");
    expect(whole.members[1]?.text.text).toBe(longLine);
  });

  it("gives tokens with the columns that were stored of them, stage by stage", async () => {
    const slice = await get<TokenSlice>(address, "runs/whole/steps/2/groups/4/members/0");
    const stored = (await RunReader.open(folder).groups(2))[4]?.rollouts[0];
    expect(slice.ids).toEqual([...(stored?.trajectory.response ?? [])]);
    expect(slice.sampled).toEqual([1, 1, 1, 0, 0, 1, 1, 1]);
    expect(slice.columns["coefficient.credit.0.grpo"]).toEqual(Array(8).fill(0.5));
    expect(slice.columns.coefficient?.slice(0, 5)).toEqual([0.5, 0.625, 0.75, 0, 0]);
    const part = await get<TokenSlice>(address, "runs/whole/steps/2/groups/4/members/0?from=6");
    expect([part.from, part.total, part.ids]).toEqual([6, 8, slice.ids.slice(6)]);
  });

  it("finds what a reading of all records finds", async () => {
    const reader = RunReader.open(folder);
    const filters: Filter[] = [
      { text: "evil" },
      { text: "</textarea>" },
      { verdict: "partial" },
      { reason: "format" },
      { problem: "tree" },
      { tag: "level=5" },
      { stop: "length" },
      { least: 9 },
      { verdict: "accept", text: "gives", most: 6 },
    ];
    for (const filter of filters) {
      const expected: [number, number, number[]][] = [];
      for (const { step } of reader.rolloutIndex()) {
        for (const [index, { group, rollouts }] of (await reader.groups(step)).entries()) {
          const members = rollouts.map(({ trajectory: { verdict, stop, response, text, turns = [] } }) => ({
            kind: verdict.kind,
            ...("reason" in verdict && { reason: verdict.reason }),
            stop,
            tokens: response.length,
            texts: () => [text, ...turns.flatMap(({ action, observation }) => [action, observation])],
          }));
          const { key, prompt, tags } = group.problem;
          const places = kept(filter, { problem: key, ...(tags && { tags }), prompt: prompt.map(({ content }) => content) }, members);
          if (places.length > 0) expected.push([step, index, places]);
        }
      }
      const lines: SearchLine[] = [];
      const { signal } = new AbortController();
      for await (const line of search({ path: runPaths(folder).rollouts, rows: reader.rolloutIndex(), filter, signal })) lines.push(line);
      // The server's own is the same in a thread, which takes its time to start.
      const told = (list: readonly SearchLine[]) => list.filter(({ found: line, end }) => line ?? end);
      if (filter === filters[0]) expect(told(await found(address, "whole", filter))).toEqual(told(lines));
      expect(expected.length, JSON.stringify(filter)).toBeGreaterThan(0);
      expect(
        lines.flatMap(({ found: line }) => (line ? [[line.row.step, line.row.index, line.members]] : [])),
        JSON.stringify(filter),
      ).toEqual(expected);
      expect(lines.at(-1)).toMatchObject({ end: "all", done: 27, total: 27 });
    }
  });

  it("that is left ends its search, and one that fails says so", async () => {
    const left = join(scratch, "left");
    cpSync(folder, left, { recursive: true });
    const answers = new Answers({ paths: [left] });
    const gone = new AbortController();
    const lines = answers.search("left", { text: "nowhere" }, gone.signal);
    const first = lines.next();
    gone.abort();
    expect((await first).done).toBe(true);
    rmSync(runPaths(left).rollouts);
    await expect(answers.search("left", { text: "nowhere" }, new AbortController().signal).next()).rejects.toThrow(/the search failed: .*ENOENT/);
  });

  it("answers what cannot be with a sentence", async () => {
    await expect(get(address, "runs/other/overview")).rejects.toThrow("run other: there is no such run in this view; choose one from the list");
    await expect(get(address, "runs/whole/steps/77/groups/0")).rejects.toThrow("step 77: it has no rollouts; give a step from 1 to 12");
    await expect(get(address, "runs/whole/groups?from=-1")).rejects.toThrow("give a whole number");
    await expect(get(address, "runs/whole/search?verdict=maybe")).rejects.toThrow('there is no verdict "maybe"');
    await expect(get(address, "nothing")).rejects.toThrow("there is no such answer");
    expect((await fetch(new URL("/api/home", address), { method: "POST" })).status).toBe(405);
  });

  it("lets no page run but its own, and refuses other names of this machine", async () => {
    const { headers } = await fetch(address);
    expect(headers.get("content-security-policy")).toContain("default-src 'none'; script-src 'self'");
    const code = await new Promise((done) => request(address, { headers: { host: "rebound.example" } }, ({ statusCode }) => done(statusCode)).end());
    expect(code).toBe(403);
  });

  it("asks others for the token, and is not started for them without one", async () => {
    const guarded = new URL(await open([folder], { token: "s3cret" }));
    expect((await fetch(new URL("/api/home", guarded))).status).toBe(401);
    const entered = await fetch(guarded, { redirect: "manual" });
    expect([entered.status, entered.headers.get("location")]).toEqual([303, "/"]);
    expect((await fetch(new URL("/api/home", guarded), { headers: { cookie: entered.headers.get("set-cookie") ?? "" } })).status).toBe(200);
    await expect(serve({ answers: new Answers({ paths: [folder] }), port: 0, page, host: "0.0.0.0" })).rejects.toThrow("no token keeps them out");
  });

  it("changes no byte of the folder", () => {
    expect(bytesOf(folder)).toEqual(before);
  });
});

describe("a run that goes on", () => {
  it("is told of as it grows, and what was sent in parts is what a finished run sends at once", async () => {
    const growing = join(scratch, "growing");
    const live = await open([growing], { expected: [growing] });
    expect((await get<Home>(live, "home")).runs[0]).toMatchObject({ standing: "waiting", step: 0 });
    const stop = new AbortController();
    const news = (await fetch(new URL("/api/live", live), { signal: stop.signal })).body?.pipeThrough(new TextDecoderStream()).getReader();
    const heard = async (): Promise<void> => {
      for (;;) if ((await news?.read())?.value?.includes('{"runs":["growing"]}')) return;
    };
    const run = viewRun(growing, 6);
    await heard();
    let table = (await get<Overview>(live, "runs/growing/overview")).table;
    for (let step = 1; step <= 6; step++) {
      run.write(step);
      await heard();
      const next = await get<Overview>(live, `runs/growing/overview?after=${table.steps.at(-1) ?? 0}&generation=0&every=1`);
      expect(next.card.standing).toBe("going");
      const names = [...new Set([...Object.keys(table.columns), ...Object.keys(next.table.columns)])];
      const columns = Object.fromEntries(names.map((name) => [name, [...(table.columns[name] ?? []), ...(next.table.columns[name] ?? [])]]));
      table = { every: 1, steps: [...table.steps, ...next.table.steps], columns };
    }
    run.end();
    await heard();
    stop.abort();
    const end = await get<Overview>(live, "runs/growing/overview");
    expect(end.card.standing).toBe("ended");
    expect(table).toEqual(end.table);
    const afterwards = await get<Overview>(await open([growing]), "runs/growing/overview");
    expect({ ...end, card: { ...end.card, name: "" } }).toEqual({ ...afterwards, card: { ...afterwards.card, name: "" } });
  });

  it("that was cut by a resume is read anew", async () => {
    const cut = join(scratch, "cut");
    cpSync(folder, cut, { recursive: true });
    const live = await open([cut]);
    expect((await get<Overview>(live, "runs/cut/overview")).generation).toBe(0);
    const { events, index, rollouts } = runPaths(cut);
    const lines = readFileSync(events, "utf8").split("\n");
    writeFileSync(events, `${lines.slice(0, 6).join("\n")}\n`);
    const rows = readFileSync(index, "utf8").split("\n").slice(0, 4);
    writeFileSync(index, `${rows.join("\n")}\n`);
    const { clock } = JSON.parse(rows[3] as string) as { clock: { offset: number; bytes: number } };
    truncateSync(rollouts, clock.offset + clock.bytes);
    const after = await get<Overview>(live, "runs/cut/overview?after=12&generation=0");
    expect([after.generation, after.after, after.table.steps]).toEqual([1, undefined, [1, 2, 3, 4]]);
    expect((await get<GroupWindow>(live, "runs/cut/groups?from=0&count=1")).steps).toEqual([1, 4]);
  });
});

describe("a folder that is not whole", () => {
  const copy = (name: string): string => {
    const path = join(scratch, "broken", name);
    cpSync(folder, path, { recursive: true });
    return path;
  };

  it("killed in the middle of a line shows all lines before it", async () => {
    const path = copy("half");
    appendFileSync(join(path, "events.jsonl"), '{"step":13,"kind":"step","data":{"metr');
    appendFileSync(join(path, "rollouts/index.jsonl"), '{"step":13,"first":10');
    appendFileSync(join(path, "rollouts/rollouts.jsonl"), '{"step":13,"key":"x');
    const live = await open([path]);
    const { table, damage } = await get<Overview>(live, "runs/half/overview");
    expect([table.steps.length, damage]).toEqual([12, []]);
    expect((await get<GroupWindow>(live, "runs/half/groups?from=26&count=5")).rows).toHaveLength(1);
    expect((await found(live, "half", { verdict: "partial" })).filter((line) => line.found)).toHaveLength(1);
  });

  it("with a damaged line leaves it out and says which", async () => {
    const path = copy("damaged");
    const { events, rollouts } = runPaths(path);
    const text = readFileSync(events, "utf8");
    writeFileSync(events, text.replace('"step":5', '"step":x5'));
    const lines = readFileSync(rollouts, "utf8").split("\n");
    lines[3] = `${"#".repeat((lines[3] as string).length)}`;
    writeFileSync(rollouts, lines.join("\n"));
    const live = await open([path]);
    const { table, damage } = await get<Overview>(live, "runs/damaged/overview");
    expect(table.steps).not.toContain(5);
    expect(damage).toEqual([expect.stringMatching(/^events\.jsonl, the line before byte \d+, is damaged and is left out$/)]);
    const { rows, damage: told } = await get<GroupWindow>(live, "runs/damaged/groups?from=0&count=27");
    expect(rows[3]).toMatchObject({ step: 2, index: 1, text: "(damaged)", members: [] });
    expect(told).toContain("group 1 of step 2: the line is damaged");
    expect((await found(live, "damaged", { verdict: "accept" })).some(({ fault }) => fault?.includes("damaged"))).toBe(false);
  });

  it("without its token columns shows texts and verdicts, and says what is missing", async () => {
    const path = copy("columns");
    rmSync(join(path, "rollouts/columns"), { recursive: true });
    const live = await open([path]);
    expect((await get<GroupDetail>(live, "runs/columns/steps/1/groups/0")).members).toHaveLength(4);
    await expect(get(live, "runs/columns/steps/1/groups/0/tokens?members=4")).rejects.toThrow("00000001.safetensors");
  });

  it("of an older or newer version, or without its run.json's sense, is listed with what is wrong, beside runs that are whole", async () => {
    const [older, newer, torn] = ["older", "newer", "torn"].map(copy) as [string, string, string];
    for (const [path, version] of [
      [older, 0],
      [newer, 99],
    ] as const) {
      const file = join(path, "run.json");
      writeFileSync(file, readFileSync(file, "utf8").replace('"version":1', `"version":${version}`));
    }
    truncateSync(join(torn, "run.json"), 40);
    cpSync(folder, join(scratch, "mixed", "whole"), { recursive: true });
    for (const path of [older, newer, torn]) cpSync(path, join(scratch, "mixed", basename(path)), { recursive: true });
    const live = await open([join(scratch, "mixed")]);
    const { runs } = await get<Home>(live, "home");
    const faults = Object.fromEntries(runs.map(({ name, standing, fault }) => [name, standing === "fault" ? fault : standing]));
    expect(faults).toEqual({
      whole: "ended",
      older: expect.stringContaining("it was written in version 0 of the run format, and this Touchstone reads version 1"),
      newer: expect.stringContaining("it was written in version 99 of the run format"),
      torn: expect.stringContaining("it is not JSON"),
    });
  });

  it("or no run at all is refused before the view begins", () => {
    expect(() => new Answers({ paths: [join(scratch, "nowhere")] })).toThrow("there is no such folder; give folders that touchstone train");
    const empty = mkdtempSync(join(scratch, "empty-"));
    expect(() => new Answers({ paths: [empty] })).toThrow("it is not the folder of a run, and there is none in it");
  });

  it("that vanishes while it is looked at is said to be gone, with what was seen of it, and is back when it is", async () => {
    const path = copy("gone");
    const live = await open([path]);
    await get<Home>(live, "home");
    rmSync(path, { recursive: true });
    expect((await get<Home>(live, "home")).runs).toMatchObject([
      { id: "gone", step: 12, standing: "fault", fault: expect.stringContaining("the run is not there any more") },
    ]);
    copy("gone");
    expect((await get<Home>(live, "home")).runs).toMatchObject([{ id: "gone", step: 12, standing: "ended" }]);
  });
});

describe("runs beside each other", () => {
  it("are sides of paired seeds with differences and intervals, and problems that one side solves and the other does not", async () => {
    const root = join(scratch, "sides");
    for (const seed of [0, 1, 2]) {
      writtenRun(join(root, `a/seed-${seed}`), 3, { seed }, [1, 0, 0, seed === 1 ? 1 : 0]);
      writtenRun(join(root, `b/seed-${seed}`), 3, { seed, method: "rloo" }, [1, 1, seed === 0 ? 0 : 1, 0]);
    }
    const live = await open([root]);
    const { runs } = await get<Home>(live, "home");
    const { report, arms, problems, missing } = await get<Comparison>(live, `compare?runs=${runs.map(({ id }) => id).join(",")}&metric=eval.score`);
    expect(arms.map(({ label, runs: of }) => [label, of.length])).toEqual([
      ["a", 3],
      ["b", 3],
    ]);
    const [, b] = report.arms;
    // Of four problems: a 1/4, 2/4, 1/4; b 2/4, 3/4, 3/4.
    expect(b?.difference).toMatchObject({ mean: expect.closeTo(1 / 3, 9), pairs: 3 });
    expect(b?.difference?.seeds?.low).toBeLessThan(1 / 3);
    expect(b?.curve.map(({ step }) => step)).toEqual([0, 3]);
    expect(problems.map(({ key, scores }) => [key, scores.map((score) => Number(score?.toFixed(3)))])).toEqual([
      ["h0", [1, 1]],
      ["h1", [0, 1]],
      ["h2", [0, 0.667]],
      ["h3", [0.333, 0]],
    ]);
    expect(missing).toEqual([]);
    await expect(get(live, `compare?runs=${runs[0]?.id}&metric=nonsense`)).rejects.toThrow("choose runs that have this metric");
  });
});

describe("a page in one file", () => {
  it("holds what the server answers, and leaves out groups that have no room, spread over the run", async () => {
    const answers = new Answers({ paths: [folder] });
    const whole = await archiveOf(answers);
    expect(whole.home.live).toBe(false);
    expect(whole.runs.whole?.overview).toEqual(await answers.overview("whole"));
    expect(whole.runs.whole?.groups).toHaveLength(27);
    expect(whole.runs.whole?.groups[4]).toEqual({
      row: (await answers.groups("whole", { group: 4 }, 1)).rows[0],
      detail: await answers.group("whole", 2, 2),
      tokens: await answers.tokensOfAll("whole", 2, 2, 4),
    });
    const { groups = [], left = 0 } = (await archiveOf(answers, { most: 30_000 })).runs.whole ?? {};
    expect(groups.length + left).toBe(27);
    expect(left).toBeGreaterThan(0);
    expect([groups[0]?.row.step, groups.at(-1)?.row.step]).toEqual([1, 12]);
  });

  it("has its program and data within, which no text of a rollout can break out of", async () => {
    const archive = await archiveOf(new Answers({ paths: [folder] }));
    const file = fileOf({ script: 'document.title = "</script><!--";', style: "b{}", document: readFileSync(join(page, "index.html"), "utf8") }, archive);
    expect(file.match(/<\/script>/g)).toHaveLength(2);
    expect(file).not.toContain("<!--");
    expect(file).not.toContain("window.owned");
    expect(file).not.toContain("app.js");
    expect(file).toMatch(/Content-Security-Policy" content="default-src 'none'; script-src 'sha256-[\w+/=]+'; style-src 'sha256-/);
  });
});
