import { dirname } from "node:path";
import { Worker } from "node:worker_threads";
import { errorToJson, type TouchstoneError } from "../../core/errors.js";
import type { Engine } from "../contract.js";
import type { Address, ErrorJson } from "./messages.js";
import { type EngineServer, serveEngine } from "./server.js";
import { socketVariable, stopMessage } from "./spawn.js";

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
 * Turns this process into an engine: creates it, serves it, and ends on a signal or, where a parent started it, on that parent's word. Resolves with the address
 * once it listens. A failure to start is told to the parent, if there is one, and thrown.
 */
export async function hostEngine(options: HostOptions): Promise<Address> {
  let running: { readonly server: EngineServer; readonly engine: Engine } | undefined;
  const stop = async (): Promise<void> => {
    await running?.server.close();
    await running?.engine.close();
    process.exit(0);
  };
  const { endWithParent = false } = options;
  if (endWithParent) {
    watchParent(options.listen);
    process.on("message", (message) => {
      if (message === stopMessage) void stop();
    });
  }
  // A terminal's Ctrl-C, and what ends a whole group of processes, reach the child too, but what happens then is the parent's decision.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => (endWithParent ? undefined : void stop()));
  try {
    const engine = await options.create();
    const server = await serveEngine({ ...options, engine });
    running = { server, engine };
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
