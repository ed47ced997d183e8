/** `touchstone eval`: how often a policy is right, with intervals; or other numbers of samples drawn before. */
import type { Command } from "commander";
import { ConfigError, RunError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import { type Estimate, type Metrics, metricsOf } from "../evaluate/metrics.js";
import { rejudged } from "../evaluate/rejudge.js";
import type { EvaluatedSample } from "../evaluate/samples.js";
import { checkNewStore, readStore, type StoreConditions, writeStore } from "../evaluate/store.js";
import { modelHelp } from "../train/model-name.js";
import { verifierId } from "../verify/contract.js";
import { telling } from "../verify/faults.js";
import { startPool } from "../verify/pool.js";
import { withChatOfRun } from "./chat-flags.js";
import { wholeNumbers } from "./flags.js";
import { type DecoderFlags, decoderOptions, measure, truncationOf } from "./measure.js";
import { print, table } from "./output.js";
import { chosenVerifier, type ProblemFlags, posedProblems, problemOptions, withProblemsOfRun } from "./problems.js";

interface EvalFlags extends ProblemFlags, DecoderFlags {
  readonly k?: readonly number[];
  readonly store?: string;
  readonly json?: true;
}

const defaultProblems = 1000;

export function define(command: Command): void {
  command.usage("[MODEL] [options]").argument("[model]", modelHelp);
  decoderOptions(problemOptions(command))
    .option("--k <list>", "the k of pass@k and maj@k, such as 1,4,16 (default: 1 and n)", wholeNumbers("--k", 1))
    .option("--store <folder>", "keep the samples in a new folder; without MODEL, read such a folder")
    .option("--json", "print one JSON object")
    .addHelpText(
      "after",
      `
Without --n as many samples a problem are drawn as the largest k. pass@k is the unbiased one, over the scored samples
alone: what the verifier could not judge is left out and counted. Intervals are of 95 %: Wilson's for one sample a
problem, else the bootstrap over problems. The same seed gives the same problems and samples. 1,000 problems are posed,
or all where there are fewer. A run without --task or --data is measured on its own task and verifier.

Examples:
  $ touchstone eval runs/first@best
  $ touchstone eval runs/first@best --greedy
  $ touchstone eval my-model --task chain --n 16 --k 1,4,16 --store samples
  $ touchstone eval my-model --task chain --temperature 0.7 --top-p 0.95
  $ touchstone eval --store samples --k 2,8
  $ touchstone eval HuggingFaceTB/SmolLM2-135M-Instruct --data test.jsonl --prompt-column question --verifier number --system "Be brief."
  $ touchstone eval my-model --data test.jsonl --verifier number --stop "</answer>" --json`,
    )
    .action((model: string | undefined, flags: EvalFlags) =>
      model === undefined ? fromStore(flags) : fromModel(model, withChatOfRun(model, withProblemsOfRun(model, flags))),
    );
}

async function fromModel(model: string, flags: EvalFlags): Promise<void> {
  const n = flags.n ?? Math.max(1, ...(flags.k ?? []));
  const k = flags.k ?? [1, n];
  const above = k.find((each) => each > n);
  if (above !== undefined)
    throw new ConfigError({
      place: "option --k",
      cause: `it is ${above} with --n ${n}`,
      mend: "give --n of at least k: pass@k is computed from k of n samples",
    });
  if (flags.greedy && n > 1)
    throw new ConfigError({
      place: "option --greedy",
      cause: `${n} samples a problem would all be the same`,
      mend: "give --n 1 and --k 1, or leave --greedy out",
    });
  const truncation = truncationOf(flags);
  if (flags.store !== undefined) await checkNewStore(flags.store);
  const posed = await posedProblems(flags, flags.seed ?? 0, defaultProblems, "test");
  const { evaluation, conditions, wallMs } = await measure({ model, posed, flags: { ...flags, n }, truncation, k, silent: flags.json === true });
  const { samples, metrics } = evaluation;
  if (flags.store !== undefined) await writeStore(flags.store, conditions, posed.problems, samples);
  const clock = { wall_s: wallMs / 1000, tokens_per_s: metrics.tokens.total / (wallMs / 1000) };
  report(conditions, metrics, [...posed.notes, ...evaluation.warnings], {
    json: flags.json === true,
    clock,
    ...(flags.store !== undefined && { store: flags.store }),
  });
  requireScored(metrics);
}

/** Flags that say how samples are drawn; none of them can change samples that are there. */
const drawing: readonly (readonly [keyof EvalFlags, string])[] = [
  ["task", "--task"],
  ["taskOptions", "--task-options"],
  ["data", "--data"],
  ["dataOptions", "--data-options"],
  ["split", "--split"],
  ["nProblems", "--n-problems"],
  ["n", "--n"],
  ["temperature", "--temperature"],
  ["greedy", "--greedy"],
  ["topK", "--top-k"],
  ["topP", "--top-p"],
  ["minP", "--min-p"],
  ["maxTokens", "--max-tokens"],
  ["stop", "--stop"],
  ["chatTemplate", "--chat-template"],
  ["chatTemplateKwargs", "--chat-template-kwargs"],
  ["tools", "--tools"],
  ["system", "--system"],
  ["promptColumn", "--prompt-column"],
  ["answerColumn", "--answer-column"],
  ["threads", "--threads"],
];

async function fromStore(flags: EvalFlags): Promise<void> {
  if (flags.store === undefined)
    throw new ConfigError({
      place: "touchstone eval",
      cause: "neither a model nor samples are named",
      mend: "give MODEL, or --store FOLDER of earlier samples",
    });
  const given = drawing.find(([key]) => flags[key] !== undefined);
  if (given)
    throw new ConfigError({
      place: `option ${given[1]}`,
      cause: "the samples of a store are drawn already",
      mend: "leave it out, or name the model to draw others",
    });
  const store = await readStore(flags.store);
  const { samples, verifier } = await judgedAs(flags, store);
  const { n } = store.meta.decoder;
  const k = flags.k ?? [1, n];
  const above = k.find((each) => each > n);
  if (above !== undefined)
    throw new ConfigError({ place: "option --k", cause: `it is ${above}, and the store has ${n} samples a problem`, mend: `give k up to ${n}` });
  const metrics = metricsOf(samples, { k, seed: flags.seed ?? store.meta.seed });
  report({ ...store.meta, verifier }, metrics, [], { json: flags.json === true, store: flags.store });
  requireScored(metrics);
}

/** The samples of a store with its own verdicts, or with those of the verifier that the flags name. */
async function judgedAs(
  flags: EvalFlags,
  store: Awaited<ReturnType<typeof readStore>>,
): Promise<{ samples: readonly EvaluatedSample[]; verifier: StoreConditions["verifier"] }> {
  const chosen = await chosenVerifier(flags);
  if (chosen === undefined) return { samples: store.samples, verifier: store.meta.verifier };
  const started = await startPool({ ...chosen, workers: flags.verifierWorkers ?? 1 });
  const pool = telling(started, chosen.verifier.name, (text) => process.stderr.write(`${text}\n`));
  try {
    const samples = await rejudged(store, chosen.verifier, (problem, response, truncated) => pool.judge(problem, response, truncated));
    return { samples, verifier: chosen.verifier };
  } finally {
    await pool.close();
  }
}

function requireScored({ samples, scored, reasons }: Metrics): void {
  if (scored > 0) return;
  throw new RunError({
    place: "touchstone eval",
    cause: `none of ${samples} samples could be scored (${Object.keys(reasons).join(", ")})`,
    mend: "mend what kept the verifier from judging; TOUCHSTONE_DEBUG=1 shows more",
  });
}

interface ReportOptions {
  readonly json: boolean;
  readonly clock?: { readonly wall_s: number; readonly tokens_per_s: number };
  readonly store?: string;
}

function report(conditions: StoreConditions, metrics: Metrics, warnings: readonly string[], options: ReportOptions): void {
  if (options.json) print(JSON.stringify(reportJson(conditions, metrics, warnings, options)));
  else print(reportText(conditions, metrics, warnings, options).join("\n"));
}

function reportJson(conditions: StoreConditions, metrics: Metrics, warnings: readonly string[], { clock, store }: ReportOptions): Json {
  const { estimates, ...counts } = metrics;
  const numbers = estimates.map(({ name, k, value, interval, n, problems, leftOut }) => [
    `${name}@${k}`,
    { value, low: interval?.low ?? null, high: interval?.high ?? null, by: interval?.by ?? null, k, n: [n.min, n.max], problems, left_out: leftOut },
  ]);
  const { verifier, ...rest } = conditions;
  return {
    ...Object.fromEntries(Object.entries(rest).filter(([key]) => ["model", "weights", "task", "decoder", "seed", "engine"].includes(key))),
    verifier: verifierId(verifier),
    metrics: Object.fromEntries(numbers) as Json,
    ...(counts as unknown as { [key: string]: Json }),
    warnings,
    ...(store !== undefined && { store }),
    ...(clock && { clock }),
  } as Json;
}

const words = { topK: "top-k", topP: "top-p", minP: "min-p" } as const;

const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;

function reportText(conditions: StoreConditions, metrics: Metrics, warnings: readonly string[], { clock, store }: ReportOptions): string[] {
  const { model, task, verifier, decoder, seed } = conditions;
  const { samples, scored, unscored, verdicts, reasons, stops, tokens } = metrics;
  const rules = Object.entries(decoder.truncation ?? {}).map(([rule, value]) => `, ${words[rule as keyof typeof words]} ${value}`);
  const drawn = decoder.greedy ? "greedy" : `temperature ${decoder.temperature}${rules.join("")}`;
  const ends = decoder.stop ? `, ended by ${decoder.stop.map((text) => JSON.stringify(text)).join(" or ")}` : "";
  const listed = Object.entries(reasons).map(([reason, count]) => `${reason} ${count}`);
  const partial = verdicts.partial > 0 ? `, ${verdicts.partial} partial` : "";
  return [
    ...table([
      ["model", model],
      ["problems", `${metrics.problems}${task ? ` of ${task.name}, split ${task.split}` : ""}`],
      ["verifier", verifierId(verifier)],
      ["decoder", `${drawn}, at most ${decoder.maxTokens} tokens${ends}, seed ${seed}`],
    ]),
    "",
    ...table([["metric", "value", "95 % interval", "by", "k", "n", "problems"], ...metrics.estimates.map(row)], [1, 4, 5, 6]),
    "",
    `${samples} samples: ${verdicts.accept} accepted${partial}, ${verdicts.reject} rejected, ${unscored} unscored${listed.length > 0 ? ` (${listed.join(", ")})` : ""}`,
    `responses of ${tokens.mean.toFixed(1)} tokens, at most ${tokens.max}; ${stops.length ?? 0} cut off${clock ? `; ${clock.wall_s.toFixed(1)} s, ${Math.round(clock.tokens_per_s)} tokens/s` : ""}`,
    ...(store !== undefined && clock ? [`samples are in ${store}: touchstone eval --store ${store} --k …`] : []),
    ...(scored > 0 ? warnings.map((line) => `note: ${line}`) : []),
  ];
}

function row({ name, k, value, interval, n, problems, leftOut }: Estimate): string[] {
  return [
    `${name}@${k}`,
    value === null ? "–" : percent(value),
    interval ? `${percent(interval.low)} to ${percent(interval.high)}` : "–",
    interval?.by ?? "–",
    String(k),
    n.min === n.max ? String(n.max) : `${n.min} to ${n.max}`,
    leftOut === 0 ? String(problems) : `${problems} (${leftOut} with too few scored)`,
  ];
}
