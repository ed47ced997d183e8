/** `touchstone show`: a run in the terminal, live or finished, from its folder alone: whether it learns, curves, evaluations, the last step, the worst groups, how it ended. */

import { existsSync } from "node:fs";
import type { Command } from "commander";
import { ConfigError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import { suggestion } from "../core/options.js";
import { namedModel } from "../train/model-name.js";
import { goOn, RunReader } from "../train/store/reader.js";
import { problemsOf, settingsOf } from "../view/settings.js";
import { curve, sparkline } from "./curve.js";
import { colours, print, table } from "./output.js";
import { duration } from "./progress.js";
import { insightLines, insightOf, worstGroups, worstLines } from "./show-groups.js";
import { percent } from "./watch.js";

const defaultMetric = "reward";

export function define(command: Command): void {
  command
    .usage("RUN [options]")
    .argument("<run>", "folder of a run, or RUN@CHECKPOINT for the run up to there: a step, first, last or best")
    .option("--metric <name>", "the number of each step whose curve is drawn (docs/metrics.md)", defaultMetric)
    .option("--json", "print one JSON object")
    .addHelpText(
      "after",
      `
Examples:
  $ touchstone show runs/first
  $ touchstone show runs/first --metric entropy
  $ touchstone show runs/first@best`,
    )
    .action(show);
}

interface Seen {
  readonly steps: { readonly step: number; readonly metrics: { readonly [name: string]: number }; readonly verdicts: Json; readonly ms: number }[];
  readonly evaluations: { readonly step: number; readonly estimates: readonly Estimated[] }[];
  readonly warnings: { readonly step: number; readonly message: string }[];
  end: string | undefined;
}

interface Estimated {
  readonly name: string;
  readonly k: number;
  readonly value: number | null;
  readonly interval: { readonly low: number; readonly high: number } | null;
  readonly problems: number;
}

/** Warnings that are shown. */
const mostWarnings = 5;

/** What the events of a run tell, up to a step. A resumed run has one event a step, so nothing is counted twice. */
function read(reader: RunReader, to: number): Seen {
  const seen: Seen = { steps: [], evaluations: [], warnings: [], end: undefined };
  for (const { kind, step, data, clock } of reader.events()) {
    if (step > to) break;
    const of = data as { readonly [name: string]: Json };
    if (kind === "step") {
      const metrics = of.metrics as { readonly [name: string]: number };
      seen.steps.push({ step, metrics, verdicts: of.verdicts ?? {}, ms: Number((clock as { readonly ms?: number }).ms ?? 0) });
    }
    if (kind === "evaluation" && Array.isArray(of.estimates)) seen.evaluations.push({ step, estimates: of.estimates as unknown as Estimated[] });
    if (kind === "warning") seen.warnings.push({ step, message: String(of.message) });
    if (kind === "end") seen.end = of.reason === "interrupted" ? `${String(of.message)}; ${goOn(reader.folder)}` : String(of.message);
  }
  return seen;
}

/** The run that a text names, and the checkpoint where one is named too. */
function named(text: string): { reader: RunReader; checkpoint?: number } {
  const run = existsSync(text) || !text.includes("@") ? undefined : namedModel(text, "run").run;
  return run ? { reader: run.reader, checkpoint: run.step } : { reader: RunReader.open(text) };
}

async function show(text: string, { metric, json }: { readonly metric: string; readonly json?: true }): Promise<void> {
  const { reader, checkpoint } = named(text);
  const { folder } = reader;
  const to = checkpoint ?? Number.POSITIVE_INFINITY;
  const seen = read(reader, to);
  const config = reader.run.config as { readonly [name: string]: Json };
  const checkpoints = reader.checkpoints.steps();
  const column = seen.steps.map(({ metrics }) => metrics[metric]);
  const values = column.filter((value) => value !== undefined);
  if (values.length === 0 && seen.steps.length > 0 && metric !== defaultMetric) {
    const names = [...new Set(seen.steps.flatMap(({ metrics }) => Object.keys(metrics)))];
    throw new ConfigError({ place: "option --metric", cause: `no step has a number ${JSON.stringify(metric)}`, mend: suggestion(metric, names) });
  }
  const worst = await worstGroups(reader, to);
  // Of the whole run: what it says of a part would be of another one.
  const insight = checkpoint === undefined ? await insightOf(folder) : undefined;
  if (json) {
    const steps = seen.steps.map(({ step, metrics }) => ({ step, ...metrics }));
    print(
      JSON.stringify({
        folder,
        config,
        steps,
        evaluations: seen.evaluations,
        warnings: seen.warnings,
        checkpoints,
        end: seen.end ?? null,
        insight,
        worst: worst.groups,
      }),
    );
    return;
  }
  const paint = colours(process.stdout);
  for (const line of table(settings(config))) print(line);
  if (insight) for (const line of ["", ...insightLines(insight, paint.bold)]) print(line);
  if (checkpoint !== undefined) print(`up to the checkpoint of step ${checkpoint}`);
  if (values.length > 1) {
    print(paint.bold(`\n${metric} of each step`));
    const low = metric === "reward" ? Math.min(0, ...values) : Math.min(...values);
    for (const line of curve(column, { low, high: Math.max(metric === "reward" ? 1 : Number.NEGATIVE_INFINITY, ...values) })) print(line);
  }
  for (const line of sparklines(seen, metric)) print(line);
  if (seen.evaluations.length > 0) {
    print(paint.bold("\nheld-out"));
    for (const line of table([["step", "metric", "value", "95 % interval", "problems"], ...seen.evaluations.flatMap(rows)], [0, 2, 4])) print(line);
  } else print("\nno evaluation is in the run: --eval-every makes them, and touchstone eval measures a checkpoint");
  if (seen.warnings.length > 0) print("");
  for (const { step, message } of seen.warnings.slice(0, mostWarnings)) print(`${paint.yellow("warning")} of step ${step}: ${message}`);
  if (seen.warnings.length > mostWarnings) print(`and ${seen.warnings.length - mostWarnings} more warnings in events.jsonl`);
  for (const line of lastStep(seen, metric)) print(line);
  for (const line of worstLines(worst, paint.bold)) print(line);
  print(`\ncheckpoints: ${checkpoints.join(", ") || "none yet"}; ${seen.end ?? "it has not ended, or was stopped: touchstone train --resume goes on with it"}`);
}

function settings(config: { readonly [name: string]: Json }): string[][] {
  const told = Object.fromEntries(settingsOf(config));
  const steps = `${String(config.steps)} ${config.steps === 1 ? "step" : "steps"}`;
  return [
    ["policy", String(config.model)],
    ["problems", problemsOf(config, true) ?? "–"],
    ...(["verifier", "adapter"] as const).flatMap((name) => (told[name] === undefined ? [] : [[name, told[name]]])),
    ["method", `${told.method}, ${steps} of ${told.batch?.replace("×", "x")}, learning rate ${told["learning rate"]}`],
  ];
}

const rows = ({ step, estimates }: Seen["evaluations"][number]): string[][] =>
  estimates.map(({ name, k, value, interval, problems }) => [
    String(step),
    `${name}@${k}`,
    value === null ? "–" : percent(value),
    interval ? `${percent(interval.low)} to ${percent(interval.high)}` : "–",
    String(problems),
  ]);

/** The numbers that one asks for first. */
const told = ["reward", "groups_silent", "entropy", "tokens_mean", "truncated", "unscored", "grad_norm", "clip_high", "clip_low", "gap_mean"];

/** Each of them that changes, in one line, with its first and its last value. */
function sparklines({ steps }: Seen, metric: string): string[] {
  const rows = told.flatMap((name) => {
    const values = steps.flatMap(({ metrics }) => (metrics[name] === undefined ? [] : [metrics[name]]));
    const changes = name !== metric && values.length > 1 && values.some((value) => value !== values[0]);
    return changes ? [[`  ${name}`, short(values[0]), sparkline(values), short(values.at(-1) as number)]] : [];
  });
  return rows.length === 0 ? [] : ["", ...table(rows, [1])];
}

const short = (value: number): string => Number(value.toPrecision(3)).toString();

function lastStep({ steps }: Seen, metric: string): string[] {
  const last = steps.at(-1);
  if (!last) return ["\nno step is done yet"];
  const names = [...new Set([metric, ...told])].filter((name) => last.metrics[name] !== undefined);
  if (last.metrics[metric] === undefined) names.push(...Object.keys(last.metrics).filter((name) => !names.includes(name)));
  const mean = steps.reduce((sum, { ms }) => sum + ms, 0) / steps.length;
  return [
    `\nstep ${last.step} (${duration(mean * steps.length)} of steps so far, ${(mean / 1000).toFixed(2)} s each)`,
    ...table(names.map((name) => [`  ${name}`, Number((last.metrics[name] as number).toPrecision(4)).toString()])),
    `  verdicts  ${verdictsOf(last.verdicts)}`,
  ];
}

/** `6 accept, 2 reject (1 wrong, 1 truncated)`: what there is of each kind, and why. */
function verdictsOf(verdicts: Json): string {
  const { reasons = {}, ...kinds } = (verdicts ?? {}) as { readonly [kind: string]: Json };
  const some = (of: object): [string, number][] =>
    Object.entries(of).filter((entry): entry is [string, number] => typeof entry[1] === "number" && entry[1] > 0);
  const why = some(reasons as object)
    .sort(([, a], [, b]) => b - a)
    .map(([reason, count]) => `${count} ${reason}`);
  const counts = some(kinds).map(([kind, count]) => `${count} ${kind}`);
  return `${counts.join(", ") || "none"}${why.length > 0 ? ` (${why.join(", ")})` : ""}`;
}
