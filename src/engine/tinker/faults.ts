/** What can go wrong between this side and a server, in kinds that the engine reacts to, each with its sentence. */
import { type DivergenceError, EngineError, type ErrorParts } from "../../core/errors.js";
import type { Answer } from "../../core/http.js";
import type { Json } from "../../core/json.js";

/**
 * `ambiguous`: a request that must not be applied twice may have been applied; `model-lost`: the server has no such model
 * (any more); `gone`: a result is not kept any more; `unreadable`: the server cannot tell a result; `late`: the deadline;
 * `away`: nobody answers; `taken`: a name or number is in use; `failed`: the server says that the operation failed; `refused`: it says that the request is wrong.
 */
export type FaultKind = "ambiguous" | "model-lost" | "gone" | "unreadable" | "late" | "away" | "taken" | "failed" | "refused";

/** An error of the server's side, or on the way to it. */
export class ServerFault extends EngineError {
  constructor(
    readonly kind: FaultKind,
    parts: ErrorParts,
  ) {
    super({ ...parts, data: { ...parts.data, kind } });
  }
}

export const isFault = (error: unknown, ...kinds: readonly FaultKind[]): error is ServerFault => error instanceof ServerFault && kinds.includes(error.kind);

/** What a failed answer says, in one line: FastAPI's detail as a text or as a list of places and messages, an error's text, else the body. */
export function detailOf({ body, status }: Pick<Answer, "body" | "status">): string {
  const text = body.toString("utf8").slice(0, 4_000);
  const line = (value: string): string => value.replace(/\s+/g, " ").trim().slice(0, 300);
  try {
    const json = JSON.parse(text) as { detail?: Json; error?: Json } | null;
    const detail = json?.detail ?? json?.error;
    if (Array.isArray(detail)) return line(detail.map(problemOf).join("; "));
    if (typeof detail === "string") return line(detail);
    if (detail !== undefined) return line(JSON.stringify(detail));
  } catch {
    // A plain text, which is told as it is.
  }
  return line(text) || `status ${status} without a word`;
}

function problemOf(each: Json): string {
  const { loc, msg } = (each ?? {}) as { loc?: Json; msg?: Json };
  return `${Array.isArray(loc) ? loc.filter((part) => part !== "body").join(".") : "request"}: ${typeof msg === "string" ? msg : "wrong"}`;
}

/** What an answer that is no 200 means for the request it belongs to. */
export type Meaning =
  | { readonly do: "again"; readonly afterMs?: number; readonly why: string /** The request may have been applied. */; readonly applied: boolean }
  | { readonly do: "stop"; readonly kind: FaultKind };

const modelLost = /model[^.]*not (?:loaded|found)|not loaded|no such model|session not found/i;

/** Of a submit or a plain call. */
export function meaningOf(answer: Answer): Meaning {
  const { status } = answer;
  const detail = detailOf(answer);
  const afterMs = retryAfter(answer);
  const again = (why: string, applied: boolean): Meaning => ({ do: "again", why, applied, ...(afterMs === undefined ? {} : { afterMs }) });
  if (status === 402) return again("the account has no credit (402); the run goes on once it has", false);
  if (status === 408 || status === 425 || status === 429) return again(`${status}: ${detail}`, false);
  if (status >= 500) return again(`${status}: ${detail}`, true);
  if ((status === 400 || status === 404) && modelLost.test(detail)) return { do: "stop", kind: "model-lost" };
  if (status === 409) return { do: "stop", kind: "taken" };
  if (status === 410) return { do: "stop", kind: "gone" };
  return { do: "stop", kind: "refused" };
}

function retryAfter({ headers }: Answer): number | undefined {
  const seconds = Number(headers["retry-after"]);
  return Number.isFinite(seconds) && seconds >= 0 ? Math.min(60, seconds) * 1000 : undefined;
}

/** The error for an answer that ends its request. */
export function faultOf(kind: FaultKind, answer: Answer, place: string, what: string): ServerFault {
  const { status } = answer;
  const mend =
    status === 401 || status === 403
      ? "set TINKER_API_KEY to a key of this server"
      : kind === "model-lost"
        ? "resume the run: its model is loaded from the last checkpoint"
        : status === 404
          ? "give the address of a server of the Tinker protocol: touchstone doctor --engine tinker --base-url …"
          : "run touchstone doctor --engine tinker --base-url … to see what this server can do";
  return new ServerFault(kind, { place, cause: `${what} was answered with ${status}: ${detailOf(answer)}`, mend, data: { status } });
}

/** The error for a request that got no answer in time. */
export function lateFault(place: string, what: string, ms: number, last: string | undefined): ServerFault {
  return new ServerFault("late", {
    place,
    cause: `${what} was not done within ${Math.round(ms / 1000)} s${last === undefined ? "" : ` (last: ${last})`}`,
    mend: "raise engine.deadline_s, or see what the server is doing",
  });
}

/** Errors that tell of numbers, and not of a server: never answered by trying again. */
export type NumberFault = DivergenceError;
