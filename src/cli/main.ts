#!/usr/bin/env node
import { Console } from "node:console";
import { ConfigError } from "../core/errors.js";
import { finished, leave, tellForeignEnds } from "./ending.js";
import { fail } from "./failure.js";
import { runProgram } from "./program.js";

process.on("uncaughtException", fail);
tellForeignEnds();
// What a user's task or verifier prints goes to stderr: stdout belongs to the results.
Object.assign(console, new Console(process.stderr, process.stderr));
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  // The reader of a pipe may have enough (`touchstone --help | head -1`).
  if (error.code === "EPIPE") leave(0);
  fail(
    new ConfigError(
      { place: "standard output", cause: `nothing can be written to it (${error.code})`, mend: "free space, or send it elsewhere" },
      { cause: error },
    ),
  );
});
// A terminal that was closed takes nothing more, and the run still wants to be saved.
process.stderr.on("error", () => undefined);

await runProgram(process.argv.slice(2)).catch(fail);
finished();
