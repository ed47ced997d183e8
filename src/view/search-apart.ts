/** A search in a thread of its own, which ends with it or as soon as nobody waits for it any more. */
import { RunError } from "../core/errors.js";
import { startThread } from "../core/thread.js";
import type { SearchParts } from "./search.js";
import type { Said } from "./search-worker.js";
import type { SearchLine } from "./shapes.js";

/** Yields what `search` yields. Throws RunError where the thread fails. */
export async function* searchApart({ path, rows, filter, signal }: SearchParts): AsyncGenerator<SearchLine> {
  if (signal.aborted) return;
  const worker = startThread(import.meta.url, "search-worker", { path, rows, filter });
  const heard: Said[] = [];
  let wake = (): void => undefined;
  const hear = (said: Said): void => {
    heard.push(said);
    wake();
  };
  worker.on("message", hear);
  worker.on("error", (error) => hear({ failed: error instanceof Error ? error.message : String(error) }));
  worker.once("exit", () => hear({ ended: true }));
  const stop = (): void => hear({ ended: true });
  signal.addEventListener("abort", stop);
  try {
    for (;;) {
      const said = heard.shift();
      if (said === undefined) {
        await new Promise<void>((go) => {
          wake = go;
        });
      } else if ("line" in said) yield said.line;
      else if ("ended" in said) return;
      else throw new RunError({ place: path, cause: `the search failed: ${said.failed}`, mend: "search again" });
    }
  } finally {
    signal.removeEventListener("abort", stop);
    await worker.terminate();
  }
}
