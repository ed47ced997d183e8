/** The command line as a user meets it: the real program in a process of its own. */
import { spawn } from "node:child_process";
import { existsSync, statSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Command } from "commander";
import { describe, expect, it } from "vitest";
import { repository } from "../../test/paths.js";
import { run } from "../../test/run.js";
import { scratch } from "../../test/support/tabular.js";
import { command } from "../../test/support/touchstone.js";
import { ConfigError, DataError, ModelError } from "../core/errors.js";
import { RemoteEngine } from "../engine/remote/client.js";
import { parseAddress } from "../engine/remote/messages.js";
import { commands } from "./commands.js";
import { failureText } from "./failure.js";
import { colours, table } from "./output.js";
import { runProgram } from "./program.js";

const touchstone = (...args: string[]) => run(process.execPath, [...command, ...args], { cwd: repository });

describe("touchstone", () => {
  it("prints its help and version, and names every command", async () => {
    const help = await touchstone("--help");
    expect(help).toMatchObject({ code: 0, err: "" });
    for (const { name, summary } of commands) expect(help.out).toMatch(new RegExp(`^ +${name} +${summary.slice(0, 30)}`, "m"));
    const engine = await touchstone("help", "engine");
    expect(engine.out).toContain("--listen <address>");
    expect(engine.out).toContain("\nExample:\n  $ touchstone engine ");
    expect(await touchstone("--version")).toEqual({ code: 0, out: "0.1.0\n", err: "" });
  });

  it.each(commands.map(({ name }) => name))("explains %s with an example", async (name) => {
    const command = new Command(name);
    (await commands.find((entry) => entry.name === name)?.load())?.define(command);
    let help = "";
    command.configureOutput({ writeOut: (text) => (help += text) }).outputHelp();
    expect(help).toMatch(new RegExp(`Examples?:\\n +\\$ touchstone ${name}`));
  });

  it.each<[string, string[], string]>([
    ["no command", [], "touchstone: no command was given; give one of "],
    ["a misspelt command", ["enigne"], "touchstone: there is no command enigne; did you mean engine?"],
    ["a misspelt option", ["engine", "--listen", "127.0.0.1:0", "--thread=2"], "touchstone engine: there is no option --thread; did you mean --threads?"],
    ["a misspelt option that was required", ["engine", "--lisen", "x"], "touchstone engine: there is no option --lisen; did you mean --listen?"],
    [
      "an option that nothing is near to",
      ["engine", "--listen", "127.0.0.1:0", "--zeal"],
      "touchstone engine: there is no option --zeal; valid here: --listen, ",
    ],
    ["a missing option", ["engine"], "touchstone engine: required option '--listen <address>' not specified; see touchstone engine --help"],
    ["an option without its value", ["engine", "--listen"], "touchstone engine: option '--listen <address>' argument missing; see touchstone engine --help"],
    [
      "a word too many",
      ["engine", "--listen", "127.0.0.1:0", "more"],
      "touchstone engine: too many arguments for 'engine': expected 0 arguments but got 1; see ",
    ],
    ["a number that is none", ["engine", "--listen", "127.0.0.1:0", "--threads", "1.5"], 'option --threads: got "1.5"; give a whole number of at least 1'],
    [
      "an address that is none",
      ["engine", "--listen", "abc"],
      'engine address "abc": it is neither HOST:PORT nor a path; write 127.0.0.1:7600 or ./engine.sock',
    ],
  ])("refuses %s", async (_, args, sentence) => {
    const error = await runProgram(args).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ConfigError);
    expect((error as ConfigError).message.slice(0, sentence.length)).toBe(sentence);
  });

  it("ends a refusal with one line on stderr and the exit code 2", async () => {
    const ran = await touchstone("enigne");
    expect(ran).toEqual({ code: 2, out: "", err: "error: touchstone: there is no command enigne; did you mean engine?\n" });
  });
});

describe("touchstone engine", () => {
  it("serves an engine at the address that it prints until it is interrupted", async () => {
    const child = spawn(process.execPath, [...command, "engine", "--listen", "127.0.0.1:0", "--threads", "1", "--token", "t", "--json"], { cwd: repository });
    const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
    const [line] = await Promise.race([
      new Promise<string[]>((resolve) => createInterface({ input: child.stdout }).once("line", (text) => resolve([text]))),
      ended.then((code) => Promise.reject(new Error(`it ended with ${code}`))),
    ]);
    const said = JSON.parse(line as string) as { address: string; threads: number };
    expect(said.threads).toBe(1);
    const address = parseAddress(said.address);
    await expect(RemoteEngine.connect({ address, token: "wrong" })).rejects.toThrow("token is missing or wrong");
    const engine = await RemoteEngine.connect({ address, token: "t" });
    expect(engine.info.name).toBe("onnx");
    await engine.close();
    child.kill("SIGINT");
    expect(await ended).toBe(0);
    await expect(RemoteEngine.connect({ address, token: "t" })).rejects.toThrow();
  });
});

describe("a failure", () => {
  const inner = new TypeError("x is\nnot a function");
  it("is one line without a stack", () => {
    expect(failureText(new DataError({ place: "a.jsonl, line 3", cause: "it is\n  empty", mend: "remove it" }), {})).toBe(
      "a.jsonl, line 3: it is empty; remove it",
    );
    expect(failureText(inner, {})).toBe("x is not a function (a fault that is not foreseen; TOUCHSTONE_DEBUG=1 shows where)");
    expect(failureText("text", {})).toMatch(/^text \(/);
  });

  it("of the operating system is told with the path and what can be done", () => {
    const link = join(scratch(), "circle");
    symlinkSync(link, link);
    const thrown = (act: () => unknown): unknown => {
      try {
        return act();
      } catch (error) {
        return error;
      }
    };
    expect(
      failureText(
        thrown(() => statSync(link)),
        {},
      ),
    ).toBe(`${link}: its symbolic links lead in a circle (ELOOP); give another path, or mend the links`);
    const missing = Object.assign(new Error("x"), { code: "ENOENT", syscall: "mkdtemp", path: join(tmpdir(), "touchstone-") });
    expect(failureText(missing, {})).toMatch(/there is no such file or folder \(ENOENT\); set TMPDIR to a folder that is there/);
  });

  it.each([
    ["--model", "train --model LINK --task chain --out NEW"],
    ["--data", "train --model starters/chain-1M --data LINK --verifier exact --max-tokens 8 --out NEW"],
    ["--out", "train --model starters/chain-1M --task chain --out LINK"],
    ["--config", "train --config LINK"],
    ["a run to show", "show LINK"],
    ["a new folder", "init LINK"],
    ["a store", "eval starters/chain-1M --task chain --store LINK"],
  ])("is one that was foreseen where links lead in a circle: %s", async (_, line) => {
    const link = join(scratch(), "circle");
    symlinkSync(link, link);
    const words = line.split(" ").map((word) => (word === "LINK" ? link : word === "NEW" ? join(scratch(), "new") : word));
    const error = await runProgram(words).catch((thrown: unknown) => thrown);
    expect(failureText(error, {})).toMatch(/circle[^;]*; [^;]+$/);
    expect(failureText(error, {})).not.toContain("not foreseen");
  });

  it.skipIf(!existsSync("/dev/full"))("to print is told on a disk that is full", async () => {
    const { code, err } = await run("sh", ["-c", `${process.execPath} ${command.join(" ")} --help > /dev/full`], { cwd: repository });
    expect({ code, err }).toEqual({ code: 2, err: "error: standard output: nothing can be written to it (ENOSPC); free space, or send it elsewhere\n" });
  });

  it("shows its stack and what caused it when asked to", () => {
    const text = failureText(new ModelError({ place: "m", cause: "c", mend: "d" }, { cause: inner }), { TOUCHSTONE_DEBUG: "1" });
    expect(text).toMatch(/^ModelError: m: c; d\n +at /);
    expect(text).toMatch(/\ncaused by TypeError: x is\nnot a function\n +at /);
  });
});

describe("output", () => {
  it("has colours on a terminal alone, and none when they are not wanted", () => {
    const red = (stream: object, env: NodeJS.ProcessEnv): string => colours(stream, env).red("x");
    expect(red({ isTTY: true }, {})).toBe("\x1b[31mx\x1b[39m");
    expect([red({}, { CI: "1" }), red({ isTTY: true }, { NO_COLOR: "1" }), red({ isTTY: true }, { TERM: "dumb" })]).toEqual(["x", "x", "x"]);
  });

  it("sets columns to one width", () => {
    const rows = [
      ["name", "size", "note"],
      ["a", "1,000", "x"],
    ];
    expect(table(rows, [1])).toEqual(["name   size  note", "a     1,000  x"]);
  });
});
