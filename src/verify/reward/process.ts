/**
 * A program that rewards batches: one JSON object a line on its standard input, one on its standard output. It is started
 * when it is first needed, killed with its children at a deadline, and started again a bounded number of times.
 */
import { type ChildProcess, spawn } from "node:child_process";
import type { Socket } from "node:net";
import type { Json } from "../../core/json.js";
import { readJson } from "../../core/json-text.js";
import { BatchFault, type FaultReason, resultsOf, type Transport } from "./batch.js";
import type { RewardItem } from "./item.js";

export interface ProgramOptions {
  /** Program and arguments; a single text goes to the shell. */
  readonly command: readonly string[] | string;
  readonly cwd?: string;
  /** How it is called in messages. */
  readonly title: string;
  readonly processes: number;
  readonly deadlineMs: number;
  /** Starts in a row that may end without an answer. */
  readonly restarts: number;
}

/** What a fault tells of standard error. */
const keptErrors = 2000;
/** A longer line is no answer. */
const longestAnswer = 64 * 2 ** 20;

/** How long the end of a killed program is waited for. */
const endMs = 5000;

const alive = new Set<ChildProcess>();
let hooked = false;

/** A transport to n processes of a program. */
export function programTransport(options: ProgramOptions): Transport {
  const idle: Program[] = [];
  const all = new Set<Program>();
  let failures = 0;
  let nextId = 0;
  return {
    lanes: options.processes,
    async send(items) {
      if (failures > options.restarts) throw new BatchFault("gone", `${options.title} failed ${failures} times in a row and is not started again`, false);
      const program = idle.pop() ?? new Program(options);
      all.add(program);
      try {
        const results = await program.ask(nextId++, items);
        failures = 0;
        idle.push(program);
        return results;
      } catch (error) {
        if (program.alive) idle.push(program);
        else all.delete(program);
        // That an answer says it failed is the answer of a working program.
        if (!(error instanceof BatchFault && error.reason === "failed")) failures++;
        throw error;
      }
    },
    async close() {
      const ended = [...all].map((program) => program.close());
      all.clear();
      idle.length = 0;
      failures = 0;
      await Promise.all(ended);
    },
  };
}

class Program {
  alive = true;
  private readonly child: ChildProcess;
  private readonly ended: Promise<void>;
  private text = "";
  private errors = "";
  private waiting: { readonly line: (text: string) => void; readonly fail: (reason: FaultReason, message: string) => void } | undefined;

  constructor(private readonly options: ProgramOptions) {
    const { command, cwd } = options;
    const more = { stdio: "pipe", ...(cwd !== undefined && { cwd }), detached: process.platform !== "win32" } as const;
    this.child = typeof command === "string" ? spawn(command, { ...more, shell: true }) : spawn(command[0] as string, command.slice(1), more);
    const { stdin, stdout, stderr } = this.child;
    this.ended = new Promise((resolve) => {
      const end = (how: string): void => {
        this.alive = false;
        alive.delete(this.child);
        this.waiting?.fail("crashed", `${how}${this.lastError()}`);
        resolve();
      };
      this.child.once("error", (error: NodeJS.ErrnoException) => end(`it cannot be started (${error.code ?? error.message})`));
      // A shell may end before what it started, which would hold its pipes open.
      this.child.once("exit", () => killGroup(this.child));
      // Not `exit`: what it wrote last is still to be read.
      this.child.once("close", (code, signal) => end(signal === null ? `it ended with code ${code}` : `it was ended by ${signal}`));
    });
    if (stdin === null || stdout === null || stderr === null) return;
    stdin.on("error", () => undefined); // Its end tells.
    stdout.setEncoding("utf8").on("data", (piece: string) => this.read(piece));
    stderr.setEncoding("utf8").on("data", (piece: string) => {
      this.errors = (this.errors + piece).slice(-keptErrors);
    });
    // An idle program keeps nobody from ending; while it is waited for, the deadline's timer does.
    this.child.unref();
    for (const stream of [stdin, stdout, stderr]) (stream as unknown as Socket).unref?.();
    alive.add(this.child);
    if (!hooked) process.on("exit", () => alive.forEach(killGroup));
    hooked = true;
  }

  /** Sends one batch and waits for its line. */
  async ask(id: number, items: readonly RewardItem[]): Promise<readonly Json[]> {
    const { title, deadlineMs } = this.options;
    const line = await new Promise<string>((resolve, reject) => {
      const timer = setTimeout(() => this.waiting?.fail("timeout", `no answer within ${deadlineMs} ms${this.lastError()}`), deadlineMs);
      const settle = (act: () => void): void => {
        clearTimeout(timer);
        this.waiting = undefined;
        act();
      };
      this.waiting = {
        line: (text) => settle(() => resolve(text)),
        fail: (reason, message) => settle(() => reject(this.fault(reason, `${title}: ${message}`))),
      };
      if (this.alive) this.child.stdin?.write(`${JSON.stringify({ id, items })}\n`);
      else this.waiting.fail("crashed", `it is not running${this.lastError()}`);
    });
    const { value, fault } = readJson(line);
    const answer = value as { readonly [name: string]: Json } | undefined;
    if (fault !== undefined || typeof answer !== "object" || answer === null || answer.id !== id) {
      const shown = JSON.stringify(line.length > 80 ? `${line.slice(0, 80)}…` : line);
      throw this.fault("malformed", `${title}: it wrote ${shown} where {"id":${id},"results":[…]} is due; other output belongs on standard error`);
    }
    return resultsOf(answer, items.length, title);
  }

  async close(): Promise<void> {
    this.child.stdin?.end();
    this.kill();
    // Its handles hold nobody up, so the timer does until the end is told; a killed program that does not end is left behind.
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, endMs);
    });
    await Promise.race([this.ended, late]);
    clearTimeout(timer);
  }

  /** A fault after which nobody knows what the program would answer next: it is ended. */
  private fault(reason: FaultReason, message: string): BatchFault {
    this.kill();
    return new BatchFault(reason, message, reason !== "malformed");
  }

  private kill(): void {
    this.alive = false;
    killGroup(this.child);
  }

  private read(piece: string): void {
    this.text += piece;
    if (this.text.length > longestAnswer) this.waiting?.fail("malformed", `it wrote more than ${longestAnswer / 2 ** 20} MB without a line end`);
    for (let end = this.text.indexOf("\n"); end >= 0; end = this.text.indexOf("\n")) {
      const line = this.text.slice(0, end).trim();
      this.text = this.text.slice(end + 1);
      if (line === "") continue;
      // Where it speaks without being asked, the next answer could be mistaken.
      if (this.waiting === undefined) this.kill();
      else this.waiting.line(line);
    }
  }

  private lastError(): string {
    const line = this.errors.trim().split("\n").at(-1)?.trim();
    return line ? ` (${line.slice(0, 300)})` : "";
  }
}

function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    if (process.platform === "win32") child.kill("SIGKILL");
    else process.kill(-child.pid, "SIGKILL");
  } catch {
    // Nobody of the group is left.
  }
}
