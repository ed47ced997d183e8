/** Worker threads of ours, from compiled code or from sources. */
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";

/** Starts the module `name` beside the module at `here` as a thread. Run from sources, a thread needs the loader that its parent has; options that name one do not reach it. */
export function startThread(here: string, name: string, data: object): Worker {
  if (!here.endsWith(".ts")) return quiet(new Worker(new URL(`./${name}.js`, here), { workerData: data, stdout: true }));
  const loader = pathToFileURL(
    createRequire(import.meta.url)
      .resolve("tsx/esm/api")
      .replace(/\.cjs$/, ".mjs"),
  ).href;
  const target = new URL(`./${name}.ts`, here).href;
  const code = `import(${JSON.stringify(loader)}).then((tsx) => { tsx.register(); return import(${JSON.stringify(target)}); });`;
  return quiet(new Worker(code, { workerData: data, eval: true, stdout: true }));
}

/** Within a thread: an end that a user's module asks for is a fault of that call, with its line, rather than the loss of the thread. */
export function refuseExit(): void {
  process.exit = (code) => {
    const error = new Error(`it calls process.exit(${code ?? ""})`);
    // Its place is the caller's.
    Error.captureStackTrace(error, process.exit);
    throw error;
  };
}

/** What a user's module prints goes to stderr: stdout belongs to the results. */
function quiet(worker: Worker): Worker {
  worker.stdout.on("data", (piece: Uint8Array) => process.stderr.write(piece));
  return worker;
}
