/** `touchstone engine`: an engine that other processes or machines connect to. */
import { spawn } from "node:child_process";
import { availableParallelism, totalmem } from "node:os";
import { type Command, Option } from "commander";
import { runEngineProcess } from "../engine/onnx/process.js";
import { type Address, describeAddress, parseAddress } from "../engine/remote/messages.js";
import { allocatorSettings, stopMessage } from "../engine/remote/spawn.js";
import { wholeNumber } from "./flags.js";
import { print } from "./output.js";

interface EngineOptions {
  readonly listen: Address;
  readonly threads: number;
  readonly token?: string;
  readonly json?: true;
}

/** Set for the process that does the work. */
const heldVariable = "TOUCHSTONE_ENGINE_HELD";

export function define(command: Command): void {
  command
    .requiredOption("--listen <address>", "HOST:PORT (port 0: a free one), or the path of a socket", parseAddress)
    .option("--threads <count>", "threads that it computes with", wholeNumber("--threads", 1), availableParallelism())
    .addOption(new Option("--token <text>", "what clients must present; required where other machines reach the address").env("TOUCHSTONE_ENGINE_TOKEN"))
    .option("--json", "print the address as a line of JSON once it listens")
    .addHelpText(
      "after",
      `
It starts without a model: the client loads one. It ends on Ctrl-C or SIGTERM.
A token on the command line can be read by other users of the machine; TOUCHSTONE_ENGINE_TOKEN cannot.

Example:
  $ touchstone engine --listen 127.0.0.1:7600 --threads 2`,
    )
    .action((options: EngineOptions) => (process.env[heldVariable] ? serve(options) : hold()));
}

async function serve({ listen, threads, token, json }: EngineOptions): Promise<void> {
  const address = await runEngineProcess({ listen, engine: { threads }, endWithParent: true, ...(token === undefined ? {} : { token }) });
  if (json) print(JSON.stringify({ address: describeAddress(address), threads, pid: process.pid }));
  else print(`Listening on ${describeAddress(address)} with ${threads} ${threads === 1 ? "thread" : "threads"}; Ctrl-C ends it`);
}

/** Runs the same command again in a child whose allocator keeps large memory, which can only be set before a process starts. */
function hold(): Promise<void> {
  const child = spawn(process.execPath, [...process.execArgv, ...process.argv.slice(1)], {
    stdio: ["pipe", "inherit", "inherit", "ipc"],
    env: { ...allocatorSettings(totalmem(), 1), ...process.env, [heldVariable]: "1" },
  });
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(signal, () => child.connected && child.send(stopMessage));
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => {
      process.exitCode = code ?? 1;
      resolve();
    });
  });
}
