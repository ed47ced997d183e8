/** Who may read the view: this machine, and from other addresses those who know the token. */
import type { IncomingMessage } from "node:http";
import { bearerOf, hostOf, isOwnName, sameSecret } from "../core/access.js";

export interface Access {
  /** Of another address than this machine's own. */
  readonly token?: string;
}

const cookie = "touchstone_view";

export type Judged =
  | { readonly allowed: true }
  | { readonly allowed: false; readonly code: 401 | 403; readonly why: string }
  | { readonly allowed: "once"; readonly cookie: string };

/** Judges a request. `once`: the token stands in the address, and belongs into a cookie from now on, where no history or log keeps it. */
export function judge(request: IncomingMessage, url: URL, { token }: Access): Judged {
  if (token === undefined) {
    if (!isOwnName(request)) return { allowed: false, code: 403, why: `this view answers to 127.0.0.1 and localhost, not to ${hostOf(request) || "no name"}` };
    return { allowed: true };
  }
  const given = url.searchParams.get("token");
  if (given !== null && sameSecret(given, token)) return { allowed: "once", cookie: `${cookie}=${token}; HttpOnly; SameSite=Strict; Path=/` };
  const kept = (request.headers.cookie ?? "")
    .split(";")
    .map((part) => part.trim())
    .find((part) => part.startsWith(`${cookie}=`))
    ?.slice(cookie.length + 1);
  if ([bearerOf(request), kept].some((each) => each !== undefined && sameSecret(each, token))) return { allowed: true };
  return { allowed: false, code: 401, why: "this view wants its token: open the address that touchstone view printed" };
}
