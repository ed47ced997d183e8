/**
 * `npm run bench serve`: 200 graders at once for a minute against `touchstone serve --verifier math`, on loopback: each sends one
 * answer of 800 characters or more, waits for its verdict, thinks for a second, and goes on. Then as many as it can bear: without
 * thinking. Told are errors, wrong verdicts, and how long a verdict takes at the client.
 *
 *     npm run bench serve [-- --graders 200] [-- --seconds 60] [-- --think 1000] [-- --workers 1]
 */
import { readFileSync } from "node:fs";
import { availableParallelism, loadavg } from "node:os";
import { join } from "node:path";
import { repository } from "../test/paths.js";
import { grading, startedServer } from "./lib/graders.js";
import { say } from "./lib/peers.js";

const flag = (name: string, preset: number): number => Number(process.argv[process.argv.indexOf(`--${name}`) + 1 || -1] ?? preset) || preset;
const graders = flag("graders", 200);
const seconds = flag("seconds", 60);
const think = flag("think", 1000);
const workers = flag("workers", 1);

const problems = readFileSync(join(repository, "test", "data", "math500.jsonl"), "utf8")
  .trimEnd()
  .split("\n")
  .map((line) => JSON.parse(line) as { readonly solution: string; readonly answer: string });

const server = await startedServer(["--verifier", "math", "--verifier-workers", String(workers)]);
try {
  const told = async (name: string, thinkMs: number, lasting: number): Promise<void> => {
    const before = server.processorMs();
    const { count, errors, wrong, ms, sentMs } = await grading({ address: server.address, problems, graders, seconds: lasting, thinkMs });
    const at = (part: number): string => (ms[Math.floor(part * (ms.length - 1))] as number).toFixed(1);
    say(
      `${name}: ${graders} graders, ${count} verdicts in ${(sentMs / 1000).toFixed(0)} s (${((1000 * count) / sentMs).toFixed(0)} a second)`,
      `median ${at(0.5)} ms  p99 ${at(0.99)} ms  max ${at(1)} ms`,
      `${errors.length} errors${errors.length > 0 ? ` (${errors[0]})` : ""}`,
      `${wrong} wrong verdicts`,
      `${((server.processorMs() - before) / count).toFixed(2)} ms of processor time a verdict in the server`,
    );
  };
  say(`${availableParallelism()} cores, load ${loadavg()[0]?.toFixed(1)} before; ${workers} threads that judge`);
  // What a server pays once, as it compiles what it judges with.
  await told("warm-up", 0, Math.min(10, seconds));
  await told(`asked (p99 below 100 ms)`, think, seconds);
  await told("without thinking", 0, Math.min(20, seconds));
  say(`load ${loadavg()[0]?.toFixed(1)} after`);
} finally {
  await server.end();
}
