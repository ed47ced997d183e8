/** The process behind probe.ts. */
import { errorToJson } from "../../core/errors.js";
import { loadRuntime } from "../../engine/onnx/runtime.js";
import type { Probed, ProbeMessage, ProbeTask, Rates } from "./probe.js";
import { copyBandwidth, emptyRun, gemmRate } from "./speed.js";

/** Resolves once the parent's side has it: what follows may block this thread for seconds. */
const tell = (message: ProbeMessage): Promise<void> => new Promise((resolve) => process.send?.(message, undefined, undefined, () => resolve()));

async function work({ threads, rates, copyBytes }: ProbeTask): Promise<Probed> {
  await tell({ awaited: "ONNX Runtime to load" });
  const runtime = await loadRuntime();
  const providers = runtime.listSupportedBackends().flatMap(({ name, bundled }) => (bundled ? [name] : []));
  if (!rates) return { providers };
  await tell({ awaited: "products with one thread" });
  const gemmOneThread = await gemmRate(runtime, 1);
  let gemmAllThreads = gemmOneThread;
  if (threads > 1) {
    await tell({ awaited: `products with ${threads} threads` });
    gemmAllThreads = await gemmRate(runtime, threads);
  }
  await tell({ awaited: "empty runs" });
  const emptyRunMs = await emptyRun(runtime);
  await tell({ awaited: "copies" });
  const measured: Rates = { gemmOneThread, gemmAllThreads, threads, emptyRunMs, copy: await copyBandwidth(copyBytes) };
  return { providers, rates: measured };
}

const orphaned = (): never => process.exit(1);
process.on("disconnect", orphaned);
try {
  await tell({ done: await work(JSON.parse(process.argv[2]) as ProbeTask) });
} catch (error) {
  await tell({ error: errorToJson(error) });
}
process.off("disconnect", orphaned);
process.disconnect();
