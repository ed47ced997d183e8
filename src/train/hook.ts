/** A function of the caller that is told of progress: what it throws, at once or later, is told as its own fault and ends the run. */
import { ArgumentError } from "../core/errors.js";
import { userFrame } from "../core/frames.js";
import { describeThrown } from "../core/load.js";
import type { OnProgress } from "./progress.js";

export interface Hook {
  readonly call: OnProgress;
  /** Throws what a call has failed with since the last one. */
  readonly check: () => void;
}

/** The hook as a run calls it. A promise is not waited for; its rejection is thrown by all later calls, as a throw is. */
export function hookOf(own: OnProgress | undefined): Hook {
  let fault: ArgumentError | undefined;
  const check = (): void => {
    if (fault !== undefined) throw fault;
  };
  if (own === undefined) return { call: () => undefined, check };
  return {
    check,
    call(progress) {
      check();
      let result: unknown;
      try {
        result = own(progress);
      } catch (error) {
        fault = faultOf(error);
        throw fault;
      }
      if (result instanceof Promise) {
        result.catch((error: unknown) => {
          fault ??= faultOf(error);
        });
      }
    },
  };
}

function faultOf(error: unknown): ArgumentError {
  const at = userFrame(error);
  const place = `onProgress${at === undefined ? "" : `, ${at}`}`;
  return new ArgumentError({ place, cause: `it throws (${describeThrown(error)})`, mend: "correct the function" }, { cause: error });
}
