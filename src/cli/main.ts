#!/usr/bin/env node
import { fail } from "./failure.js";
import { runProgram } from "./program.js";

process.on("uncaughtException", fail);
// The reader of a pipe may have enough (`touchstone --help | head -1`).
process.stdout.on("error", (error: NodeJS.ErrnoException) => (error.code === "EPIPE" ? process.exit(0) : fail(error)));

await runProgram(process.argv.slice(2)).catch(fail);
