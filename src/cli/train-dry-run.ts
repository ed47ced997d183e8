/** `touchstone train --dry-run`: the resolved options, memory and time, and the first batch with its mask. */
import { stringify } from "yaml";
import type { Trajectory } from "../core/trajectory.js";
import { rowsOf } from "../methods/credit.js";
import { tableLines } from "../methods/resolve.js";
import { type DryRun, dryRun } from "../train/dry-run.js";
import type { TrainOptions } from "../train/train.js";
import { colours, print } from "./output.js";
import { duration, Progress } from "./progress.js";

/** Groups and answers of each that are shown. */
const shownGroups = 2;
const shownAnswers = 2;

export async function showDryRun(options: TrainOptions, json: boolean): Promise<void> {
  const progress = new Progress({ label: "dry run", silent: json });
  const dry = await dryRun({
    ...options,
    onProgress: (event) => {
      if (event.kind === "await") progress.waitFor(event.what);
      if (event.kind === "pose") progress.waitFor(`problems ${event.done}/${event.total}`);
    },
  }).finally(() => progress.end());
  if (json) print(JSON.stringify(asJson(dry)));
  else show(dry);
}

function asJson({ config, method, stages, parameters, problems, notes, memory, time, metrics, batch, mask }: DryRun): object {
  const rows = rowsOf(batch).map(({ key, text, verdict }, i) => ({ key, text, verdict: verdict.kind, mask: Array.from(mask[i]).join("") }));
  return { config, method, stages, parameters, problems, notes, memory: memory?.total ?? null, time, metrics, rows };
}

function show(dry: DryRun): void {
  const paint = colours(process.stdout);
  print(paint.bold("options"));
  print(stringify(dry.config).trimEnd());
  const methods = dry.stages.length > 0 ? dry.stages : [{ method: "", optimizer: "keep", table: dry.method }];
  for (const [i, { method, optimizer, table }] of methods.entries()) {
    print(`\n${paint.bold(method === "" ? "method" : `stage ${i + 1}: ${method}${i > 0 ? `, optimizer ${optimizer}` : ""}`)}`);
    for (const line of tableLines(table)) print(line);
  }
  print(`\n${paint.bold("what it takes")}`);
  print(`${dry.parameters.toLocaleString("en")} parameters, ${dry.problems} problems`);
  for (const note of dry.notes) print(note);
  if (dry.memory) {
    const parts = Object.entries(dry.memory.parts).sort(([, a], [, b]) => b - a);
    print(`memory: about ${gigabytes(dry.memory.total)} (${parts.map(([name, bytes]) => `${name} ${gigabytes(bytes)}`).join(", ")})`);
  }
  const { sampleMs, forwardMs, runMs } = dry.time;
  print(
    `time: about ${duration(runMs)} for ${dry.config.steps} steps (first batch: sampled and judged in ${duration(sampleMs)}, one forward pass ${duration(forwardMs)})`,
  );
  const { reward, truncated, gap_mean } = dry.metrics;
  print(
    `first batch: mean score ${reward?.toFixed(3) ?? "none"}, cut off ${(100 * (truncated ?? 0)).toFixed(1)} %, sampler against trainer ${gap_mean?.toExponential(1) ?? "-"} nats a token`,
  );
  print(`\n${paint.bold("first batch")} (a bar under each token that is trained)`);
  const index = new Map(rowsOf(dry.batch).map((row, i) => [row, i]));
  for (const { problem, trajectories } of dry.batch.groups.slice(0, shownGroups)) {
    for (const { role, content } of problem.prompt) print(`${paint.dim(`${role}:`)} ${content}`);
    for (const row of trajectories.slice(0, shownAnswers)) answer(row, dry.mask[index.get(row) ?? -1] ?? new Uint8Array(row.response.length), dry.decode);
    const more = trajectories.length - shownAnswers;
    if (more > 0) print(paint.dim(`  and ${more} more answers`));
  }
}

/** A response token by token, with a bar under what the loss falls on. */
function answer(row: Trajectory, mask: Uint8Array, decode: DryRun["decode"]): void {
  const pieces = Array.from(row.response, (id) => decode([id]).replaceAll("\n", "↵"));
  const width = 100;
  let text = "";
  let bars = "";
  const flush = (): void => {
    print(`  ${text}`);
    print(`  ${bars.trimEnd()}`);
    text = "";
    bars = "";
  };
  pieces.forEach((piece, t) => {
    if (text.length + piece.length > width && text !== "") flush();
    text += piece;
    bars += (mask[t] ? "▔" : " ").repeat(piece.length);
  });
  if (text !== "") flush();
  const reason = "reason" in row.verdict ? ` (${row.verdict.reason})` : "";
  const trained = mask.reduce((a, b) => a + b, 0);
  print(`  ${row.verdict.kind}${reason}, ${row.response.length} tokens, ${trained} trained, ended by ${row.stop}`);
}

function gigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(2)} GB`;
}
