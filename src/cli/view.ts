/** `touchstone view`: runs as a page in the browser, live or finished, from their folders alone. */
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { type Command, Option } from "commander";
import { isLoopback, newToken } from "../core/access.js";
import { ConfigError } from "../core/errors.js";
import { refuseUnlessWritable } from "../core/writable.js";
import { Answers } from "../view/answers.js";
import { archiveOf, fileOf } from "../view/archive.js";
import { readPage } from "../view/page.js";
import { serve } from "../view/serve.js";
import { someText, wholeNumber } from "./flags.js";
import { print } from "./output.js";
import { signals } from "./watch.js";

interface ViewFlags {
  readonly port?: number;
  readonly host?: string;
  readonly token?: string | true;
  readonly export?: string;
  readonly beside?: true;
}

/** Milliseconds that a view beside a run stays after it. */
const lastLookMs = 2500;
/** Where a run of the same name is looked for again; another program that has it makes the view take any. */
const usualPort = 7333;

export function define(command: Command): void {
  command
    .usage("[RUNS...] [options]")
    .argument("[runs...]", "folders of runs, samples, reproductions or audits, or folders that hold some (default: runs)")
    .option("--port <number>", `port; 0 takes any that is free (default: ${usualPort}, or any)`, wholeNumber("--port", 0))
    .option("--host <address>", "address to listen at; another than 127.0.0.1 lets others in, who need the token", someText("--host"))
    .option("--token [text]", "ask for a token; without a text one is made (default with --host)")
    .option("--export <file>", "write one HTML file that shows the same without a server, and end", someText("--export"))
    .addOption(new Option("--beside", "of train --view: the run is to come, and the view ends with its stdin").hideHelp())
    .addHelpText(
      "after",
      `
The page is bound to this machine, reads the folders and changes nothing in them, and needs no internet.
What goes on is followed live; a finished run looks the same. Ctrl-C ends it.

Examples:
  $ touchstone view runs/first
  $ touchstone view runs/three
  $ touchstone view runs/first --export first.html
  $ touchstone train run.yaml --out runs/second --view`,
    )
    .action(view);
}

async function view(runs: readonly string[], flags: ViewFlags): Promise<void> {
  const paths = runs.length > 0 ? runs : existsSync("runs") ? ["runs"] : [];
  if (paths.length === 0)
    throw new ConfigError({ place: "touchstone view", cause: "no run was named and there is no folder runs here", mend: "give the folder of a run" });
  const answers = new Answers({ paths, expected: flags.beside ? paths : [] });
  if (flags.export !== undefined) return write(answers, flags.export);
  const { host = "127.0.0.1", port, token } = flags;
  if (token === "") throw new ConfigError({ place: "option --token", cause: "it is empty", mend: "give a text, or --token alone to have one made" });
  const secret = token === true || (token === undefined && !isLoopback(host)) ? newToken() : token;
  const served = await serveAt(port, { answers, host, ...(secret !== undefined && { token: secret }) });
  print(served.address);
  if (!flags.beside) process.stderr.write("The view is at this address until Ctrl-C.\n");
  await new Promise<void>((stop) => {
    for (const signal of signals) process.once(signal, () => stop());
    if (flags.beside) process.stdin.resume().once("end", stop).once("error", stop);
  });
  // The last step came with the end of the run: pages that are open still ask for it.
  if (flags.beside) await pause(lastLookMs);
  await served.close();
}

/** Writes the page in one file. */
async function write(answers: Answers, file: string): Promise<void> {
  const folder = dirname(resolve(file));
  refuseUnlessWritable(folder);
  refuseUnlessPage(file);
  const text = fileOf(readPage(), await archiveOf(answers));
  mkdirSync(folder, { recursive: true });
  writeFileSync(file, text);
  print(`${file}, ${(text.length / 1e6).toFixed(1)} MB`);
}

/** A page is written over, since it can be made again; whatever else is there is not. */
function refuseUnlessPage(file: string): void {
  if (!statSync(file, { throwIfNoEntry: false })?.isFile()) return;
  if (/^<!doctype html>/i.test(readFileSync(file, "utf8").slice(0, 15))) return;
  throw new ConfigError({ place: `option --export: ${file}`, cause: "it is there already and is no page", mend: "give a new file" });
}

/** At the port that was asked for, or at the usual one where it is free. */
async function serveAt(port: number | undefined, options: Omit<Parameters<typeof serve>[0], "port">): ReturnType<typeof serve> {
  if (port !== undefined) return serve({ ...options, port });
  try {
    return await serve({ ...options, port: usualPort });
  } catch (error) {
    if (!(error instanceof ConfigError && /EADDRINUSE/.test(error.message))) throw error;
    return serve({ ...options, port: 0 });
  }
}
