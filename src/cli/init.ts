/** `touchstone init`: a folder with a task of one's own, its problems, a test and a run's options, which works at once. */
import { existsSync, mkdirSync, readdirSync, realpathSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import { ConfigError } from "../core/errors.js";
import { shellWord } from "../core/shell.js";
import { packageVersion } from "../core/version.js";
import { refuseUnlessWritable } from "../core/writable.js";
import { initFiles } from "./init-files.js";
import { invocation } from "./invocation.js";
import { print, table } from "./output.js";

export function define(command: Command): void {
  command
    .usage("FOLDER [options]")
    .argument("<folder>", "new folder; its last part is the task's name")
    .option("--json", "print the result as a line of JSON")
    .addHelpText(
      "after",
      `
The task asks for digits in ascending order, and a small policy learns it within a minute; then put your own in its place.
A policy of nothing first learns from example answers what an answer looks like. Most of them are in descending order, so
that it is often wrong and knows how to be right.

Example:
  $ touchstone init my-task`,
    )
    .action(init);
}

function init(folder: string, { json }: { readonly json?: true }): void {
  const name = basename(resolve(folder));
  if (!/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(name) || name.length > 60) {
    throw new ConfigError({
      place: `name ${JSON.stringify(name)}`,
      cause: "it has other than small letters, digits and single hyphens between them, or is long",
      mend: "give a folder such as my-task",
    });
  }
  refuseUnlessFree(folder);
  refuseUnlessWritable(folder);
  mkdirSync(folder, { recursive: true });
  const files = initFiles({ name, dependency: dependency(folder), commands: commandsOf("touchstone", (file) => file) });
  for (const { file, text } of files) writeFileSync(join(folder, file), text, { flag: "wx" });
  const linked = link(folder);
  const next = commandsOf(invocation(), (file) => shellWord(join(folder, file)));
  if (json) {
    print(JSON.stringify({ folder, files: files.map(({ file }) => file), linked: linked ?? null, next }));
    return;
  }
  print(`${folder} has a task of your own:`);
  for (const line of table(files.filter(({ about }) => about !== undefined).map(({ file, about }) => [`  ${file}`, about as string]))) print(line);
  if (linked !== undefined) print(`In it, touchstone-rl means this copy: node_modules/touchstone-rl is a link to ${linked}.`);
  print("Next, from here:");
  for (const command of next) print(`  ${command}`);
}

/** What to do next, in order: a test, a policy, a run, a look at its answers. `at`: a file of the folder as it is to be typed. */
function commandsOf(run: string, at: (file: string) => string): string[] {
  return [
    `node --test ${at("task.test.mjs")}`,
    `${run} sft --data ${at("examples.jsonl")} --size 100k --max-length 32 --steps 300 --lr 4e-3 --out ${at("policy")}`,
    `${run} train --config ${at("config.yaml")}`,
    `${run} sample ${at("runs/first")}@last --task ${at("task.ts").replace(/^task/, "./task")} --n-problems 3`,
  ];
}

function refuseUnlessFree(folder: string): void {
  if (!existsSync(folder)) return;
  const cause = !statSync(folder).isDirectory() ? "it is a file" : readdirSync(folder).length > 0 ? "it holds other files" : undefined;
  if (cause !== undefined) throw new ConfigError({ place: `folder ${folder}`, cause, mend: "give a new or empty folder" });
}

/** The folder of this package. */
const own = (): string => realpathSync(fileURLToPath(new URL("../..", import.meta.url)));

/** This package as a dependency: by version where it was installed, by its folder where it is a clone. */
function dependency(folder: string): string {
  const root = own();
  return /[\\/]node_modules[\\/]/.test(root) ? packageVersion() : `file:${relative(realpathSync(folder), root).replaceAll("\\", "/")}`;
}

/** Makes the package known in a folder from which it cannot be found yet, as `npm install` would. Returns what the link leads to. */
function link(folder: string): string | undefined {
  const require = createRequire(join(realpathSync(folder), "package.json"));
  try {
    require.resolve("touchstone-rl/package.json");
    return undefined;
  } catch {
    const root = own();
    mkdirSync(join(folder, "node_modules"));
    symlinkSync(root, join(folder, "node_modules", "touchstone-rl"), process.platform === "win32" ? "junction" : "dir");
    return root;
  }
}
