/** A server that rewards batches: a POST with JSON, JSON back. */
import type { Json } from "../../core/json.js";
import { readJson } from "../../core/json-text.js";
import { BatchFault, resultsOf, type Transport } from "./batch.js";

export interface ServerOptions {
  readonly url: string;
  readonly headers: { readonly [name: string]: string };
  readonly lanes: number;
  readonly deadlineMs: number;
  /** Further tries after a fault that may pass: no connection, a time-out, status 408, 429 or 5xx. */
  readonly retries: number;
}

const firstPauseMs = 200;
const longestPauseMs = 5000;

/** A transport to a server. */
export function serverTransport({ url, headers, lanes, deadlineMs, retries }: ServerOptions): Transport {
  const post = async (body: string, count: number): Promise<readonly Json[]> => {
    let status: number;
    let text: string;
    try {
      const response = await fetch(url, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body,
        signal: AbortSignal.timeout(deadlineMs),
      });
      status = response.status;
      text = await response.text();
    } catch (error) {
      if (error instanceof Error && error.name === "TimeoutError") throw new BatchFault("timeout", `${url}: no answer within ${deadlineMs} ms`, false);
      const cause = error instanceof Error ? ((error.cause as NodeJS.ErrnoException | undefined)?.code ?? error.message) : String(error);
      throw new BatchFault("unreachable", `${url}: ${cause}`, false);
    }
    if (status < 200 || status > 299) throw new Refused(status, `${url}: status ${status}${said(text)}`);
    const { value, fault } = readJson(text);
    if (fault !== undefined) throw new BatchFault("malformed", `${url}: its answer is not JSON (${fault.cause})`, false);
    return resultsOf(value, count, url);
  };
  return {
    lanes,
    async send(items) {
      const body = JSON.stringify({ items });
      for (let attempt = 0; ; attempt++) {
        try {
          return await post(body, items.length);
        } catch (error) {
          if (attempt >= retries || !passing(error)) throw error;
          await new Promise((resolve) => setTimeout(resolve, Math.min(longestPauseMs, firstPauseMs * 2 ** attempt)));
        }
      }
    },
    close: async () => undefined,
  };
}

class Refused extends BatchFault {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super("failed", message, false);
  }
}

function passing(error: unknown): boolean {
  if (error instanceof Refused) return error.status >= 500 || error.status === 408 || error.status === 429;
  return error instanceof BatchFault && (error.reason === "unreachable" || error.reason === "timeout");
}

function said(text: string): string {
  const line = text.trim().split("\n")[0] ?? "";
  return line === "" ? "" : ` (${line.slice(0, 200)})`;
}
