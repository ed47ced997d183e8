/** One part of a reproduction: one arm and seed, whose numbers are kept in a file, so that an interrupted reproduction goes on with the next. */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { DivergenceError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import { type Arm, type Demonstration, isMeasured, type TrainingOptions } from "../methods/demonstration.js";
import { folderName, openBench } from "./bench.js";

/** Names of parts that are no arm. */
export const prepareArm = "prepare";
export const sabotageArm = "sabotage";

export interface PartSpec {
  /** The demonstration's file. */
  readonly file: string;
  readonly arm: string;
  readonly seed: number;
  readonly quick: boolean;
  /** The folder of the whole reproduction. */
  readonly out: string;
  /** What ran, for the record. */
  readonly commit: string;
}

export interface Part {
  readonly arm: string;
  readonly seed: number;
  /** Null: this run has no such number. */
  readonly numbers: { readonly [metric: string]: number | null };
  /** Of `prepare`: what it gave. */
  readonly options?: { readonly [option: string]: Json };
  /** Why it yielded nothing: it diverged. */
  readonly failed?: string;
  /** Held-out scores while it trained, where it is one run. */
  readonly curve?: readonly { readonly step: number; readonly value: number }[];
  readonly commit: string;
  readonly seconds: number;
}

export function partFile({ out, arm, seed }: Pick<PartSpec, "out" | "arm" | "seed">): string {
  return join(out, "parts", folderName(arm), `seed-${seed}.json`);
}

/** The part as an earlier run left it; undefined: it is still to be done. */
export function keptPart(spec: Pick<PartSpec, "out" | "arm" | "seed">): Part | undefined {
  const file = partFile(spec);
  return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Part) : undefined;
}

/** Runs an arm with a seed and keeps its numbers. A run that diverges is a part without numbers; what else is thrown goes on. */
export async function runPart(demonstration: Demonstration, spec: PartSpec): Promise<Part> {
  const { arm: name, seed, quick, out, commit } = spec;
  const folder = join(out, "runs", folderName(name), `seed-${seed}`);
  mkdirSync(folder, { recursive: true });
  const started = performance.now();
  const prepared = name === prepareArm ? undefined : preparedOptions(demonstration, spec);
  const { bench, close } = openBench({ demonstration, arm: name, seed, quick, ...(prepared && { prepared }), out, folder });
  const done = (rest: Pick<Part, "numbers" | "options" | "failed" | "curve">): Part => {
    const part: Part = { arm: name, seed, ...rest, commit, seconds: Number(((performance.now() - started) / 1000).toFixed(1)) };
    writeWhole(partFile(spec), part);
    return part;
  };
  try {
    if (name === prepareArm) return done({ numbers: {}, options: (await demonstration.prepare?.run(bench)) as { readonly [option: string]: Json } });
    const arm = armOf(demonstration, name);
    if (isMeasured(arm)) return done({ numbers: plain(await arm.run(bench)) });
    const trained = await bench.train(arm);
    const numbers = plain(await bench.numbers(trained));
    return done({ numbers, ...(trained.evaluations.length > 1 && { curve: trained.evaluations }) });
  } catch (error) {
    if (!(error instanceof DivergenceError)) throw error;
    return done({ numbers: {}, failed: error.message });
  } finally {
    await close();
  }
}

/** An arm by name, the sabotaged one too. */
export function armOf({ arms, sabotage }: Pick<Demonstration, "arms" | "sabotage">, name: string): Arm {
  return (name === sabotageArm && sabotage ? sabotage.arm : arms[name]) as Arm;
}

function preparedOptions({ prepare }: Demonstration, { out, seed }: PartSpec): TrainingOptions | undefined {
  if (prepare === undefined) return undefined;
  return keptPart({ out, arm: prepareArm, seed: prepare.per === "seed" ? seed : 0 })?.options;
}

function plain(numbers: { readonly [metric: string]: number | undefined }): Part["numbers"] {
  return Object.fromEntries(Object.entries(numbers).map(([name, value]) => [name, value !== undefined && Number.isFinite(value) ? value : null]));
}

/** Beside and renamed: an interrupted write leaves no half file. */
export function writeWhole(path: string, value: unknown): void {
  mkdirSync(dirname(path), { recursive: true });
  const beside = `${path}.${process.pid}`;
  writeFileSync(beside, `${JSON.stringify(value, null, 2)}\n`);
  renameSync(beside, path);
}
