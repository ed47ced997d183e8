/** Run folders that are broken in many ways: every answer is what can still be read, or a sentence that says what is wrong; never a fault of the server. */
import { appendFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { writtenRun } from "../../test/support/view-run.js";
import { runPaths } from "../train/store/reader.js";
import { Answers } from "./answers.js";
import { archiveOf } from "./archive.js";
import { type Served, serve } from "./serve.js";
import type { Home, Overview } from "./shapes.js";

const scratch = mkdtempSync(join(tmpdir(), "touchstone-broken-"));
const whole = join(scratch, "whole");
const page = join(scratch, "page");
let served: Served | undefined;

/** What breaks a folder. */
type Break = (folder: string) => void;

function edit(path: string, change: (text: string) => string): void {
  writeFileSync(path, change(readFileSync(path, "utf8")));
}

/** Changes each line of a file of JSON lines that a test picks. */
const lines =
  (of: "events" | "rollouts" | "index", which: (line: Line) => boolean, change: (line: Line) => unknown): Break =>
  (folder) =>
    edit(runPaths(folder)[of], (text) =>
      text
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line) as Line)
        // Lines keep their lengths, so that the index still points at them.
        .map((line) => (which(line) ? JSON.stringify(change(line)) : JSON.stringify(line)))
        .join("\n")
        .concat("\n"),
    );

// biome-ignore lint/suspicious/noExplicitAny: lines are broken on purpose.
type Line = any;

const isStep = ({ kind }: Line): boolean => kind === "step";
const run =
  (change: (run: Line) => unknown): Break =>
  (folder) =>
    edit(runPaths(folder).run, (text) => JSON.stringify(change(JSON.parse(text))));
const columnsOf = (folder: string): string => join(runPaths(folder).columns, "00000002.safetensors");

const breaks: { [name: string]: Break } = {
  "no events": (folder) => rmSync(runPaths(folder).events),
  "empty events": (folder) => writeFileSync(runPaths(folder).events, ""),
  "events that are a folder": (folder) => {
    rmSync(runPaths(folder).events);
    mkdirSync(runPaths(folder).events);
  },
  "events that are bytes of anything": (folder) => writeFileSync(runPaths(folder).events, Buffer.from(Array.from({ length: 5000 }, (_, i) => (i * 37) % 256))),
  "lines that are null, numbers and lists": (folder) => appendFileSync(runPaths(folder).events, 'null\n7\n[]\n"text"\n{}\n{"kind":"step"}\n'),
  "kinds that nobody knows": (folder) => appendFileSync(runPaths(folder).events, '{"kind":"later","step":13,"data":{}}\n'),
  "metrics that are texts, null and beyond all numbers": lines("events", isStep, (line) => ({
    ...line,
    data: { ...line.data, metrics: { reward: "high", entropy: null, grad_norm: 1e308, lr: { deep: [1] }, "": 3, __proto__: 4 } },
  })),
  "no metrics and no verdicts": lines("events", isStep, (line) => ({ ...line, data: {}, clock: null })),
  "verdicts and metrics that are lists": lines("events", isStep, (line) => ({ ...line, data: { metrics: [1, 2], verdicts: [3] }, clock: "late" })),
  "evaluations without estimates or with broken ones": lines(
    "events",
    ({ kind }) => kind === "evaluation",
    (line) => ({ ...line, data: { score: "most", problems: "all", estimates: [null, 3, { name: 7 }], scores: "none" } }),
  ),
  "an end without words": lines(
    "events",
    ({ kind }) => kind === "end",
    (line) => ({ ...line, data: {} }),
  ),
  "held-out problems that are none": lines(
    "events",
    ({ kind }) => kind === "start",
    (line) => ({ ...line, data: { heldout: { key: "h" } } }),
  ),
  "held-out problems without texts": lines(
    "events",
    ({ kind }) => kind === "start",
    (line) => ({ ...line, data: { heldout: [null, 4, {}] } }),
  ),
  "a configuration that is a list": run((file) => ({ ...file, config: [1, 2] })),
  "a configuration of other types": run((file) => ({ ...file, config: { steps: "many", seed: "x", method: 7, model: { a: 1 }, limits: 3, stages: "two" } })),
  "no configuration": run(({ config: _, ...file }) => file),
  "run.json that is a folder": (folder) => {
    rmSync(runPaths(folder).run);
    mkdirSync(runPaths(folder).run);
  },
  "an index of anything": (folder) => writeFileSync(runPaths(folder).index, "{}\n[]\nnot json\n"),
  "an index with numbers that cannot be": lines(
    "index",
    ({ step }) => step === 2,
    (line) => ({ ...line, groups: 1_000_000_000, count: -5 }),
  ),
  "an index that points beyond the file": lines(
    "index",
    ({ step }) => step === 2,
    (line) => ({ ...line, clock: { offset: 1e12, bytes: 1e12 } }),
  ),
  "an index without its rollouts": (folder) => rmSync(runPaths(folder).rollouts),
  "rollouts without an index": (folder) => rmSync(runPaths(folder).index),
  "rollouts that are shorter than their index": (folder) => edit(runPaths(folder).rollouts, (text) => text.slice(0, 400)),
  "columns that are no tensors": (folder) => writeFileSync(columnsOf(folder), "no tensors at all"),
  "columns whose head claims more than there is": (folder) => {
    const bytes = readFileSync(columnsOf(folder));
    bytes.writeBigUInt64LE(1n << 60n);
    writeFileSync(columnsOf(folder), bytes);
  },
  "columns that end early": (folder) => writeFileSync(columnsOf(folder), readFileSync(columnsOf(folder)).subarray(0, 3000)),
  "no columns": (folder) => rmSync(columnsOf(folder)),
  "checkpoints that are a file": (folder) => {
    rmSync(runPaths(folder).checkpoints, { recursive: true, force: true });
    writeFileSync(runPaths(folder).checkpoints, "");
  },
  "a tokenizer that is none": (folder) => {
    const policy = join(runPaths(folder).checkpoints, "step-00000012/policy");
    mkdirSync(policy, { recursive: true });
    writeFileSync(join(policy, "tokenizer.json"), "{");
    writeFileSync(join(policy, "config.json"), "[]");
  },
};

/** Groups whose lines are JSON of another shape than a group has. */
const groups: { readonly [name: string]: (line: Line) => unknown } = {
  "a group without members": (line) => ({ ...line, rollouts: [] }),
  "members that are null": (line) => ({ ...line, rollouts: [null, 4] }),
  "members without anything": (line) => ({ ...line, rollouts: [{}, {}] }),
  "verdicts that are null": (line) => ({ ...line, rollouts: line.rollouts.map((each: Line) => ({ ...each, verdict: null, numbers: null, tokens: null })) }),
  "texts that are numbers": (line) => ({ ...line, rollouts: line.rollouts.map((each: Line) => ({ ...each, text: 7, turns: [null], spans: 3, parent: 4 })) }),
  "a prompt of anything": (line) => ({ ...line, problem: { ...line.problem, prompt: [null, { role: 1, content: 2 }], tags: 4, reference: null } }),
  "no problem": ({ problem: _, ...line }) => line,
  "contexts that are none": (line) => ({ ...line, contexts: [null, { ids: "all" }] }),
};
for (const [name, change] of Object.entries(groups)) {
  breaks[name] = (folder) => {
    const { rollouts, index } = runPaths(folder);
    const parts = readFileSync(rollouts, "utf8").trimEnd().split("\n");
    const changed = parts.map((part, i) => (i === 2 ? JSON.stringify(change(JSON.parse(part))) : part));
    writeFileSync(rollouts, `${changed.join("\n")}\n`);
    const by = Buffer.byteLength(changed[2] as string) - Buffer.byteLength(parts[2] as string);
    edit(index, (text) =>
      text
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line))
        .map((row) =>
          row.step < 2
            ? row
            : { ...row, clock: row.step === 2 ? { ...row.clock, bytes: row.clock.bytes + by } : { ...row.clock, offset: row.clock.offset + by } },
        )
        .map((row) => JSON.stringify(row))
        .join("\n")
        .concat("\n"),
    );
  };
}

/** All that a page can ask of a run, but for a search, whose thread takes its time. */
const asked = (id: string): readonly string[] => [
  "home",
  `runs/${id}/overview`,
  `runs/${id}/groups?from=0&count=40`,
  `runs/${id}/groups?step=2&count=3`,
  `runs/${id}/steps/2/groups/0`,
  `runs/${id}/steps/2/groups/0?whole=0`,
  `runs/${id}/steps/2/groups/0/tokens?members=8`,
  `runs/${id}/steps/2/groups/0/members/1?from=2`,
  `runs/${id}/steps/3/groups/0`,
  `compare?runs=${id},whole&metric=eval.score`,
  `compare?runs=${id},whole&metric=reward`,
];

beforeAll(() => {
  writtenRun(whole, 4);
  mkdirSync(page);
  for (const name of ["app.js", "app.css", "index.html"]) writeFileSync(join(page, name), "");
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

describe("a run folder with", () => {
  it.each(Object.keys(breaks))("%s is shown as far as it can be read", async (name) => {
    const root = mkdtempSync(join(scratch, "case-"));
    const folder = join(root, "broken");
    cpSync(whole, folder, { recursive: true });
    (breaks[name] as Break)(folder);
    served = await serve({ answers: new Answers({ paths: [root, whole] }), port: 0, page });
    try {
      const faults: string[] = [];
      for (const path of asked("broken")) {
        const response = await fetch(new URL(`/api/${path}`, served.address));
        const text = await response.text();
        JSON.parse(text);
        // A sentence has its place, its cause and what mends it; the words of the language's own errors do not.
        if (![200, 400].includes(response.status) || /TypeError|is not a function|not iterable|Cannot (read|destructure)/.test(text))
          faults.push(`${path}: ${response.status} ${text.slice(0, 300)}`);
      }
      expect(faults).toEqual([]);
      const { runs } = (await (await fetch(new URL("/api/home", served.address))).json()) as Home;
      expect(runs.find(({ id }) => id === "whole")?.standing).toBe("ended");
      const { runs: archived } = await archiveOf(new Answers({ paths: [root] }), { most: 20_000 });
      expect(Object.keys(archived).length).toBeLessThanOrEqual(1);
    } finally {
      await served.close();
      rmSync(root, { recursive: true });
    }
  });
});

describe("folders", () => {
  it("that link to each other in a circle are each shown once", () => {
    const root = join(scratch, "circle");
    mkdirSync(root);
    cpSync(whole, join(root, "one"), { recursive: true });
    symlinkSync(root, join(root, "again"));
    symlinkSync(join(root, "itself"), join(root, "itself"));
    expect(new Answers({ paths: [root] }).runs().map(({ name }) => name)).toEqual(["one"]);
  });

  it("whose names are of other scripts, or would mean something in an address, have addresses of their own", async () => {
    const root = join(scratch, "names");
    const names = ["ünï cöde", "試験", "a#b?c=d&e", "%2e%2e", "-"];
    for (const name of names) cpSync(whole, join(root, name), { recursive: true });
    const answers = new Answers({ paths: [root] });
    const { runs } = await answers.home();
    expect(runs.map(({ name }) => name).sort()).toEqual([...names].sort());
    expect(new Set(runs.map(({ id }) => id)).size).toBe(names.length);
    for (const { id, name } of runs) expect(((await answers.overview(encodeURIComponent(id))) as Overview).card.name).toBe(name);
  });

  it("that become another run while they are looked at are read anew", async () => {
    const path = join(scratch, "replaced");
    cpSync(whole, path, { recursive: true });
    const answers = new Answers({ paths: [path] });
    expect((await answers.overview("replaced")).card.step).toBe(4);
    renameSync(path, join(scratch, "moved"));
    writtenRun(path, 15, { method: "rloo" });
    const { card, generation, table } = await answers.overview("replaced");
    expect([card.method, card.step, table.steps.length, generation]).toEqual(["rloo", 15, 15, 1]);
  });
});
