import { createHash } from "node:crypto";

/** What JSON can carry: everything that a run writes, a note holds or a cell keeps is of this type. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** JSON with object keys in sorted order, so that equal values have equal text (and equal hashes). Throws on NaN and infinities, which JSON would turn into null. */
export function canonicalJson(value: Json): string {
  if (value === null || typeof value === "boolean" || typeof value === "string") return JSON.stringify(value);
  if (typeof value === "number") {
    if (!Number.isFinite(value)) throw new RangeError(`JSON cannot carry the number ${value}; store it as a string or leave it out`);
    return JSON.stringify(value);
  }
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  const object = value as { readonly [key: string]: Json };
  const parts = Object.keys(object)
    .filter((key) => object[key] !== undefined)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(object[key] as Json)}`);
  return `{${parts.join(",")}}`;
}

/** SHA-256 of a text or of bytes, in hexadecimal. */
export function sha256(data: string | Uint8Array): string {
  return createHash("sha256").update(data).digest("hex");
}

/** SHA-256 of the canonical JSON of a value: the identity of a configuration, a problem or a policy of a verifier. */
export function hashJson(value: Json): string {
  return sha256(canonicalJson(value));
}
