/** Parts in processes of their own, a few at once: an arm runs on one core whatever the others do. */
import { type ChildProcess, spawn } from "node:child_process";
import { createWriteStream, mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { errorFromJson, errorToJson, movedTo, RunError, type TouchstoneError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import { loadDemonstration } from "./find.js";
import { type Part, type PartSpec, partFile, runPart } from "./part.js";

export interface PartsOptions {
  /** Processes at one time; 0: one part after another in this process. */
  readonly atOnce: number;
  readonly signal?: AbortSignal;
  readonly onPart: (part: Part) => void;
}

/** Runs all parts, in order of begin. The first fault ends the others and is thrown. False: interrupted. */
export async function runParts(specs: readonly PartSpec[], { atOnce, signal, onPart }: PartsOptions): Promise<boolean> {
  const running = new Set<ChildProcess>();
  const waiting = [...specs];
  const faults: unknown[] = [];
  const stop = (): void => {
    for (const child of running) child.kill("SIGTERM");
  };
  signal?.addEventListener("abort", stop);
  const worker = async (): Promise<void> => {
    for (let spec = waiting.shift(); spec !== undefined && !signal?.aborted && faults.length === 0; spec = waiting.shift()) {
      try {
        onPart(await (atOnce === 0 ? inThisProcess(spec) : inProcess(spec, running)));
      } catch (error) {
        if (signal?.aborted) return;
        faults.push(error);
        stop();
      }
    }
  };
  try {
    await Promise.all(Array.from({ length: Math.max(1, atOnce) }, worker));
  } finally {
    signal?.removeEventListener("abort", stop);
  }
  if (signal?.aborted) return false;
  if (faults.length > 0) throw faults[0];
  return true;
}

function inProcess(spec: PartSpec, running: Set<ChildProcess>): Promise<Part> {
  const entry = fileURLToPath(new URL(import.meta.url.endsWith(".ts") ? "./part-process.ts" : "./part-process.js", import.meta.url));
  // Run from sources, the child needs the loader that its parent has.
  const loader = entry.endsWith(".ts") ? ["--import", pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href] : [];
  const log = partFile(spec).replace(/\.json$/, ".log");
  mkdirSync(dirname(log), { recursive: true });
  const child = spawn(process.execPath, [...loader, entry, JSON.stringify(spec)], {
    stdio: ["ignore", "pipe", "pipe", "ipc"],
    // A group of its own: the parent decides what a terminal's signal means.
    detached: process.platform !== "win32",
  });
  running.add(child);
  const printed = createWriteStream(log);
  child.stdout?.pipe(printed, { end: false });
  child.stderr?.pipe(printed, { end: false });
  return new Promise((done, fail) => {
    let answer: { readonly part?: Part; readonly error?: { readonly [key: string]: Json } } | undefined;
    child.on("message", (message) => {
      answer = message as typeof answer;
    });
    child.once("error", fail);
    child.once("close", (code, signal) => {
      running.delete(child);
      printed.end();
      if (answer?.part) return done(answer.part);
      if (answer?.error === undefined)
        return fail(
          new RunError({
            place: placeOf(spec),
            cause: `its process ended (${signal ?? `code ${code}`})`,
            mend: `read ${log}, and give the same command again`,
          }),
        );
      fail(placedAt(spec, errorFromJson(answer.error)));
    });
  });
}

async function inThisProcess(spec: PartSpec): Promise<Part> {
  try {
    return await runPart((await loadDemonstration(spec.file)).demonstration, spec);
  } catch (error) {
    throw placedAt(spec, errorFromJson(errorToJson(error)));
  }
}

const placeOf = ({ arm, seed }: PartSpec): string => `arm ${arm}, seed ${seed}`;

/** The same error, with its arm and seed. */
function placedAt(spec: PartSpec, error: TouchstoneError): TouchstoneError {
  if (error.place !== "") return movedTo(error, `${placeOf(spec)}, ${error.place}`);
  const cause = `it throws (${error.message.split("\n")[0]})`;
  return new RunError({ place: placeOf(spec), cause, mend: "mend the demonstration, and give the same command again" }, { cause: error });
}
