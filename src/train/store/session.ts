import { canonicalJson, type Json } from "../../core/json.js";
import type { Files } from "./files.js";
import { Log, linesOf } from "./log.js";

/** Appends to `sessions.jsonl` after its last whole line: a killed process may have left half of one. */
export function appendSession(files: Files, path: string, session: Json): void {
  const whole = [...linesOf(files, path)].at(-1)?.end ?? 0;
  const log = new Log(files, path, whole, () => "; nothing was lost");
  log.rewind(whole);
  log.append([session]);
  log.close();
}

/** `name: was → is` for each top-level entry in which two fingerprints differ. */
export function differences(was: { readonly [name: string]: Json }, is: { readonly [name: string]: Json }): string[] {
  const text = (value: Json | undefined) => (value === undefined ? "absent" : canonicalJson(value));
  return [...new Set([...Object.keys(was), ...Object.keys(is)])]
    .sort()
    .flatMap((name) => (text(was[name]) === text(is[name]) ? [] : [`${name} was ${text(was[name])} and is ${text(is[name])}`]));
}
