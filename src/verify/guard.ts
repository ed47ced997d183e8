/** Calls a function of the program under a deadline that also stops a loop which never comes back to the event loop. */
import { Script } from "node:vm";

const slot = Symbol.for("touchstone.guarded");
const holder = globalThis as { [slot]?: () => unknown };
// A script is what the runtime can interrupt from outside; it calls the function that lies in the slot.
const script = new Script(`globalThis[Symbol.for("touchstone.guarded")]()`, { filename: "guarded" });

/** What the function returns, or `late` where its synchronous part took longer. */
export function guarded<T, L>(work: () => T, deadlineMs: number, late: L): T | L {
  const outer = holder[slot];
  holder[slot] = work;
  try {
    return script.runInThisContext({ timeout: deadlineMs }) as T;
  } catch (error) {
    if ((error as NodeJS.ErrnoException | undefined)?.code === "ERR_SCRIPT_EXECUTION_TIMEOUT") return late;
    throw error;
  } finally {
    holder[slot] = outer;
  }
}
