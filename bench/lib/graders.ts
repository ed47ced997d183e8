/** Many graders at once against a server of verdicts, as trainers are: each sends an answer, waits, and goes on. */
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { repository } from "../../test/paths.js";

export interface GradingOptions {
  readonly address: string;
  readonly problems: readonly { readonly solution: string; readonly answer: string }[];
  readonly graders: number;
  readonly seconds: number;
  /** Between a verdict and the next request, on average. */
  readonly thinkMs: number;
}

export interface Grading {
  readonly count: number;
  /** What went wrong, a line each: a status, a broken connection, an answer without a verdict. */
  readonly errors: readonly string[];
  /** Verdicts that are not what the answer is worth. */
  readonly wrong: number;
  /** Of each request from its sending to the end of its answer, sorted. */
  readonly ms: readonly number[];
  readonly sentMs: number;
}

/** The body of one answer: the data set's own solution with its box, and each fourth with another problem's. */
function bodies(problems: GradingOptions["problems"]): { readonly body: string; readonly right: boolean }[] {
  return problems.map(({ solution, answer }, i) => {
    const other = i % 4 === 3 ? (problems[(i + 7) % problems.length] as { readonly answer: string }).answer : answer;
    let steps = solution.replace(/\\boxed\{/g, "{");
    while (steps.length < 800) steps += `\n\nOnce more: ${solution.replace(/\\boxed\{/g, "{")}`;
    return {
      body: JSON.stringify({ items: [{ response: `${steps}\n\nTherefore the answer is $\\boxed{${other}}$.`, reference: answer }] }),
      right: other === answer,
    };
  });
}

/** Asks until the time is up; resolves once every request that was sent is answered. */
export async function grading({ address, problems, graders, seconds, thinkMs }: GradingOptions): Promise<Grading> {
  const all = bodies(problems);
  const agent = new Agent({ keepAlive: true, maxSockets: graders });
  const ms: number[] = [];
  const errors: string[] = [];
  let wrong = 0;
  const start = performance.now();
  const end = start + 1000 * seconds;
  const grader = async (number: number): Promise<void> => {
    // Spread over the first pause, as trainers do not begin at one moment.
    await pause((thinkMs * number) / graders);
    for (let i = number; performance.now() < end; i += graders) {
      const { body, right } = all[(i * 7) % all.length] as (typeof all)[number];
      const before = performance.now();
      try {
        const { status, text } = await post(`${address}/reward`, body, agent);
        ms.push(performance.now() - before);
        const kind = status === 200 ? (JSON.parse(text) as { results: [{ kind: string }] }).results[0].kind : undefined;
        if (kind === undefined || kind === "unscored") errors.push(`status ${status}: ${text.slice(0, 200)}`);
        else if ((kind === "accept") !== right) wrong++;
      } catch (error) {
        errors.push((error as Error).message);
      }
      if (thinkMs > 0) await pause(thinkMs * (0.5 + ((i * 37) % 100) / 100));
    }
  };
  await Promise.all(Array.from({ length: graders }, (_, number) => grader(number)));
  agent.destroy();
  return { count: ms.length, errors, wrong, ms: ms.sort((a, b) => a - b), sentMs: performance.now() - start };
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

function post(url: string, body: string, agent: Agent): Promise<{ readonly status: number; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const asked = request(
      url,
      { method: "POST", agent, headers: { "content-type": "application/json", "content-length": Buffer.byteLength(body) } },
      (answer) => {
        const pieces: Buffer[] = [];
        answer.on("data", (piece: Buffer) => pieces.push(piece));
        answer.on("error", reject);
        answer.on("end", () => resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(pieces).toString() }));
      },
    );
    asked.on("error", reject);
    asked.end(body);
  });
}

/** `touchstone serve` in a process of its own, on a port that is free. */
export function startedServer(args: readonly string[]): Promise<{ readonly address: string; processorMs(): number; end(): Promise<void> }> {
  const child: ChildProcess = spawn(process.execPath, ["--import", "tsx", "src/cli/main.ts", "serve", "--port", "0", ...args], {
    cwd: repository,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  return new Promise((resolve, reject) => {
    child.stdout?.on("data", (data: Buffer) => {
      const address = data.toString().trim();
      if (address.startsWith("http"))
        resolve({
          address,
          processorMs: () => processorMs(child.pid as number),
          end: async () => {
            child.kill("SIGINT");
            await ended;
          },
        });
    });
    void ended.then(() => reject(new Error("touchstone serve ended")));
  });
}

/** Milliseconds of the processor that a process has taken, all its threads together; NaN where the system does not tell. */
function processorMs(pid: number): number {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
    return 10 * (Number(fields[11]) + Number(fields[12]));
  } catch {
    return Number.NaN;
  }
}
