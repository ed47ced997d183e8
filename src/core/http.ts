/**
 * One request and its answer, over Node's own client: a deadline for the whole exchange, and a fault that says whether the
 * request can have reached the server. Nothing is repeated here but a request that went into a connection which the server
 * had closed meanwhile. Redirects are not followed, so that a key goes nowhere else.
 */
import { Agent, type ClientRequest, request as httpRequest, type IncomingMessage, type RequestOptions } from "node:http";
import { request as httpsRequest, Agent as SecureAgent } from "node:https";
import { ConfigError } from "./errors.js";

export interface Answer {
  readonly status: number;
  /** Without parameters, in lower case; empty where none was sent. */
  readonly type: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
}

export interface Call {
  readonly method: "GET" | "POST" | "DELETE";
  /** Below the base, such as `/api/v1/healthz`; empty: the base itself; or a whole address, which is sent none of the base's headers. */
  readonly path: string;
  readonly body?: Uint8Array | string;
  readonly type?: string;
  readonly deadlineMs: number;
  /** A connection of its own: a fault then never is that of an old connection. */
  readonly fresh?: boolean;
  readonly signal?: AbortSignal;
  /** Told the body of an answer of status 200 piece by piece as it comes; `body` then is empty. */
  readonly onPiece?: (piece: Buffer) => void;
}

export interface HttpOptions {
  /** Sent with every request to the base, such as a key. Never part of a message. */
  readonly headers?: { readonly [name: string]: string };
  /** Where the address was written, for errors. */
  readonly place?: string;
}

/** No whole answer came. */
export class LostAnswer extends Error {
  constructor(
    cause: string,
    /** The request can have reached the server. */
    readonly sent: boolean,
    /** The time was up. */
    readonly late: boolean,
  ) {
    super(cause);
  }
}

/** Servers close connections that were idle for 5 seconds; ours are closed before. */
const idleMs = 4_000;
const sockets = 256;
/** A larger answer is none of these protocols'. */
const mostBytes = 2 ** 30;

export class Http {
  readonly base: URL;
  private readonly headers: { readonly [name: string]: string };
  private agent: Agent;

  /** Throws ConfigError for an address that is none, or holds a password. */
  constructor(base: string, { headers = {}, place = "base_url" }: HttpOptions = {}) {
    this.base = addressOf(base, place);
    this.headers = headers;
    this.agent = this.newAgent();
  }

  /** What stands in messages: the address without parameters. */
  get place(): string {
    return `server at ${this.base.origin}${this.base.pathname.replace(/\/$/, "")}`;
  }

  /** Throws LostAnswer, or the signal's reason. */
  async send(call: Call): Promise<Answer> {
    try {
      return await this.once(call, call.fresh === true);
    } catch (error) {
      if (!(error instanceof OldConnection)) throw error;
      return this.once(call, true);
    }
  }

  /** Closes idle connections: after a 500 servers drop theirs without a word. */
  dropConnections(): void {
    this.agent.destroy();
    this.agent = this.newAgent();
  }

  close(): void {
    this.agent.destroy();
  }

  private newAgent(): Agent {
    const options = { keepAlive: true, maxSockets: sockets, timeout: idleMs };
    return this.base.protocol === "https:" ? new SecureAgent(options) : new Agent(options);
  }

  private urlOf(path: string): URL {
    if (/^https?:/.test(path)) return new URL(path);
    return path === "" ? this.base : new URL(this.base.origin + this.base.pathname.replace(/\/$/, "") + path);
  }

  private once({ method, path, body, type, deadlineMs, signal, onPiece }: Call, fresh: boolean): Promise<Answer> {
    const url = this.urlOf(path);
    const own = url.origin === this.base.origin;
    const bytes = body === undefined ? undefined : typeof body === "string" ? Buffer.from(body) : body;
    const options: RequestOptions = {
      method,
      agent: fresh || !own ? false : this.agent,
      headers: {
        ...(bytes === undefined ? {} : { "content-type": type ?? "application/json", "content-length": bytes.byteLength }),
        ...(own ? this.headers : {}),
      },
    };
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const request: ClientRequest = (url.protocol === "https:" ? httpsRequest : httpRequest)(url, options);
      let sent = false;
      let answered = false;
      const settle = (act: () => void): void => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", aborted);
        act();
      };
      const fail = (cause: string, late = false): void => {
        settle(() => reject(!answered && !late && request.reusedSocket ? new OldConnection(cause, sent, false) : new LostAnswer(cause, sent, late)));
        request.destroy();
      };
      const aborted = (): void => {
        settle(() => reject(signal?.reason as Error));
        request.destroy();
      };
      const timer = setTimeout(() => fail(`no answer within ${deadlineMs} ms`, true), deadlineMs);
      signal?.addEventListener("abort", aborted, { once: true });
      request.on("socket", (socket) => {
        if (!socket.connecting) sent = true;
        else socket.once(url.protocol === "https:" ? "secureConnect" : "connect", () => (sent = true));
      });
      request.on("error", (error: NodeJS.ErrnoException) => fail(error.code ?? error.message));
      // An idle time that an agent set belongs to idle connections alone.
      request.on("timeout", () => undefined);
      request.on("response", (response) => {
        answered = true;
        const { statusCode: status = 0, headers } = response;
        const told = status === 200 ? onPiece : undefined;
        const pieces: Buffer[] = [];
        let size = 0;
        response.on("data", (piece: Buffer) => {
          size += piece.length;
          if (size > mostBytes) return fail(`the answer is larger than ${mostBytes / 2 ** 20} MB`);
          if (told === undefined) pieces.push(piece);
          else told(piece);
        });
        response.on("error", (error: NodeJS.ErrnoException) => fail(`the answer broke off (${error.code ?? error.message})`));
        response.on("end", () => {
          if (!response.complete) return fail("the answer broke off");
          const kind = (headers["content-type"] ?? "").split(";")[0] as string;
          settle(() =>
            resolve({ status, type: kind.trim().toLowerCase(), headers, body: pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces) }),
          );
        });
      });
      request.end(bytes);
    });
  }
}

/** The server had closed a connection that was kept. */
class OldConnection extends LostAnswer {}

function addressOf(text: string, place: string): URL {
  const refuse = (cause: string): never => {
    throw new ConfigError({ place, cause, mend: "give the server's address, such as http://127.0.0.1:8000" });
  };
  if (!URL.canParse(text)) return refuse(`${JSON.stringify(text)} is no address`);
  const url = new URL(text);
  if (url.protocol !== "http:" && url.protocol !== "https:") refuse(`it begins with ${url.protocol}`);
  if (url.username !== "" || url.password !== "") refuse("it holds a name or password, which would be written down with it");
  url.hash = "";
  return url;
}
