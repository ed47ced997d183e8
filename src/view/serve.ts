/** The view's server: the page, what it asks for, and news of runs that go on. Reads run folders and writes nothing. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { addressText, listenAt, refuseOpen } from "../core/access.js";
import { TouchstoneError } from "../core/errors.js";
import { type Access, judge } from "./access.js";
import { type Answers, answer, filterOf } from "./answers.js";
import { News } from "./news.js";
import { type Page, readPage } from "./page.js";

export interface ServeOptions {
  readonly answers: Answers;
  /** 0: any that is free. */
  readonly port: number;
  /** Default 127.0.0.1. Another address than this machine's own needs a token. */
  readonly host?: string;
  readonly token?: string;
  /** Folder of the built page, where it is another one than the package's. */
  readonly page?: string;
  /** Milliseconds between looks at the runs while a page is open. Default 1000. */
  readonly everyMs?: number;
}

export interface Served {
  /** What to open; with the token where there is one. */
  readonly address: string;
  close(): Promise<void>;
}

/** Nothing from elsewhere, no code but the page's own, in no other page's frame. */
export const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

const headers = {
  "Content-Security-Policy": policy,
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cache-Control": "no-store",
};

/** Bytes from which on an answer is worth packing. */
const packed = 16_384;

/** Starts it. Throws ConfigError for an address that is in use, or open to others without a token. */
export async function serve(options: ServeOptions): Promise<Served> {
  const { answers, port, host = "127.0.0.1", token } = options;
  refuseOpen(host, token);
  const page = readPage(options.page);
  const news = new News(() => answers.runs(), options.everyMs);
  const access: Access = token === undefined ? {} : { token };
  const server = createServer((request, response) => {
    respond({ answers, page, news, access }, request, response).catch((error: unknown) => fail(response, error));
  });
  await listenAt(server, port, host, "the view");
  const { port: bound } = server.address() as AddressInfo;
  return {
    address: `${addressText(host, bound)}/${token === undefined ? "" : `?token=${token}`}`,
    close: async () => {
      news.close();
      server.closeAllConnections();
      await new Promise<void>((done) => server.close(() => done()));
    },
  };
}

interface Parts {
  readonly answers: Answers;
  readonly page: Page;
  readonly news: News;
  readonly access: Access;
}

async function respond({ answers, page, news, access }: Parts, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(request.url ?? "/", "http://view");
  const judged = judge(request, url, access);
  if (judged.allowed === false) return send(request, response, judged.code, "text/plain", `${judged.why}\n`);
  if (request.method !== "GET" && request.method !== "HEAD") return send(request, response, 405, "text/plain", "the view only reads\n");
  if (judged.allowed === "once") {
    url.searchParams.delete("token");
    response.writeHead(303, { ...headers, "Set-Cookie": judged.cookie, Location: `${url.pathname}${url.search}` });
    response.end();
    return;
  }
  const { pathname } = url;
  if (pathname === "/") return send(request, response, 200, "text/html", page.document);
  if (pathname === "/app.js") return send(request, response, 200, "text/javascript", page.script);
  if (pathname === "/app.css") return send(request, response, 200, "text/css", page.style);
  if (!pathname.startsWith("/api/")) return send(request, response, 404, "text/plain", "there is no such page\n");
  const path = pathname.slice("/api/".length);
  if (path === "live") return news.add(response, headers);
  const searched = /^runs\/([^/]+)\/search$/.exec(path);
  if (searched) return stream(answers, decodeURIComponent(searched[1]), url, response);
  const value = await answer(answers, path, url.searchParams);
  if (value === undefined) return send(request, response, 404, "application/json", JSON.stringify({ error: "there is no such answer" }));
  send(request, response, 200, "application/json", JSON.stringify(value));
}

/** A search's lines as they come; the page that goes away ends it. */
async function stream(answers: Answers, id: string, url: URL, response: ServerResponse): Promise<void> {
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  const lines = answers.search(id, filterOf(url.searchParams), gone.signal);
  response.writeHead(200, { ...headers, "Content-Type": "application/x-ndjson" });
  try {
    for await (const line of lines) {
      if (!response.write(`${JSON.stringify(line)}\n`)) await new Promise<void>((go) => response.once("drain", go).once("close", go));
    }
  } catch (error) {
    response.write(`${JSON.stringify({ fault: wordsOf(error), done: 0, total: 0, end: "all" })}\n`);
  }
  response.end();
}

function send(request: IncomingMessage, response: ServerResponse, code: number, type: string, text: string): void {
  const pack = text.length >= packed && /\bgzip\b/.test(String(request.headers["accept-encoding"] ?? ""));
  const body = pack ? gzipSync(text, { level: 1 }) : Buffer.from(text);
  response.writeHead(code, {
    ...headers,
    "Content-Type": `${type}; charset=utf-8`,
    "Content-Length": body.length,
    ...(pack && { "Content-Encoding": "gzip" }),
  });
  response.end(request.method === "HEAD" ? undefined : body);
}

const wordsOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

function fail(response: ServerResponse, error: unknown): void {
  if (response.headersSent) {
    response.end();
    return;
  }
  const known = error instanceof TouchstoneError || error instanceof URIError;
  response.writeHead(known ? 400 : 500, { ...headers, "Content-Type": "application/json; charset=utf-8" });
  response.end(JSON.stringify({ error: wordsOf(error) }));
}
