/** What is needed to ask an OpenAI-compatible server. */
import { ConfigError } from "../../core/errors.js";
import { Http } from "../../core/http.js";
import { Patient } from "../../core/patient.js";
import type { Tokenizer } from "../../core/tokenizer.js";

export interface OpenaiSettings {
  /** Below which the interface lies, with its version: `http://127.0.0.1:8000/v1`. */
  readonly baseUrl: string;
  /** How the server calls the model. */
  readonly served: string;
  /** Sent as `Authorization: Bearer`; nowhere written or printed. */
  readonly key?: string;
  /** Requests under way at once. Default 32. */
  readonly concurrency?: number;
  /** Of one try of a request, in milliseconds. Default 600,000. */
  readonly deadlineMs?: number;
  /** Further tries where a fault may pass. Default 5. */
  readonly retries?: number;
  /** The longest wait that the server may ask for, in milliseconds. Default 60,000. */
  readonly longestWaitMs?: number;
}

/** What the engine knows of the model by its files here. */
export interface LocalModel {
  readonly tokenizer: Pick<Tokenizer, "size" | "eosIds" | "bosId" | "raw" | "decode">;
  /** Rows of the output layer; default: the tokenizer's size. */
  readonly vocabulary?: number;
  /** Of context and response together; the server's own limit, where it tells one, holds too. */
  readonly maxTokens?: number;
}

/** A way to a server. Throws ConfigError, naming `place`, for an address that is none. */
export function patientTo(
  { baseUrl, key, concurrency = 32, deadlineMs = 600_000, retries = 5, longestWaitMs }: OpenaiSettings,
  place: string,
): { http: Http; calls: Patient } {
  const http = new Http(baseUrl, { place, ...(key !== undefined && { headers: { authorization: `Bearer ${key}` } }) });
  return { http, calls: new Patient(http, { concurrency, deadlineMs, retries, ...(longestWaitMs !== undefined && { longestWaitMs }) }) };
}

/** The key that an environment variable holds; undefined where none is named. Throws ConfigError where it is not there. */
export function keyFrom(variable: string | undefined, place: string, env: NodeJS.ProcessEnv = process.env): string | undefined {
  if (variable === undefined) return undefined;
  const key = env[variable]?.trim();
  if (key) return key;
  throw new ConfigError({ place, cause: `there is no environment variable ${variable}`, mend: "set it to the server's key, or leave the option out" });
}
