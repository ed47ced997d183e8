/**
 * The server of `touchstone serve`: routes with JSON in and JSON or a stream out, for those who may ask, within limits of
 * bytes and time. What one request does, the others do not feel; at the end those that are under way are finished.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { addressText, bearerOf, hostOf, isOwnName, listenAt, refuseOpen, sameSecret } from "../core/access.js";
import { TouchstoneError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import { type BodyLimits, Budget, readBody } from "./body.js";
import { errorBody, Refusal } from "./refusal.js";

/** A request that may be answered. */
export interface Asked {
  /** Of a POST; null of a GET. */
  readonly body: Json;
  readonly query: URLSearchParams;
  /** Aborted when the client is gone, the time is up, or the server is closed for good. */
  readonly signal: AbortSignal;
  /** For answers that stream. */
  readonly response: ServerResponse;
}

export interface Route {
  readonly method: "GET" | "POST";
  readonly path: string;
  /** The answer as JSON; undefined where it was streamed. Throws Refusal or TouchstoneError. */
  readonly answer: (asked: Asked) => Promise<object | undefined>;
  /** Milliseconds until the answer is whole. */
  readonly deadlineMs: number;
}

export interface ServeOptions {
  readonly routes: readonly Route[];
  /** Default 127.0.0.1. Another address than this machine's own needs a token. */
  readonly host?: string;
  /** 0: any that is free. */
  readonly port: number;
  readonly token?: string;
  /** Of one body. Default 8 MiB. */
  readonly mostBytes?: number;
  /** Until a request is there whole. Default 30,000. */
  readonly readMs?: number;
  /** What those under way are given at the end. Default 10,000. */
  readonly drainMs?: number;
}

export interface Served {
  readonly address: string;
  /** Requests under way. */
  readonly open: number;
  /** Takes nothing new, finishes what is under way, and ends. */
  close(): Promise<void>;
}

/** Of all bodies together. */
const budgetBytes = 256 * 2 ** 20;
const mostConnections = 2048;
/** Connections that stand still are kept longer than clients keep theirs: one that is closed as a request comes fails that request. */
const idleMs = 65_000;

const headers = { "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store" };

/** Starts it. Throws ConfigError for an address that is in use, or open to others without a token. */
export async function serve(options: ServeOptions): Promise<Served> {
  const { host = "127.0.0.1", port, token, drainMs = 10_000, readMs = 30_000 } = options;
  refuseOpen(host, token);
  const running = new Running(options);
  const server = createServer(
    { keepAliveTimeout: idleMs, requestTimeout: readMs, headersTimeout: Math.min(10_000, readMs), connectionsCheckingInterval: 500 },
    (request, response) => {
      void running.take(request, response);
    },
  );
  server.maxConnections = mostConnections;
  await listenAt(server, port, host, "touchstone serve");
  return {
    address: addressText(host, (server.address() as AddressInfo).port),
    get open() {
      return running.count;
    },
    close: () => end(server, running, drainMs),
  };
}

async function end(server: Server, running: Running, drainMs: number): Promise<void> {
  running.ending = true;
  const closed = new Promise<void>((done) => server.close(() => done()));
  server.closeIdleConnections();
  await running.drained(drainMs);
  running.abort(new Refusal(503, "the server was ended"));
  // Those that are told of it send their last words first.
  await running.drained(500);
  server.closeAllConnections();
  await closed;
}

class Running {
  ending = false;
  count = 0;
  private readonly asked = new Set<AbortController>();
  private readonly limits: BodyLimits;
  private wake: (() => void) | undefined;

  constructor(private readonly options: ServeOptions) {
    this.limits = { mostBytes: options.mostBytes ?? 8 * 2 ** 20, budget: new Budget(budgetBytes) };
  }

  abort(reason: Refusal): void {
    for (const each of this.asked) each.abort(reason);
  }

  /** Resolves when nothing is under way, or after so long. */
  async drained(ms: number): Promise<void> {
    if (this.count === 0) return;
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((done) => {
      this.wake = done;
      timer = setTimeout(done, ms);
    });
    clearTimeout(timer);
  }

  async take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.count++;
    // A client that breaks off is no fault of ours.
    request.on("error", () => undefined);
    response.on("error", () => undefined);
    try {
      await this.respond(request, response);
    } catch (error) {
      fail(response, error);
    } finally {
      this.count--;
      if (this.count === 0) this.wake?.();
    }
  }

  private async respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (this.ending) throw new Refusal(503, "the server is ending", { headers: { Connection: "close", "Retry-After": "5" } });
    const url = new URL(request.url ?? "/", "http://serve");
    this.refuseStrangers(request, url);
    const here = this.options.routes.filter(({ path }) => path === url.pathname.replace(/(.)\/$/, "$1"));
    if (here.length === 0)
      throw new Refusal(404, `there is nothing at ${url.pathname}; there is ${this.options.routes.map(({ method, path }) => `${method} ${path}`).join(", ")}`);
    const route = here.find(({ method }) => method === request.method);
    if (route === undefined)
      throw new Refusal(405, `${url.pathname} takes ${here.map(({ method }) => method).join(", ")}`, {
        headers: { Allow: here.map(({ method }) => method).join(", ") },
      });
    const read = route.method === "POST" ? await readBody(request, this.limits) : { value: null, bytes: 0 };
    const gone = new AbortController();
    const leave = (): void => gone.abort(new Refusal(499, "the client went away"));
    response.once("close", leave);
    const late = setTimeout(() => gone.abort(new Refusal(504, `it took longer than ${route.deadlineMs} ms`)), route.deadlineMs);
    this.asked.add(gone);
    try {
      const answer = await route.answer({ body: read.value, query: url.searchParams, signal: gone.signal, response });
      response.off("close", leave);
      if (answer !== undefined) send(response, 200, answer);
    } finally {
      clearTimeout(late);
      this.asked.delete(gone);
      this.limits.budget.give(read.bytes);
    }
  }

  private refuseStrangers(request: IncomingMessage, url: URL): void {
    const { token } = this.options;
    if (token === undefined) {
      if (isOwnName(request)) return;
      throw new Refusal(403, `this server answers to 127.0.0.1 and localhost, not to ${hostOf(request) || "no name"}`);
    }
    // Some trainers can send no header: they get the token into the address.
    const given = [bearerOf(request), url.searchParams.get("token")];
    if (given.some((each) => typeof each === "string" && sameSecret(each, token))) return;
    throw new Refusal(401, "this server wants its token: send Authorization: Bearer TOKEN", {
      code: "invalid_api_key",
      headers: { "WWW-Authenticate": "Bearer" },
    });
  }
}

/** Sends an answer, unless the client is gone. */
function send(response: ServerResponse, status: number, body: object, more: { readonly [name: string]: string } = {}): void {
  if (response.headersSent || response.destroyed) return;
  const bytes = Buffer.from(JSON.stringify(body));
  response.writeHead(status, { ...headers, "Content-Type": "application/json", "Content-Length": bytes.length, ...more });
  response.end(bytes);
}

function fail(response: ServerResponse, error: unknown): void {
  const [status, message, more] = faultOf(error);
  if (response.headersSent) {
    // Of a stream: its reader is told in the stream.
    if (!response.writableEnded) response.end(`data: ${JSON.stringify(errorBody(status, message, more))}\n\n`);
    return;
  }
  send(response, status, errorBody(status, message, more), more.headers);
}

function faultOf(error: unknown): [number, string, Refusal["more"]] {
  if (error instanceof Refusal) return [error.status, error.message, error.more];
  if (error instanceof TouchstoneError)
    return [["config", "data", "argument", "capability", "memory", "model"].includes(error.code) ? 400 : 500, error.message, {}];
  if (error instanceof URIError || (error as NodeJS.ErrnoException | undefined)?.code === "ERR_INVALID_URL") return [400, "the address is none", {}];
  // What broke is for the one who runs the server.
  process.stderr.write(`touchstone serve: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  return [500, "the server failed at this request", {}];
}
