/**
 * Bodies of requests, within limits that hold before anything is built of them: bytes of one and of all together, depth, and
 * number of values, since parsing many small values takes the time of everybody.
 */
import type { IncomingMessage } from "node:http";
import type { Json } from "../core/json.js";
import { deepest } from "../core/json-text.js";
import { Refusal } from "./refusal.js";

export interface BodyLimits {
  /** Of one body. */
  readonly mostBytes: number;
  /** Of all bodies that are being read or answered. */
  readonly budget: Budget;
}

/** Commas, colons and brackets of a body: 150,000 take some 50 ms. */
const mostMarks = 150_000;

/** Bytes that are taken and given back. */
export class Budget {
  private taken = 0;

  constructor(private readonly most: number) {}

  take(bytes: number): boolean {
    if (this.taken + bytes > this.most) return false;
    this.taken += bytes;
    return true;
  }

  give(bytes: number): void {
    this.taken -= bytes;
  }
}

/** The JSON of a request, and its bytes, which the caller gives back to the budget. Throws Refusal, and has given them back then. */
export async function readBody(request: IncomingMessage, { mostBytes, budget }: BodyLimits): Promise<{ readonly value: Json; readonly bytes: number }> {
  const type = (request.headers["content-type"] ?? "").split(";")[0]?.trim().toLowerCase();
  // A page of another site cannot send this type without asking first, and it is never told yes.
  if (type !== "application/json") throw new Refusal(415, "the body must be JSON: send Content-Type: application/json");
  if (request.headers["content-encoding"] !== undefined) throw new Refusal(415, "the body must not be packed: leave Content-Encoding out");
  const tooLarge = (): Refusal =>
    new Refusal(413, `the body is larger than ${mostBytes} bytes: send fewer answers at a time`, { headers: { Connection: "close" } });
  if (Number(request.headers["content-length"] ?? 0) > mostBytes) throw tooLarge();
  let bytes = 0;
  try {
    const pieces = await new Promise<Buffer[]>((resolve, reject) => {
      const all: Buffer[] = [];
      const refuse = (refusal: Refusal): void => {
        // What still comes is read and forgotten, so that the answer can be read at the other end.
        request.removeAllListeners("data").resume();
        reject(refusal);
      };
      request.on("data", (piece: Buffer) => {
        if (bytes + piece.length > mostBytes) return refuse(tooLarge());
        if (!budget.take(piece.length))
          return refuse(new Refusal(503, "too much is being read at the moment", { headers: { "Retry-After": "1", Connection: "close" } }));
        bytes += piece.length;
        all.push(piece);
      });
      request.once("end", () => resolve(all));
      request.once("close", () => reject(new Refusal(400, "the body broke off")));
    });
    return { value: parsed(Buffer.concat(pieces)), bytes };
  } catch (error) {
    budget.give(bytes);
    throw error;
  }
}

function parsed(body: Buffer): Json {
  const { depth, marks } = shapeOf(body);
  if (depth > deepest) throw new Refusal(400, `the body is nested more than ${deepest} deep`);
  if (marks > mostMarks) throw new Refusal(413, "the body has too many values: send fewer answers at a time");
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(body);
  } catch {
    throw new Refusal(400, "the body is not UTF-8");
  }
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch (error) {
    throw new Refusal(400, `the body is not JSON: ${(error as Error).message.slice(0, 200)}`);
  }
  // What only looks so, in a text say, is looked at once more, and passes.
  if (hugeNumber.test(text) && !allFinite(value)) throw new Refusal(400, "the body has a number that is too large");
  return value;
}

/** How a number is written that JSON.parse makes Infinity of. */
const hugeNumber = /e\+?\d{3}|\d{250}/i;

function allFinite(value: Json): boolean {
  if (typeof value === "number") return Number.isFinite(value);
  return typeof value !== "object" || value === null || Object.values(value).every(allFinite);
}

const [quote, backslash, comma, colon] = [0x22, 0x5c, 0x2c, 0x3a];
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d];

/** How deep a text of JSON goes and how many marks it has outside of strings. A text that is no JSON gets some numbers too. */
function shapeOf(body: Buffer): { readonly depth: number; readonly marks: number } {
  let [depth, deep, marks] = [0, 0, 0];
  for (let at = 0; at < body.length; at++) {
    const byte = body[at];
    if (byte === quote) {
      for (at++; at < body.length && body[at] !== quote; at++) if (body[at] === backslash) at++;
    } else if (byte === openList || byte === openObject) {
      marks++;
      deep = Math.max(deep, ++depth);
    } else if (byte === closeList || byte === closeObject) depth--;
    else if (byte === comma || byte === colon) marks++;
  }
  return { depth: deep, marks };
}
