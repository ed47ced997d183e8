/** The doctor's findings as a page to read. */
import type { Colours } from "../output.js";
import { table } from "../output.js";
import { type CheckedNumber, checkTolerance } from "./check.js";
import { type Fit, fitWork, stepSeconds } from "./fit.js";
import type { Machine } from "./machine.js";
import type { Rates } from "./probe.js";

/** What `touchstone doctor --json` prints. Bytes, GFLOP/s, GB/s and milliseconds. */
export interface Findings {
  /** Whether the self-check ran and all of its numbers agree. */
  readonly ok: boolean;
  readonly machine: Machine;
  /** Execution providers inside of ONNX Runtime's package; null when it does not run. */
  readonly providers: readonly string[] | null;
  /** Null when not measured. */
  readonly rates: Rates | null;
  readonly fits: readonly Fit[];
  /** Whether the engine can train adapters. */
  readonly adapters: boolean;
  readonly check: { readonly agree: number; readonly of: number; readonly numbers: readonly CheckedNumber[] } | null;
  /** What went wrong, in a sentence each. */
  readonly problems: readonly string[];
}

export function report(findings: Findings, paint: Colours): string {
  const { machine, providers, rates, check, problems } = findings;
  const { versions, memory } = machine;
  const limits = [machine.quota === null ? "" : `; a control group grants ${machine.quota}`, memory.limited ? ", by its control group" : ""] as const;
  const facts = table([
    ["versions", `touchstone ${versions.touchstone}, Node ${versions.node}, ONNX Runtime ${versions.onnxruntime}`],
    ["system", machine.system],
    ["processor", `${machine.processor}${machine.vectors.length > 0 ? ` (${machine.vectors.join(" ")})` : ""}`],
    ["cores", `${machine.cores}${limits[0]}`],
    ["memory", `${gigabytes(memory.total)}${limits[1]}; ${gigabytes(memory.available)} available`],
    ["providers", providers === null ? "ONNX Runtime does not run here" : `cpu is used; in the package: ${providers.join(", ")}`],
    ...(rates === null ? [] : rateRows(rates)),
  ]);
  const lines = [
    ...facts,
    "",
    ...fitLines(findings, paint),
    "",
    ...problems.map((problem) => `${paint.red("problem")}  ${problem}`),
    ...(check === null ? [] : checkLines(check, paint)),
  ];
  return lines.join("\n");
}

function rateRows({ gemmOneThread, gemmAllThreads, threads, copy, emptyRunMs }: Rates): string[][] {
  const more = threads === 1 ? "" : `, ${gemmAllThreads.toFixed(0)} with ${threads}`;
  return [
    ["products", `${gemmOneThread.toFixed(0)} GFLOP/s with 1 thread${more} (float32, 1024 x 1536 x 576)`],
    ["copying", `${copy.toFixed(1)} GB/s with 1 thread`],
    ["empty run", `${(emptyRunMs * 1000).toFixed(0)} µs`],
  ];
}

function fitLines({ fits, machine, rates, adapters }: Findings, paint: Colours): string[] {
  const { available } = machine.memory;
  const room = (bytes: number): string => `${bytes <= available ? "yes" : "no"}, ${gigabytes(bytes)}`;
  const rows = fits.map(({ model, parameters, full, lora, sample }) => [
    model,
    count(parameters),
    room(full),
    room(lora),
    room(sample),
    ...(rates === null ? [] : [full <= available ? time(stepSeconds(parameters, rates.gemmAllThreads)) : "-"]),
  ]);
  const head = ["model like", "weights", "full training", adapters ? "LoRA" : "LoRA (not built yet)", "sampling", ...(rates === null ? [] : ["a step"])];
  const [first, ...others] = table([head, ...rows], [1, 2, 3, 4, 5]) as [string, ...string[]];
  return [
    paint.bold(first),
    ...others.map((line) => line.replace(/\bno, [\d.]+ GB/g, (cell) => paint.red(cell))),
    paint.dim(
      `In float32, of ${gigabytes(available)}: training on ${fitWork.train.slots} tokens at a time in rows of ${fitWork.train.length}, sampling ${fitWork.sample.sequences} answers at a time up to ${fitWork.sample.length} tokens.`,
    ),
  ];
}

function checkLines(check: NonNullable<Findings["check"]>, paint: Colours): string[] {
  const off = check.numbers.filter(({ agrees }) => !agrees);
  const sentence = `self-check: ${check.agree} of ${check.of} stored numbers agree (within ${checkTolerance})`;
  return [
    off.length === 0 ? paint.green(sentence) : paint.red(sentence),
    ...off.map(({ name, stored, found }) => `  ${name}: ${found}, stored ${stored}`),
    ...(off.length === 0 ? [] : ["Results of this machine are not to be trusted: install onnxruntime-node again, and report the lines above if they stay."]),
  ];
}

const gigabytes = (bytes: number): string => `${(bytes / 1e9).toFixed(1)} GB`;

function count(n: number): string {
  if (n >= 1e9) return `${(n / 1e9).toFixed(1)}B`;
  return n >= 1e6 ? `${(n / 1e6).toFixed(n >= 1e7 ? 0 : 1)}M` : `${(n / 1e3).toFixed(0)}k`;
}

const time = (seconds: number): string =>
  seconds >= 10 ? `${seconds.toFixed(0)} s` : seconds >= 0.1 ? `${seconds.toFixed(1)} s` : `${(seconds * 1000).toFixed(0)} ms`;
