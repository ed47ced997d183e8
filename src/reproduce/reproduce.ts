/**
 * Runs a demonstration: arms x paired seeds in parts that survive an interruption, then the verdict on its claims. The folder
 * is the state: a part that is there is kept, a run within a part goes on from its last checkpoint.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { ConfigError } from "../core/errors.js";
import { hashJson, type Json, sha256 } from "../core/json.js";
import { type PairedInterval, pairedInterval } from "../evaluate/paired.js";
import { type Demonstration, defaultSeeds } from "../methods/demonstration.js";
import { commitOf, currentCommit, machine } from "./commit.js";
import type { FoundDemonstration } from "./find.js";
import { type JudgedClaim, judged, type Outcome, type Results } from "./judge.js";
import { armOf, keptPart, type Part, type PartSpec, prepareArm, sabotageArm, writeWhole } from "./part.js";
import { runParts } from "./processes.js";

export interface ReproduceOptions {
  /** Paired seeds, 0 to one below; absent: the demonstration's. */
  readonly seeds?: number;
  readonly quick?: boolean;
  readonly out: string;
  /** Parts at one time, each in a process of its own; 0: one after another in this process. */
  readonly atOnce: number;
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: ReproduceProgress) => void;
}

export interface ReproduceProgress {
  readonly done: number;
  readonly total: number;
  /** The part that has just ended; absent: those that were kept. */
  readonly part?: Part;
}

export interface ArmNumbers {
  readonly arm: string;
  readonly about?: string;
  /** By metric: over the seeds. */
  readonly metrics: {
    readonly [metric: string]: { readonly mean: number | null; readonly interval: PairedInterval | null; readonly seeds: readonly (number | null)[] };
  };
  /** Mean held-out score over the seeds while it trained. */
  readonly curve?: readonly { readonly step: number; readonly mean: number; readonly low: number; readonly high: number }[];
}

export interface Reproduction {
  /** `P06`, or the method's name. */
  readonly id: string;
  readonly paper: string;
  readonly method: string;
  readonly testbed: string;
  readonly seeds: readonly number[];
  /** Null of a quick run, which is too small to be judged. */
  readonly outcome: Outcome | null;
  readonly claims: readonly (Omit<JudgedClaim, "outcome"> & { readonly outcome: Outcome | null })[];
  readonly arms: readonly ArmNumbers[];
  /** Arms and seeds that yielded nothing, and why; with any, nothing is shown. */
  readonly failed: readonly { readonly arm: string; readonly seed: number; readonly why: string }[];
  readonly differences: readonly string[];
  readonly commit: string;
  /** The commit that last changed the demonstration, its claims and options. */
  readonly optionsCommit: string | null;
  /** Parts that another commit computed, before an interruption. */
  readonly partsOfOtherCommits: { readonly [part: string]: string };
  readonly date: string;
  /** All parts added up. */
  readonly minutes: number;
  readonly machine: { readonly [key: string]: string | number };
}

/** Runs all that is not there yet and judges. Undefined: interrupted; the same call goes on. Throws what an arm throws, with its place. */
export async function reproduce(found: FoundDemonstration, options: ReproduceOptions): Promise<Reproduction | undefined> {
  const { demonstration } = found;
  const quick = options.quick === true;
  const seeds = Array.from({ length: options.seeds ?? (quick ? (demonstration.quick.seeds ?? 2) : (demonstration.seeds ?? defaultSeeds)) }, (_, seed) => seed);
  const arms = Object.keys(demonstration.arms);
  const parts = await partsOf(found, seeds, arms, options);
  return parts && reproductionOf(found, demonstration, seeds, arms, parts, quick);
}

/** Whether the claims that must not be shown for the sabotaged method are: on two sets of seeds that have none in common. */
export interface Sabotage {
  readonly about: string;
  readonly sets: readonly Reproduction[];
  /** Shown on both sets: the demonstration cannot tell the method from its sabotage. */
  readonly caught: boolean;
}

/** Runs the sabotaged method in its arm's place, twice. Undefined: interrupted. Throws ConfigError where the demonstration has no sabotage. */
export async function sabotaged(found: FoundDemonstration, options: Omit<ReproduceOptions, "quick">): Promise<Sabotage | undefined> {
  const { demonstration } = found;
  const { sabotage, claims } = demonstration;
  if (sabotage === undefined)
    throw new ConfigError({ place: `demonstration of ${demonstration.paper}`, cause: "it has no sabotage", mend: "leave --sabotage out, or write one" });
  const judgedNames = sabotage.unshown ?? Object.keys(claims);
  const tried = Object.fromEntries(judgedNames.map((name) => [name, claims[name] as Demonstration["claims"][string]]));
  // A claim that computes its own number may use any arm.
  const named = Object.values(tried).flatMap((claim) => ("of" in claim ? Object.keys(demonstration.arms) : [claim.arm, claim.than]));
  const arms = Object.keys(demonstration.arms).filter((arm) => named.includes(arm) || arm === sabotage.stands);
  const n = options.seeds ?? demonstration.seeds ?? defaultSeeds;
  const sets: Reproduction[] = [];
  for (const first of [0, n]) {
    const seeds = Array.from({ length: n }, (_, i) => first + i);
    const parts = await partsOf(
      found,
      seeds,
      arms.map((arm) => (arm === sabotage.stands ? sabotageArm : arm)),
      options,
    );
    if (parts === undefined) return undefined;
    const renamed = parts.map((part) => (part.arm === sabotageArm ? { ...part, arm: sabotage.stands } : part));
    sets.push(reproductionOf(found, { ...demonstration, claims: tried }, seeds, arms, renamed, false));
  }
  return { about: sabotage.about, sets, caught: !sets.every(({ outcome }) => outcome === "shown") };
}

async function partsOf(
  { demonstration, file }: FoundDemonstration,
  seeds: readonly number[],
  arms: readonly string[],
  { quick = false, out, atOnce, signal, onProgress }: ReproduceOptions,
): Promise<Part[] | undefined> {
  claimFolder(out, demonstration, file, quick);
  const commit = currentCommit();
  const spec = (arm: string, seed: number): PartSpec => ({ file, arm, seed, quick, out, commit });
  // Seed by seed, so that pairs are complete early.
  const all = seeds.flatMap((seed) => arms.map((arm) => spec(arm, seed)));
  const { prepare } = demonstration;
  const first = prepare === undefined ? [] : prepare.per === "seed" ? seeds.map((seed) => spec(prepareArm, seed)) : [spec(prepareArm, 0)];
  const todo = (specs: readonly PartSpec[]): PartSpec[] => specs.filter((each) => keptPart(each) === undefined);
  const total = first.length + all.length;
  let done = total - todo([...first, ...all]).length;
  onProgress?.({ done, total });
  const onPart = (part: Part): void => onProgress?.({ done: ++done, total, part });
  for (const specs of [first, all]) {
    if (!(await runParts(todo(specs), { atOnce, ...(signal && { signal }), onPart }))) return undefined;
  }
  return [...first, ...all].map((each) => keptPart(each) as Part);
}

/** Refuses a folder whose parts are of another version of the demonstration, or of other numbers. */
function claimFolder(out: string, demonstration: Demonstration, file: string, quick: boolean): void {
  const claimed = join(out, "demonstration.json");
  const identity = { paper: demonstration.paper, quick, hash: hashJson(filesOf(file)) };
  if (!existsSync(claimed)) {
    writeWhole(claimed, identity);
    return;
  }
  const there = JSON.parse(readFileSync(claimed, "utf8")) as Partial<typeof identity>;
  if (there.hash === identity.hash && there.quick === quick) return;
  const what =
    there.paper !== identity.paper
      ? `of ${there.paper}`
      : there.quick === quick
        ? "of another version of the demonstration"
        : `${there.quick ? "quick" : "full"} ones`;
  throw new ConfigError({ place: `folder ${out}`, cause: `its parts are ${what}`, mend: "give another folder with --out, or remove that one" });
}

/** Hashes of a demonstration's file and of the method beside it. Claims and words count, too: nobody shall fit them to parts that are there. */
function filesOf(file: string): Json {
  const folder = dirname(file);
  const names = readdirSync(folder).filter((name) => /\.[cm]?[jt]s$/.test(name) && !/\.test\.|\.d\./.test(name));
  return Object.fromEntries(names.sort().map((name) => [name, sha256(readFileSync(join(folder, name)))]));
}

function reproductionOf(
  found: FoundDemonstration,
  demonstration: Demonstration,
  seeds: readonly number[],
  arms: readonly string[],
  parts: readonly Part[],
  quick: boolean,
): Reproduction {
  const partOf = (arm: string, seed: number): Part | undefined => parts.find((part) => part.arm === arm && part.seed === seed);
  const numbersOf = (arm: string, seed: number): { readonly [metric: string]: number } =>
    Object.fromEntries(Object.entries(partOf(arm, seed)?.numbers ?? {}).flatMap(([metric, value]) => (value === null ? [] : [[metric, value]])));
  const results: Results = seeds.map((seed) => ({ seed, arms: Object.fromEntries(arms.map((arm) => [arm, numbersOf(arm, seed)])) }));
  const { claims, outcome } = judged(demonstration.claims, results);
  const failed = parts.flatMap(({ arm, seed, failed: why }) => (why === undefined ? [] : [{ arm, seed, why }]));
  const commit = currentCommit();
  const others = parts.filter((part) => part.commit !== commit).map((part) => [`${part.arm}, seed ${part.seed}`, part.commit]);
  return {
    id: found.id,
    paper: demonstration.paper,
    method: demonstration.method,
    testbed: demonstration.testbed,
    seeds,
    outcome: quick ? null : outcome === "shown" && failed.length > 0 ? "not shown" : outcome,
    claims: claims.map((claim) => ({ ...claim, outcome: quick ? null : claim.outcome })),
    arms: arms.map((arm) => {
      const { about } = armOf(demonstration, arm);
      const curve = curveOf(seeds.map((seed) => partOf(arm, seed)?.curve));
      return {
        arm,
        ...(about === undefined ? {} : { about }),
        metrics: Object.fromEntries(
          Object.keys(demonstration.metrics).map((metric) => [metric, overSeeds(seeds.map((seed) => partOf(arm, seed)?.numbers[metric] ?? null))]),
        ),
        ...(curve.length > 1 && { curve }),
      };
    }),
    failed,
    differences: demonstration.differences ?? [],
    commit,
    optionsCommit: commitOf(found.file),
    partsOfOtherCommits: Object.fromEntries(others),
    date: new Date().toISOString().slice(0, 10),
    minutes: Number((parts.reduce((sum, { seconds }) => sum + seconds, 0) / 60).toFixed(1)),
    machine: machine(),
  };
}

function overSeeds(seeds: readonly (number | null)[]): ArmNumbers["metrics"][string] {
  const known = seeds.filter((value) => value !== null);
  return { mean: known.length === 0 ? null : known.reduce((a, b) => a + b, 0) / known.length, interval: pairedInterval(known) ?? null, seeds };
}

/** Mean, lowest and highest at the steps at which every seed was measured. */
function curveOf(curves: readonly Part["curve"][]): NonNullable<ArmNumbers["curve"]> {
  const known = curves.filter((curve) => curve !== undefined);
  if (known.length === 0 || known.length < curves.length) return [];
  return (known[0] ?? []).flatMap(({ step }) => {
    const values = known.flatMap((curve) => curve.find((point) => point.step === step)?.value ?? []);
    if (values.length < known.length) return [];
    return [{ step, mean: values.reduce((a, b) => a + b, 0) / values.length, low: Math.min(...values), high: Math.max(...values) }];
  });
}
