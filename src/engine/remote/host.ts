import { Worker } from "node:worker_threads";
import { errorToJson, type TouchstoneError } from "../../core/errors.js";
import type { Engine } from "../contract.js";
import type { Address, ErrorJson } from "./messages.js";
import { serveEngine } from "./server.js";

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
 * The engine blocks its thread for seconds, so another thread watches the pipe. It removes the socket and its empty folder,
 * since nobody else is left to, and kills the process, since a blocked thread runs no handlers.
 */
function watchParent(listen: Address): void {
  const source = `
    const { Socket } = require("node:net");
    const { rmSync, rmdirSync } = require("node:fs");
    const { dirname } = require("node:path");
    const { workerData } = require("node:worker_threads");
    const gone = () => {
      try {
        rmSync(workerData, { force: true });
        rmdirSync(dirname(workerData));
      } catch {}
      process.kill(process.pid, "SIGKILL");
    };
    new Socket({ fd: 0 }).on("end", gone).on("close", gone).on("error", gone).resume();
  `;
  new Worker(source, { eval: true, workerData: "path" in listen ? listen.path : "", execArgv: [] }).unref();
}
