/** The worker thread of an environment: makes the task, then answers calls, those that await side by side. */
import { parentPort, workerData } from "node:worker_threads";
import type { Json } from "../core/json.js";
import { loadModule } from "../core/load.js";
import { refuseExit } from "../core/thread.js";
import type { Task } from "../tasks/contract.js";
import type { VerifierSource } from "../verify/source.js";
import type { Answer, Job } from "./environment.js";
import { replyTo } from "./reply.js";

const port = parentPort;
if (port) {
  refuseExit();
  const send = (answer: Answer): void => port.postMessage(answer);
  try {
    const { module, name, options } = (workerData as { readonly source: VerifierSource }).source;
    const exported = (await loadModule(module))[name];
    const task = (typeof exported === "function" ? await (exported as (options: Json) => unknown)(options) : exported) as Partial<Task> | undefined;
    const environment = task?.environment;
    if (environment === undefined) throw new TypeError(`its export ${name} makes no task with an environment`);
    port.on("message", ({ id, call, limits }: Job) => void replyTo(environment, call, limits).then((reply) => send({ id, reply })));
    send({ ready: true });
  } catch (error) {
    send({ failed: error instanceof Error ? error.message : String(error) });
  }
}
