/** `touchstone audit`: how often a verifier is wrong on answers that are right, or wrong, by construction. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { type AuditReport, audit, isClean, type WrongCell } from "../audit/audit.js";
import { contractOf } from "../audit/contracts.js";
import { auditedVerifier, baselineNames } from "../audit/find.js";
import { categories } from "../audit/variants.js";
import { ConfigError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import { refuseUnlessWritable } from "../core/writable.js";
import { auditPage, shareText } from "./audit-page.js";
import { jsonObject, numberFromZero, quoted, wholeNumber } from "./flags.js";
import { freeFolder } from "./free-folder.js";
import { colours, print, table } from "./output.js";
import { Progress } from "./progress.js";

interface AuditFlags {
  readonly options: { readonly [name: string]: Json };
  readonly other?: string;
  readonly otherOptions?: { readonly [name: string]: Json };
  readonly contract?: string;
  readonly golds: number;
  readonly seed: number;
  readonly frame?: string;
  readonly allow: number;
  readonly deadlineMs: number;
  readonly workers?: number;
  readonly out?: string;
  readonly json?: true;
}

export function define(command: Command): void {
  command
    .usage("VERIFIER [options]")
    .argument(
      "<verifier>",
      `as in touchstone verify (math, ./reward.ts, command:…, python:file.py:function, http://…), or ${baselineNames.map((name) => `baseline:${name}`).join(", ")}`,
    )
    .option("--options <json>", "options of the verifier", jsonObject("--options"), {})
    .option("--other <verifier>", "another verifier that judges the same variants (default with --other-options: the same)")
    .option("--other-options <json>", "its options", jsonObject("--other-options"))
    .option("--contract <list>", `categories that the verifier says it reads, with commas between them (default: all): ${categories.join(", ")}`)
    .option("--golds <count>", "references that are drawn", wholeNumber("--golds", 1), 200)
    .option("--seed <number>", "draws the references", wholeNumber("--seed", 0), 0)
    .option("--frame <text>", "what stands around each answer, {} for it, such as 'So it is \\boxed{{}}.'")
    .option("--allow <share>", "share of right answers within the contract that may be missed before the audit fails", numberFromZero("--allow"), 0)
    .option("--deadline-ms <ms>", "wall clock of a verdict", wholeNumber("--deadline-ms", 1), 10_000)
    .option("--workers <count>", "threads that judge (default: 1 where the verifier can be made in one)", wholeNumber("--workers", 0))
    .option("--out <folder>", "folder of audit.html and audit.json (default: runs/audit, or the next free number)")
    .option("--json", "print the report as one JSON object")
    .addHelpText(
      "after",
      `
Answers are rewritten so that their value stays (or provably does not), each certified by a second reader. The exit code is
1 where a wrong answer is accepted, or more right ones within the contract are missed than --allow says (docs/verifiers.md).

Examples:
  $ touchstone audit math
  $ touchstone audit ./reward.ts --frame 'The answer is \\boxed{{}}.' --allow 0.05
  $ touchstone audit "command:python3 grade.py" --contract identity,whitespace,punctuation
  $ touchstone audit math --other-options '{"policies":{"percent-number":"strict"}}' --json`,
    )
    .action(run);
}

async function run(name: string, flags: AuditFlags): Promise<void> {
  const { options, other, otherOptions, golds, seed, frame, allow, deadlineMs, workers, json = false, out = freeFolder(join("runs", "audit")) } = flags;
  if (frame !== undefined && !frame.includes("{}"))
    throw new ConfigError({ place: "option --frame", cause: `${quoted(frame)} has no {}`, mend: "write {} where the answer is to stand" });
  refuseUnlessWritable(out);
  const contract = contractOf(
    name,
    flags.contract?.split(",").map((each) => each.trim()),
  );
  const audited = await auditedVerifier(name, options);
  const second = other === undefined && otherOptions === undefined ? undefined : await auditedVerifier(other ?? name, otherOptions, "other verifier");
  let progress: Progress | undefined;
  const report = await audit({
    audited,
    contract,
    golds,
    seed,
    deadlineMs,
    ...(second && { other: second }),
    ...(frame !== undefined && { frame }),
    ...(workers !== undefined && { workers }),
    onProgress: (done, total) => {
      progress ??= new Progress({ label: name, total, silent: json });
      progress.at(done, "");
    },
  }).finally(() => progress?.end());
  const { html, missing } = await auditPage(report);
  mkdirSync(out, { recursive: true });
  const files = { html: join(out, "audit.html"), json: join(out, "audit.json") };
  writeFileSync(files.html, html);
  const clean = isClean(report, allow);
  const whole = { ...report, clean, files };
  writeFileSync(files.json, `${JSON.stringify(whole)}\n`);
  if (json) print(JSON.stringify(whole));
  else {
    for (const line of linesOf(report)) print(line);
    if (missing !== undefined) process.stderr.write(`note: the page has no charts: ${missing}\n`);
    print(`\n${clean ? "Nothing to object to" : "It fails"}; the report is ${files.html}, the numbers are in ${files.json}`);
  }
  if (!clean) process.exitCode = 1;
}

/** A report in the terminal. */
function linesOf(report: AuditReport): string[] {
  const { bold } = colours(process.stdout);
  const { self_validation, in_contract, cells, mutants, hacks, off_by_one: steps, disagreement } = report;
  const rows = cells.map((cell) => [
    cell.promised ? cell.category : `${cell.category} (not promised)`,
    String(cell.n),
    String(cell.accept),
    String(cell.reject),
    String(cell.error + cell.timeout),
    shareText(cell.reject_rate),
  ]);
  const wrong = [...mutants, ...hacks].filter(({ accepted }) => accepted > 0);
  const passing = steps.filter(({ one_less, one_more }) => one_less === "accept" || one_more === "accept");
  const failed = cells.reduce((total, { error, timeout }) => total + error + timeout, 0);
  const why = report.examples.rejected.find(({ message }) => message !== undefined);
  const sum = (list: readonly WrongCell[], of: "n" | "accepted"): number => list.reduce((total, cell) => total + cell[of], 0);
  return [
    bold(`${report.verifier}: ${report.golds} references, ${report.verdicts} verdicts`),
    `accepts ${self_validation.accepted} of ${self_validation.n} references against themselves; misses ${in_contract.failures} of ${in_contract.n} right answers that it promises to read`,
    "",
    ...table([["rewritten", "n", "accepted", "rejected", "failed", "rejected, 95 %"], ...rows], [1, 2, 3, 4]),
    ...(failed === 0 ? [] : [`failed: ${failed} verdicts${why ? `, as of ${quoted(why.text)}: ${why.message}` : ""}`]),
    "",
    `wrong answers accepted: ${sum(mutants, "accepted")} of ${sum(mutants, "n")} changed values, ${sum(hacks, "accepted")} of ${sum(hacks, "n")} responses without an answer`,
    ...table(wrong.map(({ kind, n, accepted }) => [`  ${kind}`, `${accepted} of ${n}`])),
    passing.length === 0
      ? "neighbours of whole numbers: none accepted, at any size"
      : `neighbours of whole numbers: accepted from ${passing[0]?.value} on (${passing.length} of ${steps.length} sizes)`,
    ...(disagreement ? [`${report.other} differs on ${disagreement.differ} of ${disagreement.n} variants (${shareText(disagreement)})`] : []),
  ];
}
