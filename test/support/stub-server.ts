/** A real server that answers as a test says, misbehaving on request. */
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";

export interface StubRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** Of the requests to this server, from 0. */
  readonly number: number;
}

/** `drop` cuts the connection before an answer, `silence` never answers, `half` cuts it within the body; pieces are sent one by one. */
export type StubReply =
  | "drop"
  | "silence"
  | { readonly half: string }
  | {
      readonly status?: number;
      readonly headers?: { readonly [name: string]: string };
      readonly body?: unknown;
      readonly pieces?: readonly string[];
      readonly afterMs?: number;
    };

export interface StubServer {
  readonly url: string;
  readonly requests: readonly StubRequest[];
  /** The most requests that were open at one time. */
  readonly most: number;
  close(): Promise<void>;
}

export async function stubServer(reply: (request: StubRequest) => StubReply | Promise<StubReply>): Promise<StubServer> {
  const requests: StubRequest[] = [];
  let open = 0;
  let most = 0;
  const server = createServer(async (request, response) => {
    open++;
    most = Math.max(most, open);
    response.once("close", () => open--);
    let body = "";
    for await (const piece of request) body += piece;
    const own = { method: request.method ?? "", path: request.url ?? "", headers: request.headers, body, number: requests.length };
    requests.push(own);
    const given = await reply(own);
    if (given === "silence") return;
    if (given === "drop") return void request.socket.destroy();
    if ("half" in given) {
      response.writeHead(200, { "content-type": "application/json", "content-length": given.half.length * 2 });
      response.write(given.half, () => request.socket.destroy());
      return;
    }
    const { status = 200, headers, body: content = {}, pieces, afterMs = 0 } = given;
    if (afterMs > 0) await new Promise((resolve) => setTimeout(resolve, afterMs));
    response.writeHead(status, { "content-type": pieces ? "text/event-stream" : "application/json", ...headers });
    for (const piece of pieces ?? []) await new Promise((resolve) => response.write(piece, resolve));
    response.end(pieces ? undefined : typeof content === "string" ? content : JSON.stringify(content));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    get most() {
      return most;
    },
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
