/** Who may ask a server: this machine, and from other addresses those who know its token. */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingMessage, Server } from "node:http";
import { networkInterfaces } from "node:os";
import { ConfigError } from "./errors.js";

export const isLoopback = (host: string): boolean => host === "localhost" || host === "::1" || /^127\.\d+\.\d+\.\d+$/.test(host);

/** 192 random bits, fit for an address. */
export const newToken = (): string => randomBytes(24).toString("base64url");

/** Compares in a time that does not tell how much was right. */
export function sameSecret(a: string, b: string): boolean {
  const hash = (text: string): Buffer => createHash("sha256").update(text).digest();
  return timingSafeEqual(hash(a), hash(b));
}

/** Throws ConfigError for an address that others can reach where no token keeps them out. */
export function refuseOpen(host: string, token: string | undefined): void {
  if (isLoopback(host) || token !== undefined) return;
  throw new ConfigError({
    place: "option --host",
    cause: `others can reach ${host}, and no token keeps them out`,
    mend: "give --token too, or leave --host out",
  });
}

const mostPort = 65_535;

/** Begins to listen. Throws ConfigError, naming `what`, where it cannot. */
export async function listenAt(server: Server, port: number, host: string, what: string): Promise<void> {
  if (port > mostPort) throw new ConfigError({ place: "option --port", cause: `it is ${port}`, mend: `give a number from 0 to ${mostPort}` });
  return new Promise((done, fail) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      const mend = error.code === "EADDRINUSE" ? "give another with --port, or leave it out" : "give an address of this machine";
      fail(new ConfigError({ place: `${host}:${port}`, cause: `${what} cannot listen there (${error.code})`, mend }, { cause: error }));
    });
    server.listen(port, host, () => done());
  });
}

/** Whether a request was sent to this machine by a name of its own: another site can let its name point here (DNS rebinding). */
export const isOwnName = (request: IncomingMessage): boolean => isLoopback(hostOf(request));

/** The host that a request names; empty where it names none. */
export function hostOf({ headers: { host = "" } }: IncomingMessage): string {
  try {
    return new URL(`http://${host}`).hostname.replace(/^\[|\]$/g, "");
  } catch {
    return "";
  }
}

/** The token that a request bears. */
export const bearerOf = (request: IncomingMessage): string | undefined => /^Bearer (.+)$/i.exec(request.headers.authorization ?? "")?.[1];

/** An address as it is typed into a browser or a program: of "all of this machine" the first that other machines can reach. */
export function addressText(host: string, port: number): string {
  const every = host === "0.0.0.0" || host === "::";
  const outward = Object.values(networkInterfaces())
    .flatMap((each) => each ?? [])
    .find(({ internal, family }) => !internal && family === "IPv4");
  const named = every ? (outward?.address ?? "127.0.0.1") : host;
  return `http://${named.includes(":") ? `[${named}]` : named}:${port}`;
}
