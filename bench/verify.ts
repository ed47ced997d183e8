/**
 * `npm run bench verify`: how long a verdict of `math` takes on responses of 200 tokens or more to GSM8K and MATH-500, a
 * quarter of them wrong; verdicts a second on two threads; what a comparison that never ends costs the next one; and
 * Math-Verify on the same pairs in turns, one process each, where Python has it (TOUCHSTONE_PYTHON=install fetches 115 MB).
 * A run judges many thousands of answers, so what is measured comes after the runtime has compiled the code: `warm` passes.
 *
 *     npm run bench verify [-- --rounds 2] [-- --limit 300] [-- --warm 6]
 */
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import type { Problem } from "../src/core/problem.js";
import { randomKey, Stream } from "../src/core/random.js";
import { namedVerifier } from "../src/verify/catalogue.js";
import { judge } from "../src/verify/contract.js";
import { math } from "../src/verify/math/math.js";
import { startPool } from "../src/verify/pool.js";
import { loadVerifier } from "../src/verify/source.js";
import { repository } from "../test/paths.js";
import { mathVerify, pythonOf } from "../test/python/environment.js";
import { median, say, share } from "./lib/peers.js";

interface Pair {
  readonly gold: string;
  readonly pred: string;
  readonly expected: boolean;
}

const flag = (name: string, preset: number): number => Number(process.argv[process.argv.indexOf(`--${name}`) + 1 || -1] ?? preset) || preset;
const rounds = flag("rounds", 2);
const warm = flag("warm", 6);
const limit = flag("limit", Number.POSITIVE_INFINITY);
/** About four characters a token. */
const shortest = 800;

const rows = (file: string): { readonly [column: string]: string }[] =>
  readFileSync(join(repository, "test", "data", file), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as { readonly [column: string]: string });

/** A response as models write them: the problem in other words, the data set's own solution as steps, a boxed answer. Each fourth has the answer of another problem. */
function pairsOf(problems: readonly { readonly question: string; readonly solution: string; readonly gold: string }[]): Pair[] {
  const random = new Stream(randomKey({ seed: 8, purpose: "bench/verify" }));
  return problems.slice(0, limit).map(({ question, solution, gold }, i) => {
    const wrong = i % 4 === 3 ? problems.find((_, j) => j > i && problems[j]?.gold !== gold)?.gold : undefined;
    const steps = solution
      .replace(/\\boxed\{/g, "{")
      .split(/\n+/)
      .map((line, k) => `${k + 1}. ${line}`);
    let text = `We are asked the following. ${question}\n\nLet us go step by step.\n\n${steps.join("\n")}`;
    while (text.length < shortest) text += `\n\nLet me check this once more. ${random.pick(steps).slice(3)}`;
    const answer = wrong ?? gold;
    const closing = random.pick([`Therefore, the final answer is $\\boxed{${answer}}$.`, `\\[\\boxed{${answer}}\\]`, `So the answer is \\boxed{${answer}}`]);
    return { gold, pred: `${text}\n\n${closing}`, expected: wrong === undefined };
  });
}

const sets: readonly (readonly [name: string, pairs: readonly Pair[]])[] = [
  [
    "GSM8K",
    pairsOf(
      rows("gsm8k-test.jsonl").map(({ question = "", answer = "" }) => ({
        question,
        solution: answer.split("####")[0] as string,
        gold: (answer.split("####")[1] as string).trim(),
      })),
    ),
  ],
  ["MATH-500", pairsOf(rows("math500.jsonl").map(({ problem = "", solution = "", answer = "" }) => ({ question: problem, solution, gold: answer })))],
];

const problemOf = (gold: string): Problem => ({ key: gold, prompt: [], reference: { state: "gold", answer: gold, version: 0 } });
const perSecond = (count: number, ms: number): number => (1000 * count) / ms;
const quantile = (values: readonly number[], part: number): number => [...values].sort((a, b) => a - b)[Math.floor(part * (values.length - 1))] as number;

interface Measured {
  /** Each verdict's, on the clock. */
  readonly ms: number[];
  readonly total: number;
  /** Of the processor, which other work on the machine does not stretch. */
  readonly processorMs: number;
  readonly wrong: number;
}

/** One thread, each reference read anew. */
async function ours(pairs: readonly Pair[]): Promise<Measured> {
  const verifier = math();
  const ms: number[] = [];
  let wrong = 0;
  const start = performance.now();
  const used = process.cpuUsage();
  for (const { gold, pred, expected } of pairs) {
    const before = performance.now();
    const verdict = await judge(verifier, problemOf(gold), pred);
    ms.push(performance.now() - before);
    if ((verdict.kind === "accept") !== expected) wrong++;
  }
  const { user, system } = process.cpuUsage(used);
  return { ms, total: performance.now() - start, processorMs: (user + system) / 1000, wrong };
}

interface Peer {
  readonly verdicts_per_s: number;
  readonly verdicts_per_processor_s: number;
  readonly ms_median: number;
  readonly ms_p99: number;
  readonly accuracy: number;
}

async function theirs(python: string, pairs: readonly Pair[], folder: string): Promise<Peer> {
  const file = join(folder, "pairs.jsonl");
  writeFileSync(file, pairs.map((pair) => `${JSON.stringify(pair)}\n`).join(""));
  const { stdout } = await promisify(execFile)(python, [join(repository, "bench", "peers", "math_verify_bench.py"), file], { maxBuffer: 2 ** 24 });
  return JSON.parse(stdout.trim().split("\n").at(-1) as string) as Peer;
}

/** All pairs of both sets through a pool of threads. */
async function onThreads(workers: number, repeats: number): Promise<number> {
  const { verifier, source } = await namedVerifier("math");
  const pool = await startPool({ verifier, ...(source && { source }), workers });
  const pairs = sets.flatMap(([, of]) => of);
  const pass = () => Promise.all(pairs.map(({ gold, pred }) => pool.judge(problemOf(gold), pred, false)));
  for (let i = 0; i < warm; i++) await pass();
  const start = performance.now();
  for (let i = 0; i < repeats; i++) await pass();
  const elapsed = performance.now() - start;
  await pool.close();
  return perSecond(repeats * pairs.length, elapsed);
}

/** Milliseconds of the verdict that waits behind a comparison which never ends. */
async function afterSpin(folder: string, deadlineMs: number): Promise<number> {
  const path = join(folder, "spin.mjs");
  writeFileSync(
    path,
    `export const make = () => ({ name: "spin", version: "1", options: {}, deterministic: true, checkReference: () => undefined,
      verify: ({ response }) => { if (response === "spin") for (;;); return { kind: "accept" }; } });`,
  );
  const source = { module: pathToFileURL(path).href, name: "make", options: {} };
  const pool = await startPool({ verifier: await loadVerifier(source), source, workers: 1, deadlineMs });
  const times: number[] = [];
  for (let i = 0; i < 3; i++) {
    const stuck = pool.judge(problemOf("1"), "spin", false);
    const next = pool.judge(problemOf("1"), "1", false);
    await stuck;
    const start = performance.now();
    await next;
    times.push(performance.now() - start);
  }
  await pool.close();
  return Math.max(...times);
}

const folder = mkdtempSync(join(tmpdir(), "touchstone-bench-"));
try {
  for (const [name, pairs] of sets) {
    const cold = await ours(pairs);
    say(`${name}, first pass: median ${quantile(cold.ms, 0.5).toFixed(4)} ms  ${perSecond(pairs.length, cold.total).toFixed(0)} verdicts/s`);
  }
  for (let pass = 1; pass < warm; pass++) for (const [, pairs] of sets) await ours(pairs);
  const python = await pythonOf(mathVerify);
  for (const [name, pairs] of sets) {
    const length = median(pairs.map(({ pred }) => pred.length));
    say(
      `${name}: ${pairs.length} pairs, responses of ${length} characters in the median, ${share(pairs.filter(({ expected }) => !expected).length / pairs.length)} wrong`,
    );
    const [ratios, ofProcessors]: [number[], number[]] = [[], []];
    for (let round = 0; round < rounds; round++) {
      const mine = await ours(pairs);
      const rate = perSecond(pairs.length, mine.total);
      const ofProcessor = perSecond(pairs.length, mine.processorMs);
      say(
        ` ours         median ${quantile(mine.ms, 0.5).toFixed(4)} ms`,
        `p99 ${quantile(mine.ms, 0.99).toFixed(3)} ms`,
        `max ${Math.max(...mine.ms).toFixed(1)} ms`,
        `${rate.toFixed(0)} verdicts/s`,
        `${ofProcessor.toFixed(0)} a processor second`,
        `${mine.wrong} wrong verdicts`,
      );
      if (python === undefined) continue;
      const peer = await theirs(python, pairs, folder);
      ratios.push(rate / peer.verdicts_per_s);
      ofProcessors.push(ofProcessor / peer.verdicts_per_processor_s);
      say(
        ` Math-Verify  median ${peer.ms_median} ms`,
        `p99 ${peer.ms_p99} ms`,
        `${peer.verdicts_per_s} verdicts/s`,
        `${peer.verdicts_per_processor_s} a processor second`,
        `${((1 - peer.accuracy) * pairs.length).toFixed(0)} wrong verdicts`,
        `ours/theirs ${(rate / peer.verdicts_per_s).toFixed(0)}`,
      );
    }
    const told = (values: readonly number[]): string => `${values.map((value) => value.toFixed(0)).join(", ")}, median ${median(values).toFixed(0)}`;
    if (ratios.length > 0) say(` ours/theirs  on the clock ${told(ratios)} (asked 20); of the processor ${told(ofProcessors)}`);
  }
  const rates = [await onThreads(1, 3), await onThreads(2, 3)];
  say(`threads: ${(rates[0] as number).toFixed(0)} verdicts/s on one, ${(rates[1] as number).toFixed(0)} on two (asked 10000)`);
  say(`the verdict behind a comparison that never ends: at most ${(await afterSpin(folder, 5000)).toFixed(1)} ms after it was stopped (asked 50)`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
