// Loaded before a program: keeps the longest time that its loop of events stood still, and tells it on SIGUSR2, in milliseconds.
import { monitorEventLoopDelay } from "node:perf_hooks";

const resolution = 5;
const delays = monitorEventLoopDelay({ resolution });
delays.enable();
process.on("SIGUSR2", () => {
  process.stderr.write(`stalls ${JSON.stringify({ max: delays.max / 1e6 - resolution, p99: delays.percentile(99) / 1e6 - resolution })}\n`);
  delays.reset();
});
