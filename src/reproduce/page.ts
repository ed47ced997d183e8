/** docs/reproductions.md, made from the records of whole runs, so that it says what came out and nothing else. */
import type { FoundDemonstration } from "./find.js";
import type { ReproductionRecord } from "./record.js";
import { armRows, claimRows } from "./text.js";

/** The whole page. `known`: the demonstrations that can be run. */
export function reproductionsPage(list: readonly ReproductionRecord[], known: readonly FoundDemonstration[]): string {
  return `${[
    "# Reproductions",
    "What demonstrations of papers showed, at the scale of one machine's processor. This page is made from the records in docs/reproductions (`npm run docs`), each written by `touchstone reproduce PAPER --record` on a commit; a test fails when it is out of date.",
    "Claims stand in `src/methods/NAME/demonstration.ts` before a run. One is shown where the 95 % interval of its mean over paired seeds (the wider of the paired bootstrap's and of the paired t's) lies on its side alone, and reversed where it lies on the other. " +
      "The paper is shown where all claims are, reversed where one is, and else not shown, which is no statement that there is no effect. Runs at this scale say nothing about large models.",
    list.length === 0 ? "None is recorded yet." : tableOf([["paper", "outcome", "seeds", "date", "commit", "earlier runs"], ...list.map(overviewRow)]),
    "## Running them",
    "Each line goes on where it was interrupted, on the commit that it began with. In a clone without changes (`npx tsx src/cli/main.ts` is `touchstone` there) `--record` writes docs/reproductions; minutes are rough, on two quiet cores. " +
      "The second command puts the method with its key line neutralised in the method's place, on the same seeds and on as many others, and adds to the record what it showed; `shown` on both is a fault of the demonstration, and fails a test.",
    commandsOf(known),
    ...list.flatMap(sectionOf),
  ].join("\n\n")}\n`;
}

/** One command a demonstration, in order of their ids. */
function commandsOf(known: readonly FoundDemonstration[]): string {
  const sorted = [...known].sort((a, b) => (a.id < b.id ? -1 : 1));
  const lines = sorted.map(({ id, demonstration: { minutes, sabotage } }) => {
    const run = `touchstone reproduce ${id} --record`;
    return `    ${[run, ...(sabotage ? [`touchstone reproduce ${id} --sabotage --record`] : [])].join(" && ")}    # ${minutes} minutes${sabotage ? ", and the second" : ""}`;
  });
  return lines.join("\n");
}

const short = (commit: string | null): string => (commit === null ? "-" : commit.replace(/^([0-9a-f]{12})[0-9a-f]*/, "$1"));

function overviewRow({ id, paper, outcome, seeds, date, commit, earlier }: ReproductionRecord): string[] {
  return [`[${paper}](#${id.toLowerCase()})`, `**${outcome}**`, String(seeds.length), date, short(commit), String(earlier.length)];
}

function sectionOf(record: ReproductionRecord): string[] {
  const {
    id,
    paper,
    testbed,
    outcome,
    seeds,
    arms,
    failed,
    differences,
    commit,
    optionsCommit,
    partsOfOtherCommits,
    date,
    minutes,
    machine,
    sabotage,
    earlier,
    remark,
  } = record;
  const others = Object.keys(partsOfOtherCommits).length;
  const lines = [
    ...arms.flatMap(({ arm, about }) => (about === undefined ? [] : [`- ${arm}: ${about}`])),
    ...differences.map((difference) => `- differs from the paper: ${difference}`),
    ...failed.map(({ arm, seed, why }) => `- ${arm}, seed ${seed}, yielded nothing: ${why}`),
    sabotage ? `- the sabotaged method (${sabotage.about}) on two sets of seeds: ${sabotage.outcomes.join(", ")}` : "- the sabotaged method was not run",
    `- commit ${short(commit)}, claims and options as of ${short(optionsCommit)}${others > 0 ? `, ${others} parts of other commits` : ""}; ${date}, ${minutes} minutes of work on ${machine.processor}, ${machine.cores} cores, Node ${machine.node}`,
    ...earlier.map(
      (run) => `- an earlier run: ${run.outcome}, ${run.seeds} seeds, ${run.date}, commit ${short(run.commit)}, options as of ${short(run.optionsCommit)}`,
    ),
  ];
  return [
    `## ${id}`,
    `${paper}: **${outcome}**. ${testbed}`,
    ...(remark === "" ? [] : [remark]),
    `Means over ${seeds.length} seeds, with 95 % intervals:`,
    tableOf(armRows(record)),
    tableOf(claimRows(record)),
    lines.join("\n"),
  ];
}

function tableOf([head = [], ...rows]: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}
