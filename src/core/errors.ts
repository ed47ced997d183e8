/**
 * All error classes. A message is one sentence that tells the place, the cause and the mend; `data` carries what a
 * program needs to react.
 */
import type { Json } from "./json.js";

/** What every error of ours is made of. */
export interface ErrorParts {
  /** Where: a file and line, an option, a tensor, a call. */
  readonly place: string;
  /** What is wrong there, with the values seen. */
  readonly cause: string;
  /** What the reader can do about it. */
  readonly mend: string;
  readonly data?: { readonly [key: string]: Json };
}

/** Base of all our errors: `message` is `place: cause; mend`. */
export class TouchstoneError extends Error {
  readonly code: string = "touchstone";
  readonly place: string;
  readonly mend: string;
  readonly data: { readonly [key: string]: Json };

  constructor(parts: ErrorParts, options?: ErrorOptions) {
    super(`${parts.place}: ${parts.cause}; ${parts.mend}`, options);
    this.name = new.target.name;
    this.place = parts.place;
    this.mend = parts.mend;
    this.data = parts.data ?? {};
  }
}

/** An option, flag or configuration file is wrong. Exit code 2. */
export class ConfigError extends TouchstoneError {
  override readonly code = "config";
}

/** A data file or one of its rows is wrong. */
export class DataError extends TouchstoneError {
  override readonly code = "data";
}

/** A model folder, its configuration or a tensor is wrong. */
export class ModelError extends TouchstoneError {
  override readonly code = "model";
}

/** A call asks for what this engine cannot do. */
export class CapabilityError extends TouchstoneError {
  override readonly code = "capability";
}

/** The work would not fit into memory; refused before it starts, with the figures. */
export class MemoryError extends TouchstoneError {
  override readonly code = "memory";
}

/** The engine's process died, cannot be reached, or answered something that is not of its protocol. */
export class EngineError extends TouchstoneError {
  override readonly code = "engine";
}

/** A call was made with arguments that cannot be meant (lengths that differ, a temperature of 0). */
export class ArgumentError extends TouchstoneError {
  override readonly code = "argument";
}

/** A run folder is damaged, of another version, or in use. */
export class RunError extends TouchstoneError {
  override readonly code = "run";
}

/** A number that must be finite is not, or training has stopped making sense; carries the diagnosis. */
export class DivergenceError extends TouchstoneError {
  override readonly code = "divergence";
}

/** The same error at another place: where an option was written rather than whose it is. */
export function movedTo(error: TouchstoneError, place: string): TouchstoneError {
  const cause = error.message.slice(`${error.place}: `.length, -`; ${error.mend}`.length);
  const Class = error.constructor as typeof TouchstoneError;
  return new Class({ place, cause, mend: error.mend, data: error.data }, { cause: error });
}

/** The classes by their code, so that an error can cross a process border and keep its class. */
const byCode = {
  touchstone: TouchstoneError,
  config: ConfigError,
  data: DataError,
  model: ModelError,
  capability: CapabilityError,
  memory: MemoryError,
  engine: EngineError,
  argument: ArgumentError,
  run: RunError,
  divergence: DivergenceError,
} as const;

/** An error as JSON, for a process border. Foreign errors keep their message under the code `touchstone`. */
export function errorToJson(error: unknown): { [key: string]: Json } {
  if (error instanceof TouchstoneError) return { code: error.code, message: error.message, place: error.place, mend: error.mend, data: error.data };
  return { code: "touchstone", message: error instanceof Error ? error.message : String(error), place: "", mend: "", data: {} };
}

/** The inverse of `errorToJson`: same class, message, place, mend and data; what a broken sender left out is empty. */
export function errorFromJson(json: { readonly [key: string]: Json }): TouchstoneError {
  const code = String(json.code);
  const Class = Object.hasOwn(byCode, code) ? byCode[code as keyof typeof byCode] : TouchstoneError;
  const text = (value: Json | undefined): string => (typeof value === "string" ? value : "");
  const error = new Class({ place: text(json.place), cause: "", mend: text(json.mend), data: (json.data ?? {}) as { [key: string]: Json } });
  const framed = error.message;
  error.message = text(json.message);
  // The stack was written with the message of construction, and is what Node prints of an uncaught error.
  if (error.stack) error.stack = error.stack.replace(framed, () => error.message);
  return error;
}
