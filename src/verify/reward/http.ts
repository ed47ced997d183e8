/** A server that rewards batches: a POST with JSON, JSON back. */
import { Http } from "../../core/http.js";
import { readJson } from "../../core/json-text.js";
import { CallFault, Patient } from "../../core/patient.js";
import { BatchFault, resultsOf, type Transport } from "./batch.js";

export interface ServerOptions {
  readonly url: string;
  readonly headers: { readonly [name: string]: string };
  readonly lanes: number;
  readonly deadlineMs: number;
  /** Further tries after a fault that may pass: no connection, a time-out, status 408, 429 or 5xx. */
  readonly retries: number;
}

/** A transport to a server. Throws ConfigError, naming `place`, for an address that is none. */
export function serverTransport({ url, headers, lanes, deadlineMs, retries }: ServerOptions, place: string): Transport {
  const http = new Http(url, { headers, place });
  const calls = new Patient(http, { concurrency: lanes, deadlineMs, retries }, url);
  return {
    lanes,
    async send(items) {
      try {
        return await calls.call({ method: "POST", path: "", body: JSON.stringify({ items }) }, ({ body }) => {
          const { value, fault } = readJson(body.toString("utf8"));
          if (fault !== undefined) throw new BatchFault("malformed", `${url}: its answer is not JSON (${fault.cause})`, false);
          return resultsOf(value, items.length, url);
        });
      } catch (error) {
        if (error instanceof CallFault) throw batchFault(error);
        throw error;
      }
    },
    close: async () => http.close(),
  };
}

/** The fault of a call as that of the batch that was sent by it. */
export function batchFault({ reason, message }: CallFault): BatchFault {
  return new BatchFault(reason === "refused" || reason === "limited" ? "failed" : reason, message, false);
}
