/** `touchstone methods`: the sixty papers and the families, what each changes and needs, and what its demonstration showed. */
import { statSync } from "node:fs";
import { resolve as resolvePath } from "node:path";
import type { Command } from "commander";
import { ConfigError } from "../core/errors.js";
import { isModulePath } from "../core/load.js";
import { documentedOptions } from "../core/option-table.js";
import { suggestion } from "../core/options.js";
import type { EngineInfo } from "../engine/contract.js";
import { has } from "../engine/onnx/abilities.js";
import { TableEngine } from "../engine/table/engine.js";
import { type AnyMethod, anyMethod, methodFrom, withDefaults } from "../methods/catalogue.js";
import { fallback } from "../methods/fallback.js";
import { type Paper, papers } from "../methods/papers.js";
import { resolve, tableLines, tableOf } from "../methods/resolve.js";
import { statementOf } from "../reproduce/judge.js";
import { type BuiltMethod, builtMethods, findBuilt, headerOf, type Listed, listing, needsOf } from "../reproduce/listing.js";
import { recordOf } from "../reproduce/record.js";
import { claimRows } from "../reproduce/text.js";
import { colours, print, table } from "./output.js";

interface MethodsFlags {
  readonly methods?: string;
  readonly json?: true;
}

const engines: readonly Pick<EngineInfo, "name" | "has">[] = [{ name: "onnx", has: new Set(has) }, new TableEngine().info];

export function define(command: Command): void {
  command
    .usage("[NAME] [options]")
    .argument("[name]", "one of them: its name (grpo, hispo), the number of its paper (P06), or the path of a method of your own")
    .option("--methods <folder>", "also list those of a folder that is laid out as src/methods is: NAME/NAME.ts, NAME/demonstration.ts")
    .option("--json", "print one JSON array with an object for each paper; of one method an object")
    .addHelpText(
      "after",
      `
Slots and needs of what is built are its own words; of the rest they are planned. Engines are those that can do what a
method needs; roles (a teacher, a critic) are for the run to give. "shown" is the recorded run of touchstone reproduce.

Examples:
  $ touchstone methods
  $ touchstone methods P06
  $ touchstone methods dapo
  $ touchstone methods ./mine.ts`,
    )
    .action(run);
}

async function run(name: string | undefined, flags: MethodsFlags): Promise<void> {
  if (name !== undefined && isModulePath(name)) return page(await ownMethod(name), undefined, flags);
  if (flags.methods !== undefined && !statSync(flags.methods, { throwIfNoEntry: false })?.isDirectory())
    throw new ConfigError({ place: "option --methods", cause: `there is no folder ${flags.methods}`, mend: "give a folder that holds NAME/NAME.ts" });
  const own = flags.methods === undefined ? undefined : resolvePath(flags.methods);
  const built = await builtMethods(own);
  if (name === undefined) return list(built, own, flags);
  const found = findBuilt(built, name);
  const paper = papers.find((each) => each.paper === name.toUpperCase() || each.name.toLowerCase() === name.toLowerCase());
  if (found) return page(found, paper ?? papers.find((each) => found.method?.paper.startsWith(`${each.paper} `)), flags);
  if (paper) return planned(listing(built, engines).papers.find((each) => each.paper === paper.paper) as Listed, flags);
  const names = [...built.map(({ folder }) => folder.name), ...papers.map((each) => each.paper)];
  throw new ConfigError({ place: "touchstone methods", cause: `there is no method "${name}"`, mend: suggestion(name, names) });
}

async function ownMethod(path: string): Promise<BuiltMethod> {
  const method = await methodFrom(path, ".", "touchstone methods");
  return { folder: { name: method.name, module: path }, method };
}

function list(built: readonly BuiltMethod[], ownFolder: string | undefined, { json }: MethodsFlags): void {
  const { papers, families } = listing(built, engines);
  if (json) {
    const isOwn = ({ method }: Listed): boolean =>
      ownFolder !== undefined && built.some((each) => each.method?.name === method && each.folder.module?.startsWith(ownFolder));
    print(JSON.stringify([...papers, ...families.filter(isOwn)]));
    return;
  }
  const { bold } = colours(process.stdout);
  const head = ["slots", "engines", "demonstration", "needs"];
  const cells = ({ slots, also, engines, built, demonstration, needs }: Listed): string[] => [
    [...slots, ...also.map((home) => `(${home})`)].join(" ") || "-",
    engines.join(" ") || "none yet",
    built ? (demonstration ?? "not recorded") : "not built yet",
    needs.join(", ") || "-",
  ];
  print(bold(`${papers.length} papers, ${papers.filter((each) => each.built).length} built`));
  for (const line of table([
    ["", "name", "in a few words", ...head],
    ...papers.map((each) => [each.paper as string, each.method ?? each.name, each.title, ...cells(each)]),
  ]))
    print(line);
  print("");
  print(bold("families and what is composed with them"));
  for (const line of table([
    ["name", ...head.filter((each) => each !== "demonstration")],
    ...families.map((each) => [each.name, ...cells(each).filter((_, i) => i !== 2)]),
  ]))
    print(line);
}

/** The page of a paper that is not built. */
function planned(entry: Listed, { json }: MethodsFlags): void {
  if (json) {
    print(JSON.stringify(entry));
    return;
  }
  print(colours(process.stdout).bold(`${entry.paper} ${entry.name}: not built yet`));
  print(`${entry.title}\n`);
  for (const line of table([
    ["slots", [...entry.slots, ...entry.also.map((home) => `(${home})`)].join(", ")],
    ["needs", entry.needs.join(", ") || "nothing beyond a policy and a task"],
    ["engines", entry.engines.join(", ") || "none yet"],
  ]))
    print(line);
}

/** The page of one that is built. */
function page({ folder, method, demonstration }: BuiltMethod, paper: Paper | undefined, { json }: MethodsFlags): void {
  const record = demonstration && recordOf(demonstration.id);
  const made = method && withDefaults(method);
  const source = method?.paper ?? (demonstration?.demonstration.paper as string);
  if (json) {
    const options = method ? documentedOptions(method.options) : [];
    print(
      JSON.stringify({
        name: folder.name,
        paper: source,
        header: headerOf(folder),
        options,
        slots: made ? Object.keys(made.slots) : [],
        needs: made ? needsOf(made) : [],
        demonstration: record?.outcome ?? null,
      }),
    );
    return;
  }
  const { bold } = colours(process.stdout);
  const lines = (title: string, rows: readonly string[]): void => {
    if (rows.length === 0) return;
    print(`\n${bold(title)}`);
    for (const row of rows) print(row);
  };
  print(bold(`${folder.name}: ${source}`));
  if (paper) print(paper.title);
  print(`\n${headerOf(folder)}`);
  if (method && made) {
    const own = tableOf(resolve(made, withDefaults(anyMethod(fallback)))).filter(({ from, how }) => from === method.name && how !== "default");
    lines("slots", tableLines(own));
    lines("options", optionLines(method));
    lines("needs", needsOf(made));
  }
  if (demonstration === undefined) {
    lines("demonstration", ["none yet"]);
    return;
  }
  const { testbed, claims, minutes } = demonstration.demonstration;
  lines("demonstration", [
    testbed,
    ...Object.entries(claims).map(([name, claim]) => `claim: ${name} (${statementOf(claim)})`),
    `touchstone reproduce ${demonstration.id}, about ${minutes} minutes`,
  ]);
  lines(
    "last recorded outcome",
    record
      ? [
          `${record.outcome}, ${record.seeds.length} seeds, ${record.date}, commit ${record.commit.slice(0, 12)}`,
          ...table(claimRows(record), [2, 4]),
          ...(record.remark ? [record.remark] : []),
        ]
      : ["none yet"],
  );
}

function optionLines(method: AnyMethod): string[] {
  const options = documentedOptions(method.options);
  return options.length === 0
    ? []
    : table([["option", "takes", "default", ""], ...options.map(({ path, takes, fallback = "-", about }) => [path, takes, fallback, about])]);
}
