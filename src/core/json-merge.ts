/** Two changes of one JSON value that were made apart, as one. */
import { canonicalJson, type Json } from "./json.js";

type Maybe = Json | undefined;

/**
 * What `base` becomes where it was changed to `ours` and, apart from that, to `theirs`: keys of objects, at any depth, go by
 * themselves. `conflict` is told of a place that both changed and throws, also where both made it the same: of two who count
 * on from 1 to 2, one would be lost. Arrays are one place.
 */
export function mergeJson(base: Maybe, ours: Maybe, theirs: Maybe, conflict: (path: readonly string[]) => never, path: readonly string[] = []): Maybe {
  if (same(base, theirs)) return ours;
  if (same(base, ours)) return theirs;
  if (!isObject(ours) || !isObject(theirs)) return conflict(path);
  const from = isObject(base) ? base : {};
  const merged: [string, Json][] = [];
  for (const key of new Set([...Object.keys(ours), ...Object.keys(theirs)])) {
    const value = mergeJson(own(from, key), own(ours, key), own(theirs, key), conflict, [...path, key]);
    if (value !== undefined) merged.push([key, value]);
  }
  return Object.fromEntries(merged);
}

const own = (object: { readonly [key: string]: Json }, key: string): Maybe => (Object.hasOwn(object, key) ? object[key] : undefined);

function same(a: Maybe, b: Maybe): boolean {
  return a === b || (a !== undefined && b !== undefined && canonicalJson(a) === canonicalJson(b));
}

function isObject(value: Maybe): value is { readonly [key: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
