/**
 * The view on a million rollouts: the first page, memory, scrolling, search, and what it takes from a run that goes on beside it. Linux alone.
 *
 *     npm run bench view [-- --steps 1000] [-- --groups 125] [-- --members 8] [-- --keep FOLDER]
 *
 * `--keep` writes the run there, or takes the one that is there.
 */
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { createReadStream, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { withoutClock } from "../src/train/store/schema.js";
import type { GroupWindow, SearchLine } from "../src/view/shapes.js";
import { chromiumMissing, chromiumPath, openPage, startChromium } from "../test/support/chromium.js";
import { longRun } from "./lib/long-run.js";
import { median, say } from "./lib/peers.js";
import { startView, type ViewProcess } from "./lib/view-process.js";

const args = process.argv.slice(2);
const option = (name: string, fallback: number): number => (args.includes(name) ? Number(args[args.indexOf(name) + 1]) : fallback);
const shape = { steps: option("--steps", 1000), groups: option("--groups", 125), members: option("--members", 8) };
const scratch = mkdtempSync(join(tmpdir(), "touchstone-bench-view-"));
const kept = args.includes("--keep") ? args[args.indexOf("--keep") + 1] : undefined;
const folder = kept ?? join(scratch, "million");
const root = fileURLToPath(new URL("..", import.meta.url));
const chromium = chromiumPath();

const ms = (value: number): string => `${value < 10 ? value.toFixed(1) : value.toFixed(0)} ms`;
const mb = (bytes: number): string => `${(bytes / 1e6).toFixed(0)} MB`;
const share = (value: number): string => `${(100 * value).toFixed(1)} %`;

/** Contents of the logs, and sizes and times of all files. */
async function printOf(of: string): Promise<string> {
  const hash = createHash("sha256");
  for (const name of (readdirSync(of, { recursive: true }) as string[]).sort()) {
    const { size, mtimeMs } = statSync(join(of, name));
    hash.update(`${name} ${size} ${mtimeMs}\n`);
    if (!/\.jsonl?$/.test(name)) continue;
    for await (const part of createReadStream(join(of, name))) hash.update(part as Buffer);
  }
  return hash.digest("hex");
}

async function timed<T>(work: () => Promise<T>): Promise<[number, T]> {
  const began = performance.now();
  const value = await work();
  return [performance.now() - began, value];
}

const get = async <T>(view: ViewProcess, path: string): Promise<T> => {
  const response = await fetch(`${view.address}${path}`, { headers: { "accept-encoding": "gzip" } });
  if (!response.ok) throw new Error(`${path}: ${await response.text()}`);
  return (path.startsWith("api/") ? response.json() : response.text()) as Promise<T>;
};

/** The last line of a search. */
async function searched(view: ViewProcess, id: string, filter: string): Promise<SearchLine | undefined> {
  const text = await (await fetch(`${view.address}api/runs/${id}/search?${filter}`)).text();
  const line = text.trimEnd().split("\n").at(-1);
  return line === undefined ? undefined : (JSON.parse(line) as SearchLine);
}

/** What the page asks for before it shows anything. */
async function firstPage(view: ViewProcess, id: string): Promise<void> {
  await get(view, "");
  await Promise.all([get(view, "app.js"), get(view, "app.css")]);
  await get(view, "api/home");
  await get(view, `api/runs/${id}/overview`);
}

async function opened(id: string): Promise<void> {
  const view = await startView(folder);
  try {
    const before = view.cpu();
    const [first] = await timed(() => firstPage(view, id));
    const busy = 1000 * (view.cpu() - before);
    const [again] = await timed(() => firstPage(view, id));
    say(
      `first page, program and data: ${ms(first)} (${ms(busy)} of processor time), again ${ms(again)}; the process was ready after ${ms(view.startedMs)} (${ms(1000 * before)} of processor time); ${mb(view.peak())}`,
    );
  } finally {
    await view.end();
  }
  if (chromium === undefined) return say(chromiumMissing);
  const browser = await startChromium(chromium);
  const places = [
    ["overview", `#/run/${id}`, ".chart .line"],
    ["rollouts, a step in the middle", `#/run/${id}/rollouts?step=${Math.ceil(shape.steps / 2)}`, ".tok"],
  ] as const;
  for (const [name, hash, shown] of places) {
    const cold = await startView(folder);
    const blank = await openPage(browser, "about:blank");
    const [took] = await timed(async () => {
      await blank.page.goto(`${cold.address}${hash}`);
      await blank.page.locator(shown).first().waitFor();
    });
    say(`in Chromium, from the address to the ${name}: ${ms(took)}`);
    await blank.close();
    await cold.end();
  }
  await browser.close();
}

async function browsed(id: string): Promise<void> {
  const view = await startView(folder);
  try {
    await firstPage(view, id);
    await view.stalls();
    const total = shape.steps * shape.groups;
    const jumps: number[] = [];
    for (let i = 0; i < 200; i++) {
      const from = Math.floor(((i * 0.618) % 1) * (total - 40));
      const [took, { rows }] = await timed(() => get<GroupWindow>(view, `api/runs/${id}/groups?from=${from}&count=40`));
      jumps.push(took);
      const [row] = rows;
      if (i % 10 === 0)
        await Promise.all([
          get(view, `api/runs/${id}/steps/${row.step}/groups/${row.index}`),
          get(view, `api/runs/${id}/steps/${row.step}/groups/${row.index}/tokens?members=8`),
        ]);
    }
    const scrolled = await view.stalls();
    say(`200 jumps in the list: ${ms(median(jumps))} each, the longest ${ms(Math.max(...jumps))}; the loop stood still for at most ${ms(scrolled.max)}`);
    for (const [what, filter] of [
      ["a text that is nowhere", "text=nowhere"],
      ["rejected answers of at least 31 tokens, of which there is none", "verdict=reject&least=31"],
    ] as const) {
      const before = view.cpu();
      let [longest, going] = [0, true];
      const others = (async () => {
        for (; going; await pause(20)) longest = Math.max(longest, (await timed(() => get(view, "app.css")))[0]);
      })();
      const [took, last] = await timed(() => searched(view, id, filter));
      going = false;
      await others;
      const stood = await view.stalls();
      if (last?.end !== "all") throw new Error(`the search ended with ${JSON.stringify(last)}`);
      say(
        `search for ${what}: ${(took / 1000).toFixed(1)} s, ${share((view.cpu() - before) / (took / 1000))} of a core; the loop stood still for at most ${ms(stood.max)}, another answer took ${ms(longest)} at most`,
      );
    }
    say(`the view's process after all of this: ${mb(view.peak())} at most`);
  } finally {
    await view.end();
  }
}

/** A page is open on the run while it grows by a step a second, and while it stands still. */
async function watched(id: string, seconds = 30): Promise<void> {
  if (chromium === undefined) return;
  const browser = await startChromium(chromium);
  const run = longRun(join(scratch, "live"), { ...shape, steps: shape.steps + 4 * seconds });
  const grown = Math.min(shape.steps, 4000);
  for (let step = 1; step <= grown; step++) run.write(step, step <= grown - 20);
  let step = grown;
  for (const [what, of, hash, write] of [
    ["stands still", folder, `#/run/${id}`, false],
    ["grows by a step a second, on its overview", join(scratch, "live"), "#/run/live", true],
    ["grows by a step a second, on its rollouts", join(scratch, "live"), "#/run/live/rollouts", true],
  ] as const) {
    const view = await startView(of);
    const { page, said, close } = await openPage(browser, `${view.address}${hash}`);
    await page
      .locator(hash.endsWith("rollouts") ? ".tok, .pre" : ".chart .line")
      .first()
      .waitFor();
    await pause(2000);
    const before = view.cpu();
    for (let i = 0; i < seconds; i++) {
      if (write) run.write(++step);
      await pause(1000);
    }
    say(`a page open for ${seconds} s on a run of ${step} steps that ${what}: the server used ${share((view.cpu() - before) / seconds)} of a core`);
    if (said.length > 0) throw new Error(said.join("\n"));
    await close();
    await view.end();
  }
  run.end();
  await browser.close();
}

interface Trained {
  readonly stepMs: number;
  /** Events without their clocks. */
  readonly events: string;
}

const cli = join(root, "dist/cli/main.js");

/** A real run; beside it, where asked, a view with a page that scrolls and searches without an end. */
async function trained(name: string, beside: boolean): Promise<Trained> {
  const out = join(scratch, name);
  const flags = ["--model", join(root, "starters/chain-1M"), "--task", "chain", "--steps", "25", "--problems", "4", "--group", "4", "--max-tokens", "40"];
  const child = spawn(process.execPath, [cli, "train", ...flags, "--out", out, "--seed", "0"], { stdio: "ignore" });
  const ended = new Promise<number | null>((done) => child.once("exit", done));
  const view = beside ? await startView(folder) : undefined;
  let going = true;
  void ended.then(() => {
    going = false;
  });
  if (view) {
    const id = readRun(folder);
    const total = shape.steps * shape.groups;
    while (going) {
      const search = searched(view, id, "text=nowhere").catch(() => undefined);
      for (let i = 0; going && i < 50; i++) {
        await get(view, `api/runs/${id}/groups?from=${Math.floor(((i * 0.618) % 1) * (total - 40))}&count=40`);
        await pause(200);
      }
      if (going) await search;
    }
  }
  const code = await ended;
  await view?.end();
  if (code !== 0) throw new Error(`touchstone train ended with ${code}`);
  const lines = readFileSync(join(out, "events.jsonl"), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  const steps = lines.filter(({ kind }) => kind === "step").map(({ clock }) => clock.ms as number);
  return { stepMs: median(steps.slice(5)), events: JSON.stringify(lines.map(withoutClock)) };
}

const readRun = (of: string): string => of.split("/").at(-1) as string;

async function besides(rounds = 3): Promise<void> {
  const [alone, beside]: [number[], number[]] = [[], []];
  const events = new Set<string>();
  for (let round = 0; round < rounds; round++) {
    for (const [list, watching] of [
      [alone, false],
      [beside, true],
    ] as const) {
      const { stepMs, events: of } = await trained(`trained-${round}-${watching}`, watching);
      list.push(stepMs);
      events.add(of);
    }
  }
  say(
    `a run of starters/chain-1M, median step of ${rounds} runs in turns: ${ms(median(alone))} alone, ${ms(median(beside))} beside a view that scrolls and searches all the time (${alone.map(Math.round).join(", ")}; ${beside.map(Math.round).join(", ")}); its events without clocks are ${events.size === 1 ? "the same" : "NOT THE SAME"}`,
  );
}

try {
  // Compiles what is older than its sources.
  if (spawnSync(process.execPath, [join(root, "scripts/start.mjs"), "--version"], { stdio: ["ignore", "ignore", "inherit"] }).status !== 0)
    throw new Error("the sources do not compile");
  if (!existsSync(folder)) {
    const [took] = await timed(async () => {
      const run = longRun(folder, shape);
      for (let step = 1; step <= shape.steps; step++) run.write(step);
      run.end();
    });
    say(`written in ${(took / 1000).toFixed(0)} s`);
  }
  const rollouts = shape.steps * shape.groups * shape.members;
  const bytes = (readdirSync(folder, { recursive: true }) as string[]).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
  say(`${rollouts.toLocaleString("en")} rollouts in ${shape.steps} steps, ${(bytes / 1e9).toFixed(2)} GB`);
  const before = await printOf(folder);
  const id = readRun(folder);
  await opened(id);
  await browsed(id);
  await watched(id);
  await besides();
  say(`the run's bytes and times: ${(await printOf(folder)) === before ? "unchanged" : "CHANGED"}`);
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
