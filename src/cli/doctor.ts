/** `touchstone doctor`: what this machine can do, and whether it computes right. */
import type { Command } from "commander";
import { startOnnx } from "../engine/onnx/start.js";
import { type CheckedNumber, selfCheck } from "./doctor/check.js";
import { fits } from "./doctor/fit.js";
import { inspectMachine } from "./doctor/machine.js";
import { type Probed, probe } from "./doctor/probe.js";
import { type Findings, report } from "./doctor/report.js";
import { asksServer, doctorServer, type ServerFlags } from "./doctor/server.js";
import { failureText } from "./failure.js";
import { someText } from "./flags.js";
import { colours, print } from "./output.js";
import { Progress } from "./progress.js";
import { remoteOptions } from "./remote-flags.js";

/** Of large arrays, so that no cache holds them. */
const copyBytes = 2 ** 28;

export function define(command: Command): void {
  remoteOptions(command)
    .option("--model <model>", "of a server of openai: the model whose tokenizer it has", someText("--model"))
    .option("--quick", "leave out the rates: versions, memory and the self-check alone")
    .option("--json", "print the findings as JSON")
    .addHelpText(
      "after",
      `
Reports versions, cores, memory, the rates of products and copies, which sizes of models have room for full
training, LoRA and sampling, and compares twenty numbers of a small model with stored ones.
The exit code is 0 only when all twenty agree.
With --engine and --base-url it asks a server instead, and prints what that can do and what not, with the reasons.

Examples:
  $ touchstone doctor
  $ touchstone doctor --quick --json
  $ touchstone doctor --engine tinker --base-url http://127.0.0.1:8000
  $ touchstone doctor --engine openai --base-url http://127.0.0.1:8000/v1 --served-model mine --model my-model`,
    )
    .action(doctor);
}

async function doctor(flags: ServerFlags): Promise<void> {
  if (asksServer(flags)) return doctorServer(flags);
  const { json, quick } = flags;
  const progress = new Progress({ label: "doctor", silent: json === true });
  progress.waitFor("ONNX Runtime");
  const problems: string[] = [];
  const attempt = async <T>(work: () => Promise<T>): Promise<T | null> => {
    try {
      return await work();
    } catch (error) {
      problems.push(failureText(error));
      return null;
    }
  };
  const machine = inspectMachine();
  const task = { threads: machine.cores, rates: !quick, copyBytes: Math.min(copyBytes, 4 * Math.floor(machine.memory.available / 64)) };
  const probed = await attempt<Probed>(() =>
    probe(
      task,
      (what) => progress.waitFor(what),
      (line) => progress.say(line),
    ),
  );
  progress.waitFor("the self-check");
  // What does not load would only fail a second time.
  const checked = probed && (await attempt(() => checkEngine((line) => progress.say(line))));
  progress.end();
  const agree = checked?.numbers.filter(({ agrees }) => agrees).length ?? 0;
  const findings: Findings = {
    ok: checked !== null && agree === checked.numbers.length,
    machine,
    providers: probed?.providers ?? null,
    rates: probed?.rates ?? null,
    fits: fits(),
    adapters: checked?.adapters ?? false,
    check: checked && { agree, of: checked.numbers.length, numbers: checked.numbers },
    problems,
  };
  print(json ? JSON.stringify(findings, null, 2) : report(findings, colours(process.stdout)));
  if (!findings.ok) process.exitCode = 1;
}

/** In an engine's own process, over its socket: the way that all work takes. */
async function checkEngine(onLine: (line: string) => void): Promise<{ numbers: CheckedNumber[]; adapters: boolean }> {
  const engine = await startOnnx({ engine: { threads: 1 }, onLine });
  try {
    return { numbers: await selfCheck(engine), adapters: engine.info.has.has("adapters") };
  } finally {
    await engine.close();
  }
}
