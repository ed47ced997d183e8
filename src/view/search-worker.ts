/** The thread of a search: at low priority, where the system can give a thread its own, so that a run beside it does not notice. */
import { constants, setPriority } from "node:os";
import { parentPort, workerData } from "node:worker_threads";
import { type SearchParts, search } from "./search.js";
import type { SearchLine } from "./shapes.js";

/** What the thread says: lines as they come, then its end, or the fault that ended it. */
export type Said = { readonly line: SearchLine } | { readonly ended: true } | { readonly failed: string };

const port = parentPort;
if (port) {
  const say = (said: Said): void => port.postMessage(said);
  // Elsewhere this would be the priority of the whole process, whose pages are waited for.
  if (process.platform === "linux") setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  try {
    const { signal } = new AbortController();
    for await (const line of search({ ...(workerData as Omit<SearchParts, "signal">), signal })) say({ line });
    say({ ended: true });
  } catch (error) {
    say({ failed: error instanceof Error ? error.message : String(error) });
  }
}
