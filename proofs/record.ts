/**
 * Proofs: results that take too long for the tests. `proofs/NAME.ts` exports a `Proof` as its default; `npm run proofs NAME` runs it and writes
 * docs/proofs/NAME.json; a test holds every file there to the limits that the proof declares.
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { cacheFolder } from "../src/core/cache.js";
import { type Json, sha256 } from "../src/core/json.js";
import { machine } from "../src/reproduce/commit.js";

export type Metric = number | string | boolean;

/** What a metric must be; several may be given. */
export interface Limit {
  readonly atLeast?: number;
  readonly atMost?: number;
  readonly equals?: Metric;
}

export interface Proof {
  /** What is shown, in one sentence. */
  readonly claim: string;
  /** By metric: at least one, and each must be reported by `run`. Stated before the run, never fitted to it. */
  readonly limits: { readonly [metric: string]: Limit };
  /** Computes the metrics. Metrics without a limit are recorded too. */
  run(work: Work): Promise<{ readonly [metric: string]: Metric }>;
  /** Shortened cases by name, of at most two minutes each; every run of the slow tests repeats one of them, the next one at the next commit. */
  readonly short: { readonly [name: string]: ShortCase };
}

export interface ShortCase {
  readonly limits: Proof["limits"];
  run(): Promise<{ readonly [metric: string]: Metric }>;
}

/** What a proof has at hand. */
export interface Work {
  /** The value under this key: from an interrupted run of the same proof, or computed now and kept. The key names all that the value depends on. */
  part<T extends Json>(key: string, compute: () => Promise<T>): Promise<T>;
  /** Keeps anything else that a reader of the record may want: curves, samples, settings. */
  detail(key: string, value: Json): void;
}

export interface Recorded {
  readonly proof: string;
  readonly claim: string;
  readonly metrics: { readonly [metric: string]: Metric };
  /** The commit that ran, with `+changes` where files differed from it. */
  readonly commit: string;
  /** By part: the commit that computed it, where that was another one. */
  readonly partsOfOtherCommits: { readonly [part: string]: string };
  readonly date: string;
  /** All parts added up, those of interrupted runs too. */
  readonly minutes: number;
  readonly machine: { readonly [key: string]: string | number };
  readonly details: { readonly [key: string]: Json };
}

export interface RecordOptions {
  /** The folder for records. Default docs/proofs. */
  readonly records?: string;
  /** The folder for what interrupted runs left. Default `proofs` in the cache folder, so outside of the repository. */
  readonly work?: string;
  /** Forget what an interrupted run left. */
  readonly fresh?: boolean;
  readonly log?: (line: string) => void;
}

interface Part {
  readonly commit: string;
  readonly seconds: number;
  readonly value: Json;
}

const here = dirname(fileURLToPath(import.meta.url));
export const recordsFolder = join(here, "..", "docs", "proofs");
const notProofs = ["record.ts", "main.ts"];

/** The names of the proofs in a folder. */
export function proofNames(folder: string = here): string[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts") && !notProofs.includes(file))
    .map((file) => file.slice(0, -3))
    .sort();
}

export async function loadProof(name: string): Promise<Proof> {
  return ((await import(new URL(`./${name}.ts`, import.meta.url).href)) as { default: Proof }).default;
}

/** Runs a proof and writes its record, within its limits or not; returns what is wrong with it. An error in a part leaves the finished parts for the next try. */
export async function record(name: string, proof: Proof, options: RecordOptions = {}): Promise<{ readonly path: string; readonly faults: string[] }> {
  const log = options.log ?? console.log;
  const folder = join(options.work ?? join(cacheFolder(), "proofs"), name);
  if (options.fresh) rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const commit = currentCommit();
  const details: { [key: string]: Json } = {};
  const others: { [part: string]: string } = {};
  const started = Date.now();
  let earlierSeconds = 0;

  const metrics = await proof.run({
    async part(key, compute) {
      const path = join(folder, `${sha256(key).slice(0, 16)}.json`);
      if (existsSync(path)) {
        const kept = JSON.parse(readFileSync(path, "utf8")) as Part;
        earlierSeconds += kept.seconds;
        if (kept.commit !== commit) others[key] = kept.commit;
        log(`${key}: kept from an interrupted run (${kept.seconds.toFixed(1)} s)`);
        return kept.value as Awaited<ReturnType<typeof compute>>;
      }
      const begun = Date.now();
      const value = await compute();
      const seconds = (Date.now() - begun) / 1000;
      writeWhole(path, { commit, seconds, value } satisfies Part);
      log(`${key}: ${seconds.toFixed(1)} s`);
      return value;
    },
    detail(key, value) {
      details[key] = value;
    },
  });

  const minutes = ((Date.now() - started) / 1000 + earlierSeconds) / 60;
  const recorded: Recorded = {
    proof: name,
    claim: proof.claim,
    metrics,
    commit,
    partsOfOtherCommits: others,
    date: new Date().toISOString().slice(0, 10),
    minutes: Number(minutes.toFixed(2)),
    machine: machine(),
    details,
  };
  const records = options.records ?? recordsFolder;
  mkdirSync(records, { recursive: true });
  const path = join(records, `${name}.json`);
  writeWhole(path, recorded);
  rmSync(folder, { recursive: true, force: true });
  return { path, faults: faultsOf(name, proof, recorded) };
}

/** What is wrong with the record of a proof (as parsed from its file), a sentence each; none when it shows what the proof claims. */
export function faultsOf(name: string, proof: Pick<Proof, "claim" | "limits">, recorded: unknown): string[] {
  if (Object.keys(proof.limits).length === 0) return [`${name} declares no limit, so it shows nothing`];
  if (typeof recorded !== "object" || recorded === null) return [`${name} has no record: run npm run proofs ${name}`];
  const { proof: of, claim, metrics, commit, machine: on, minutes } = recorded as Partial<Recorded>;
  const faults: string[] = [];
  if (of !== name) faults.push(`${name} has the record of ${of}`);
  if (claim !== proof.claim) faults.push(`${name} now claims something else than what was recorded: run npm run proofs ${name}`);
  if (!/^[0-9a-f]{40}(\+changes)?$/.test(commit ?? "")) faults.push(`${name} was recorded without its commit`);
  if (typeof on?.processor !== "string") faults.push(`${name} was recorded without its machine`);
  if (!(typeof minutes === "number" && minutes >= 0)) faults.push(`${name} was recorded without its time`);
  return [...faults, ...beyondLimits(name, proof.limits, metrics)];
}

/** Which metrics are missing or beyond their limits, a sentence each. */
export function beyondLimits(name: string, limits: Proof["limits"], metrics: { readonly [metric: string]: Metric } | undefined): string[] {
  const faults: string[] = [];
  for (const [metric, limit] of Object.entries(limits)) {
    const value = metrics?.[metric];
    if (limit.atLeast === undefined && limit.atMost === undefined && limit.equals === undefined) faults.push(`${name} gives ${metric} an empty limit`);
    if (value === undefined || value === null) faults.push(`${name} did not record ${metric}`);
    else if (limit.equals !== undefined && value !== limit.equals) faults.push(`${name}: ${metric} is ${value} instead of ${limit.equals}`);
    else if (limit.atLeast !== undefined && !(typeof value === "number" && value >= limit.atLeast))
      faults.push(`${name}: ${metric} is ${value}, less than ${limit.atLeast}`);
    else if (limit.atMost !== undefined && !(typeof value === "number" && value <= limit.atMost))
      faults.push(`${name}: ${metric} is ${value}, more than ${limit.atMost}`);
  }
  return faults;
}

/**
 * Which shortened case is due: the number of commits, so that they come round in order; in a shallow clone, which cannot
 * count, the minute of the commit. The variable `TOUCHSTONE_TURN` has precedence.
 */
export function turn(): number {
  const given = process.env.TOUCHSTONE_TURN;
  if (given !== undefined) return Number(given);
  try {
    if (git("rev-parse", "--is-shallow-repository") === "false") return Number(git("rev-list", "--count", "HEAD"));
    return Math.floor(Number(git("log", "-1", "--format=%ct")) / 60);
  } catch {
    return 0; // Not a clone.
  }
}

/** The name of the shortened case of a proof that is due. */
export function caseDue({ short }: Pick<Proof, "short">, at: number = turn()): string | undefined {
  const names = Object.keys(short);
  return names[at % names.length];
}

const git = (...args: string[]): string => execFileSync("git", args, { cwd: here, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();

function currentCommit(): string {
  const changed = git("status", "--porcelain", "--", "../src", "../proofs", "../package-lock.json");
  return git("rev-parse", "HEAD") + (changed ? "+changes" : "");
}

/** Beside and renamed: an interrupted write leaves no half file. */
function writeWhole(path: string, value: unknown): void {
  const beside = `${path}.${process.pid}`;
  writeFileSync(beside, `${JSON.stringify(value, null, 2)}\n`);
  renameSync(beside, path);
}
