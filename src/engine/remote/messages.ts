/** The messages between a `RemoteEngine` and the server, one a frame. Any change raises `protocolVersion` in frames.ts. */

import { ConfigError } from "../../core/errors.js";
import type { Json } from "../../core/json.js";
import type { Capability, EngineInfo } from "../contract.js";

/** Where an engine listens: a socket path (or a named pipe on Windows), or a TCP port. */
export type Address = { readonly path: string } | { readonly host: string; readonly port: number };

export type ErrorJson = { readonly [key: string]: Json };

/** From the client. `hello` comes first; then any number of calls, each answered under its id, and what ends them or one response of theirs early. */
export type Request =
  | { readonly type: "hello"; readonly token?: string }
  | { readonly type: "call"; readonly id: number; readonly method: string; readonly args: readonly unknown[] }
  | { readonly type: "cancel"; readonly id: number }
  | { readonly type: "stop"; readonly id: number; readonly index: number };

/** `EngineInfo` as a frame can carry it. */
export interface WireInfo {
  readonly name: string;
  readonly has: readonly Capability[];
  readonly lacks: EngineInfo["lacks"];
  readonly fingerprint: EngineInfo["fingerprint"];
}

/** From the server. `tokens` (index and id of each, in pairs) come before the sample that they are in, `item`s (samples) come before the `done` or `failed` of their call; `refused` ends the connection. */
export type Reply =
  | { readonly type: "welcome"; readonly info: WireInfo; readonly pid: number }
  | { readonly type: "refused"; readonly error: ErrorJson }
  | { readonly type: "tokens"; readonly id: number; readonly pairs: Int32Array }
  | { readonly type: "item"; readonly id: number; readonly value: unknown }
  | { readonly type: "done"; readonly id: number; readonly value?: unknown }
  | { readonly type: "failed"; readonly id: number; readonly error: ErrorJson; readonly cancelled: boolean }
  | { readonly type: "beat"; readonly calls: number };

export function infoToWire(info: EngineInfo): WireInfo {
  return { name: info.name, has: [...info.has], lacks: info.lacks, fingerprint: info.fingerprint };
}

export function infoFromWire(wire: WireInfo): EngineInfo {
  return { ...wire, has: new Set(wire.has) };
}

export function describeAddress(address: Address): string {
  return "path" in address ? address.path : `${address.host}:${address.port}`;
}

/** Reads `HOST:PORT` (`[HOST]:PORT` for IPv6) or the path of a socket, which contains a slash or backslash; throws a ConfigError on anything else. */
export function parseAddress(text: string): Address {
  if (/[/\\]/.test(text)) return { path: text };
  const match = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (!match || port > 65535) {
    throw new ConfigError({
      place: `engine address ${JSON.stringify(text)}`,
      cause: "it is neither HOST:PORT nor a path",
      mend: "write 127.0.0.1:7600 or ./engine.sock",
    });
  }
  return { host: match[1] ?? match[2], port };
}
