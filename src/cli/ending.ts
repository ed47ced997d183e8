/** How the process ends: by the command's own decision, or by code of a user that ends it in the middle, which must not look like success. */
import { writeSync } from "node:fs";
import { userFrame } from "../core/frames.js";

let decided = false;

/** Ends the process by the command's own decision. */
export function leave(code: number): never {
  decided = true;
  process.exit(code);
}

/** The command has done its work; whatever ends the process now may. */
export function finished(): void {
  decided = true;
}

/** From now on an end that nobody of ours decided is told on stderr, and is none with code 0. */
export function tellForeignEnds(): void {
  process.on("exit", (code) => {
    if (decided) return;
    if (code === 0) process.exitCode = 1;
    const at = callerOfExit();
    const sentence =
      at === undefined
        ? "the command ended before its work was done: nothing was left that it waited for; a promise that never settles is the likely cause"
        : `${at}: it calls process.exit(${code}), which ends the command before its work is done; leave that out`;
    try {
      writeSync(2, `error: ${sentence}\n`);
    } catch {
      // Nobody is left to be told.
    }
  });
}

/** File and line of the user's code that called process.exit, which is still on the stack while the exit is told. */
function callerOfExit(): string | undefined {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 100;
  const error = new Error();
  Error.stackTraceLimit = stackTraceLimit;
  const frames = (error.stack ?? "").split("\n");
  const exit = frames.findIndex((frame) => /\bprocess\.(?:exit|reallyExit)\b/.test(frame));
  if (exit < 0) return undefined;
  error.stack = frames.slice(exit + 1).join("\n");
  return userFrame(error);
}
