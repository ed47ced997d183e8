/**
 * The thread that keeps a session alive, however long the main thread computes: it beats on its own clock, and gives the
 * models back where the process ends without having done so itself.
 */
import { parentPort, workerData } from "node:worker_threads";
import { Http } from "../../core/http.js";
import type { HeartbeatData, HeartbeatOrder } from "./session.js";
import { sentWith } from "./wire.js";

const { base, key, everyMs, done } = workerData as HeartbeatData;
const http = new Http(base, sentWith(key));
let session: string | undefined;

/** A beat, or the end of a model. What fails is left: the next beat is the repetition, and a server drops models of silent sessions itself. */
async function post(path: string, body: object, deadlineMs: number): Promise<number | undefined> {
  try {
    return (await http.send({ method: "POST", path: `/api/v1/${path}`, body: JSON.stringify(body), deadlineMs })).status;
  } catch {
    return undefined;
  }
}

setInterval(() => {
  if (session !== undefined) void post("session_heartbeat", { session_id: session, type: "session_heartbeat" }, everyMs);
}, everyMs);

parentPort?.on("message", (order: HeartbeatOrder) => {
  if ("session" in order) session = order.session;
  else {
    void Promise.all(order.unload.map((model) => post("unload_model", { model_id: model, type: "unload_model" }, order.withinMs))).then(() => {
      Atomics.store(done, 0, 1);
      Atomics.notify(done, 0);
    });
  }
});
