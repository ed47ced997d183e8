/** The process that an onnx engine runs in: started by start.ts as a child, or by hand as `touchstone engine`. */
import { realpathSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { hostEngine } from "../remote/host.js";
import type { Address } from "../remote/messages.js";
import { socketVariable } from "../remote/spawn.js";
import { OnnxEngine } from "./engine.js";

export type OnnxOptions = Parameters<typeof OnnxEngine.create>[0];

export interface EngineProcessOptions {
  readonly listen: Address;
  readonly engine: OnnxOptions;
  /** What clients must present; required where other machines reach the address. */
  readonly token?: string;
  readonly frameLimit?: number;
  /** End when standard input ends, whatever is being computed. */
  readonly endWithParent?: boolean;
}

/** Creates an onnx engine in this process and serves it until SIGTERM or SIGINT; resolves with the address once it listens. */
export function runEngineProcess(options: EngineProcessOptions): Promise<Address> {
  const { engine, ...rest } = options;
  return hostEngine({ ...rest, create: () => OnnxEngine.create(engine) });
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const [engine] = process.argv.slice(2);
  await runEngineProcess({ listen: { path: process.env[socketVariable] as string }, engine: JSON.parse(engine) as OnnxOptions, endWithParent: true });
}
