/** Rewards outside of this program by their names: `command:…`, `python:file.py:function`, `http://…`. */
import { existsSync } from "node:fs";
import { basename, delimiter, isAbsolute, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { ConfigError } from "../../core/errors.js";
import { hashJson, type Json } from "../../core/json.js";
import { parseOptions } from "../../core/options.js";
import { isProgram, programFiles, programHash } from "../../core/program.js";
import type { Verifier } from "../contract.js";
import { batchedVerifier } from "./batch.js";
import { serverTransport } from "./http.js";
import { programTransport } from "./process.js";
import { rewardOptions } from "./result.js";

const mostBatch = 256;
const mostLanes = 64;

const outside = rewardOptions.extend({
  batch: z.int().min(1).max(mostBatch).default(64).describe("Answers that go together at most."),
  deadline_ms: z.int().min(1).default(60_000).describe("Wall clock for a batch; with batch 1, for an answer."),
});
const program = outside.extend({
  processes: z.int().min(1).max(mostLanes).default(1).describe("Processes that work side by side."),
  restarts: z.int().min(0).max(1000).default(10).describe("Failures in a row after which it is not started again."),
});
export const commandOptions = program.extend({
  cwd: z.string().min(1).optional().describe("Folder that it runs in; absent: the working folder, or that of the configuration."),
});
export const pythonOptions = program.extend({
  python: z.string().min(1).default("python3").describe("The interpreter: a name on the PATH, or a path."),
  completions: z.enum(["text", "messages"]).default("text").describe("What a function with a parameter completions is given: texts, or lists of messages."),
});
export const serverOptions = outside.extend({
  headers: z.record(z.string().min(1), z.string()).default({}).describe("Further headers."),
  token_env: z.string().min(1).optional().describe("Environment variable with a token that is sent as Authorization: Bearer."),
  concurrency: z.int().min(1).max(mostLanes).default(4).describe("Batches under way at once."),
  retries: z.int().min(0).max(100).default(2).describe("Further tries where a fault may pass (no connection, time-out, 408, 429, 5xx)."),
});

const commandName = /^command:(.*)$/s;
const pythonName = /^python:(.*)$/s;
const pythonParts = /^python:(.+\.py):([A-Za-z_]\w*)$/s;
const serverName = /^https?:\/\//i;

/** Whether a name means a reward outside. */
export const isOutside = (name: string): boolean => commandName.test(name) || pythonName.test(name) || serverName.test(name);

/** Name and options with whole paths, as seen from a folder. */
export function fromFolder(
  name: string,
  options: { readonly [name: string]: Json },
  folder: string,
): { name: string; options: { readonly [name: string]: Json } } {
  const [, file, called] = pythonParts.exec(name) ?? [];
  if (file !== undefined) {
    const { python } = options;
    const moved = typeof python === "string" && /[\\/]/.test(python) ? { ...options, python: resolve(folder, python) } : options;
    return { name: `python:${resolve(folder, file)}:${called}`, options: moved };
  }
  if (!commandName.test(name)) return { name, options };
  return { name, options: { ...options, cwd: typeof options.cwd === "string" ? resolve(folder, options.cwd) : resolve(folder) } };
}

/** The verifier of a reward outside; nothing is started yet. Throws ConfigError for what cannot be meant. */
export function outsideVerifier(name: string, options: Json, place: string): Verifier {
  const [, command] = commandName.exec(name) ?? [];
  if (command !== undefined) return fromCommand(command, options, place);
  return pythonName.test(name) ? fromPython(name, options, place) : fromServer(name, options, place);
}

function fromCommand(command: string, options: Json, place: string): Verifier {
  if (command.trim() === "") throw new ConfigError({ place, cause: "no command stands behind command:", mend: "write command:PROGRAM ARGUMENTS" });
  const { range, batch, deadline_ms, processes, restarts, cwd } = parseOptions(commandOptions, options, place);
  if (cwd !== undefined && !existsSync(cwd))
    throw new ConfigError({ place: `${place}, option cwd`, cause: `there is no folder ${cwd}`, mend: "give one that is there" });
  return batchedVerifier({
    name: "command",
    version: hashJson({ command, files: filesNamed(command, cwd) }).slice(0, 12),
    options: { command, range },
    transport: programTransport({
      command,
      title: `the command ${shortened(command)}`,
      processes,
      deadlineMs: deadline_ms,
      restarts,
      ...(cwd !== undefined && { cwd }),
    }),
    range,
    batch,
  });
}

function fromPython(name: string, options: Json, place: string): Verifier {
  const [, file, called] = pythonParts.exec(name) ?? [];
  if (file === undefined || called === undefined) {
    throw new ConfigError({ place, cause: `${JSON.stringify(name)} names no function of a file`, mend: "write python:FILE.py:FUNCTION" });
  }
  const { range, batch, deadline_ms, processes, restarts, python, completions } = parseOptions(pythonOptions, options, place);
  if (!existsSync(file)) throw new ConfigError({ place, cause: `there is no file ${file}`, mend: "check the path" });
  const interpreter = found(python);
  if (interpreter === undefined) {
    const cause = /[\\/]/.test(python) ? `there is no ${python}` : `there is no ${python} on the PATH, and a Python reward needs one`;
    throw new ConfigError({ place, cause, mend: "install Python 3, or name the interpreter by the option python" });
  }
  const bridge = fileURLToPath(new URL("./bridge.py", import.meta.url));
  return batchedVerifier({
    name: `python:${basename(file)}:${called}`,
    version: programHash(file).slice(0, 12),
    options: { function: called, range, completions },
    transport: programTransport({
      command: [interpreter, "-u", bridge, resolve(file), called, completions],
      title: `the function ${called} of ${basename(file)}`,
      processes,
      deadlineMs: deadline_ms,
      restarts,
    }),
    range,
    batch,
  });
}

function fromServer(url: string, options: Json, place: string): Verifier {
  const { range, batch, deadline_ms, headers, token_env, concurrency, retries } = parseOptions(serverOptions, options, place);
  const token = token_env === undefined ? undefined : process.env[token_env];
  if (token_env !== undefined && !token) {
    throw new ConfigError({
      place: `${place}, option token_env`,
      cause: `there is no environment variable ${token_env}`,
      mend: "set it, or leave the option out",
    });
  }
  return batchedVerifier({
    name: "server",
    version: "1",
    options: { url, range },
    transport: serverTransport(
      {
        url,
        headers: { ...headers, ...(token !== undefined && { authorization: `Bearer ${token}` }) },
        lanes: concurrency,
        deadlineMs: deadline_ms,
        retries,
      },
      place,
    ),
    range,
    batch,
  });
}

/** The files that a command names, by its words: what they say decides rewards as the command does. */
function filesNamed(command: string, cwd = "."): Json {
  const words = command.split(/\s+/).map((word) => word.replace(/^["']|["']$/g, ""));
  const paths = words.filter((word) => /[./]/.test(word)).map((word) => resolve(cwd, word));
  return Object.fromEntries(paths.filter(isProgram).map((path) => [basename(path), programFiles(path)]));
}

const shortened = (command: string): string => (command.length > 40 ? `${command.slice(0, 40)}…` : command);

/** The file of a program: itself where it is a path, else the first of its name on the PATH. */
function found(python: string): string | undefined {
  if (isAbsolute(python) || /[\\/]/.test(python)) return existsSync(python) ? python : undefined;
  const endings = process.platform === "win32" ? [".exe", ".bat", ".cmd", ""] : [""];
  const paths = (process.env.PATH ?? "").split(delimiter).flatMap((folder) => endings.map((ending) => join(folder, `${python}${ending}`)));
  return paths.find((path) => existsSync(path));
}
