/** `touchstone verify`: what a verifier says of one answer, and why; or of a file of cases, and how often it was wrong. */
import type { Command } from "commander";
import { ConfigError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import { readJson } from "../core/json-text.js";
import type { Verdict } from "../core/verdict.js";
import { type JudgedCase, judgeCases, readCases, summaryOf } from "../verify/cases.js";
import { verifierNames } from "../verify/catalogue.js";
import { jsonObject } from "./flags.js";
import { colours, print, table } from "./output.js";
import { verdictText } from "./verdict-text.js";

interface VerifyFlags {
  readonly reference?: string;
  readonly response?: string;
  readonly problem?: string;
  readonly options: { readonly [name: string]: Json };
  readonly file?: string;
  readonly json?: true;
}

export function define(command: Command): void {
  command
    .usage("VERIFIER [options]")
    .argument("<verifier>", `${verifierNames.join(", ")}, or a reward of your own: ./reward.ts, command:…, python:file.py:function, http://…`)
    .option("--reference <text>", "the reference answer; a text that is a JSON object or list is taken as such")
    .option("--response <text>", "the response that is judged")
    .option("--problem <text>", "the problem's text, for verifiers that look into it")
    .option("--options <json>", "options of the verifier", jsonObject("--options"), {})
    .option("--file <file>", 'rows {"gold", "pred", "expected"?, "policy"?, "kind"?} as JSONL or Parquet')
    .option("--json", "print one JSON object a verdict; of a file with labels, a last one that sums up")
    .addHelpText(
      "after",
      `
Of one answer it tells what was read where, and which rule decided. Of a file it prints a verdict a row, in order, and where
rows say what is expected of them, how many were accepted or rejected wrongly, by category, with the milliseconds of a verdict.
"kind" says whether pred is a response or an answer (math alone; without it, as the text looks). "policy" names the policy
that a label depends on, or is an object of policies for that row (docs/verifiers.md).

Examples:
  $ touchstone verify math --reference '\\frac12' --response 'so it is \\boxed{0.5}'
  $ touchstone verify number --reference 18 --response 'It is 18 apples' --options '{"percent":"refuse"}'
  $ touchstone verify math --file cases.jsonl --json`,
    )
    .action(verify);
}

async function verify(name: string, flags: VerifyFlags): Promise<void> {
  const { reference, response, problem, options, file } = flags;
  if (file === undefined && (reference === undefined || response === undefined)) {
    const missing = reference === undefined ? "--reference" : "--response";
    throw new ConfigError({ place: `option ${missing}`, cause: "it is missing", mend: "give --reference and --response, or --file" });
  }
  if (file !== undefined) {
    const other = (["reference", "response", "problem"] as const).find((flag) => flags[flag] !== undefined);
    if (other !== undefined) throw new ConfigError({ place: `option --${other}`, cause: "a file has its own", mend: "leave it out, or --file" });
    return verifyFile(name, file, flags);
  }
  const one = { row: 1, gold: referenceOf(reference as string), pred: response as string, ...(problem !== undefined && { problem }) };
  const kind: { readonly kind?: "response" } = name === "math" && options.kind === undefined ? { kind: "response" } : {};
  for await (const judged of judgeCases([{ ...one, ...kind }], name, options)) {
    if (flags.json) print(JSON.stringify(lineOf(judged)));
    else print(explained(judged));
    if (judged.verdict.kind === "unscored") process.exitCode = 1;
  }
}

/** A reference as a data file would have it: an object or a list where the text is one in JSON. */
function referenceOf(text: string): Json {
  if (!/^\s*(?:\{\s*"|\[\s*["{])/.test(text)) return text;
  return readJson(text).value ?? text;
}

async function verifyFile(name: string, file: string, { options, json }: VerifyFlags): Promise<void> {
  const cases = await readCases(file);
  const judged: JudgedCase[] = [];
  for await (const each of judgeCases(cases, name, options)) {
    judged.push(each);
    print(json ? JSON.stringify(lineOf(each)) : rowText(each));
  }
  const summary = summaryOf(judged);
  if (summary === undefined) return;
  if (json) return print(JSON.stringify(summary));
  const { n, false_accepts, false_rejects, unscored, by_category, median_ms, p99_ms } = summary;
  print(
    `\n${n} labelled, ${false_accepts} accepted wrongly, ${false_rejects} rejected wrongly, ${unscored} unscored; ${median_ms} ms a verdict (median), ${p99_ms} ms (99 %)`,
  );
  const wrong = Object.entries(by_category).filter(([, tally]) => tally.false_accepts + tally.false_rejects > 0);
  if (wrong.length === 0) return;
  const rows = wrong.map(([category, tally]) => [category, String(tally.n), String(tally.false_accepts), String(tally.false_rejects)]);
  for (const line of table([["category", "n", "accepted wrongly", "rejected wrongly"], ...rows], [1, 2, 3])) print(line);
}

/** One verdict as JSON; `right` where the row has a label. */
function lineOf({ case: { row, id, expected }, verdict, ms }: JudgedCase): Json {
  const { parts, evidence } = verdict;
  return {
    row,
    ...(id !== undefined && { id }),
    verdict: verdict.kind,
    ...("reason" in verdict && { reason: verdict.reason }),
    ...(verdict.kind === "partial" && { score: verdict.score }),
    ...(verdict.reward !== undefined && { reward: verdict.reward }),
    ...(expected !== undefined && { expected, right: (verdict.kind === "accept") === expected }),
    ...(parts && { parts: parts as Json }),
    ...(evidence && { evidence: evidence as Json }),
    ms: Number(ms.toPrecision(4)),
  };
}

function rowText({ case: { row, id, expected }, verdict }: JudgedCase): string {
  const paint = colours(process.stdout);
  const read = verdict.evidence?.read;
  const wrong = expected !== undefined && (verdict.kind === "accept") !== expected ? paint.red(`  expected ${expected ? "accept" : "reject"}`) : "";
  return `${id ?? row}: ${verdictText(verdict, typeof read === "string" ? read : null, paint)}${wrong}`;
}

/** What the entries of an explanation are called; others by their own names. */
const titles: { readonly [entry: string]: string } = {
  expected: "reference read as",
  text: "answer found",
  rule: "found by",
  span: "characters",
  read: "answer read as",
  decided: "decided by",
  policies: "policies (hash)",
};

function explained({ case: { gold, pred }, verdict }: JudgedCase): string {
  const paint = colours(process.stdout);
  const rows: [string, string][] = [["reference", shown(gold)]];
  for (const [name, value] of Object.entries(verdict.evidence ?? {})) rows.push([titles[name] ?? name, name === "span" ? spanText(value, pred) : shown(value)]);
  for (const [name, value] of Object.entries(verdict.parts ?? {})) rows.push([`part ${name}`, String(value)]);
  return [paint.bold(headline(verdict, paint)), ...table(rows).map((line) => `  ${line}`)].join("\n");
}

function headline(verdict: Verdict, paint: ReturnType<typeof colours>): string {
  const reward = verdict.reward === undefined ? "" : `, reward ${verdict.reward}`;
  return `${verdictText(verdict, null, paint)}${reward}`;
}

function spanText(span: Json, response: string): string {
  const [start, end] = span as [number, number];
  return `${start} to ${end}: ${shown(response.slice(start, end))}`;
}

const shown = (value: Json): string => {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const line = text.replace(/\n/g, "↵");
  return line.length > 120 ? `${line.slice(0, 120)}…` : line;
};
