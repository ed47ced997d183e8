import { dirname } from "node:path";
import { Worker } from "node:worker_threads";
import { errorToJson, type TouchstoneError } from "../../core/errors.js";
import type { Engine } from "../contract.js";
import type { Address, ErrorJson } from "./messages.js";
import { serveEngine } from "./server.js";
import { socketVariable } from "./spawn.js";

export interface HostOptions {
  readonly create: () => Promise<Engine>;
  readonly listen: Address;
  readonly token?: string;
  readonly frameLimit?: number;
  /** Standard input is a pipe from the parent whose end means that the parent is gone: the process then ends at once, whatever it computes. */
  readonly endWithParent?: boolean;
}

/** What a started engine process tells its parent, once, over the IPC channel. */
export type Readiness = { readonly address: Address } | { readonly error: ErrorJson };

/**
 * Turns this process into an engine: creates it, serves it, and ends on SIGTERM or SIGINT. Resolves with the address
 * once it listens. A failure to start is told to the parent, if there is one, and thrown.
 */
export async function hostEngine(options: HostOptions): Promise<Address> {
  if (options.endWithParent) watchParent(options.listen);
  try {
    const engine = await options.create();
    const server = await serveEngine({ ...options, engine });
    const stop = async (): Promise<void> => {
      await server.close();
      await engine.close();
      process.exit(0);
    };
    process.once("SIGTERM", () => void stop());
    // A terminal's Ctrl-C reaches the child too, but what happens then is the parent's decision.
    process.on("SIGINT", () => (options.endWithParent ? undefined : void stop()));
    tellParent({ address: server.address });
    return server.address;
  } catch (error) {
    tellParent({ error: errorToJson(error) });
    throw error as TouchstoneError;
  }
}

function tellParent(readiness: Readiness): void {
  process.send?.(readiness);
}

/**
 * The engine blocks its thread for seconds, so another thread watches the pipe. It removes the socket, or the folder
 * that the parent made for it, since nobody else is left to, and kills the process, since a blocked thread runs no handlers.
 */
function watchParent(listen: Address): void {
  const path = "path" in listen ? listen.path : undefined;
  // A path that somebody typed may lie in any folder: only that of a parent which made one goes with all that is in it.
  const doomed = path !== undefined && path === process.env[socketVariable] ? dirname(path) : path;
  const source = `
    const { Socket } = require("node:net");
    const { rmSync } = require("node:fs");
    const { workerData } = require("node:worker_threads");
    const gone = () => {
      try {
        if (workerData !== undefined) rmSync(workerData, { recursive: true, force: true });
      } catch {}
      process.kill(process.pid, "SIGKILL");
    };
    new Socket({ fd: 0 }).on("end", gone).on("close", gone).on("error", gone).resume();
  `;
  new Worker(source, { eval: true, workerData: doomed, execArgv: [] }).unref();
}
