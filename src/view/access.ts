/** Who may read the view: this machine, and from other addresses those who know the token. */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";

export interface Access {
  /** Of another address than this machine's own. */
  readonly token?: string;
}

const cookie = "touchstone_view";

export const isLoopback = (host: string): boolean => host === "localhost" || host === "::1" || /^127\.\d+\.\d+\.\d+$/.test(host);

/** 192 random bits, fit for an address. */
export const newToken = (): string => randomBytes(24).toString("base64url");

export type Judged =
  | { readonly allowed: true }
  | { readonly allowed: false; readonly code: 401 | 403; readonly why: string }
  | { readonly allowed: "once"; readonly cookie: string };

/** Judges a request. `once`: the token stands in the address, and belongs into a cookie from now on, where no history or log keeps it. */
export function judge(request: IncomingMessage, url: URL, { token }: Access): Judged {
  // A name that another site lets point here (DNS rebinding) is no name of this server.
  const name = hostOf(request.headers.host);
  if (token === undefined) {
    if (!isLoopback(name)) return { allowed: false, code: 403, why: `this view answers to 127.0.0.1 and localhost, not to ${name || "no name"}` };
    return { allowed: true };
  }
  const given = url.searchParams.get("token");
  if (given !== null && same(given, token)) return { allowed: "once", cookie: `${cookie}=${token}; HttpOnly; SameSite=Strict; Path=/` };
  const bearer = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1];
  const kept = (request.headers.cookie ?? "")
    .split(";")
    .map((part) => part.trim())
    .find((part) => part.startsWith(`${cookie}=`))
    ?.slice(cookie.length + 1);
  if ([bearer, kept].some((each) => each !== undefined && same(each, token))) return { allowed: true };
  return { allowed: false, code: 401, why: "this view wants its token: open the address that touchstone view printed" };
}

function hostOf(header = ""): string {
  try {
    return new URL(`http://${header}`).hostname.replace(/^\[|\]$/g, "");
  } catch {
    return "";
  }
}

/** Compares in a time that does not tell how much was right. */
function same(a: string, b: string): boolean {
  const hash = (text: string): Buffer => createHash("sha256").update(text).digest();
  return timingSafeEqual(hash(a), hash(b));
}
