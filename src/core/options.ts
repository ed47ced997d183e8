/**
 * Strict options: one object against one zod schema (objects as `z.strictObject`, so that each key is used or refused).
 * What zod finds is turned into one sentence with the option's path, the value seen, and what to write instead.
 */
import { closest, distance } from "fastest-levenshtein";
import type { z } from "zod";
import { ConfigError } from "./errors.js";
import type { Json } from "./json.js";
import { branchesOf, describe, keysOf, type Path, schemaAt } from "./schema.js";

type Issue = z.core.$ZodIssue;
interface Fault {
  readonly path: Path;
  readonly cause: string;
  readonly mend: string;
  readonly kind: "unknown" | "missing" | "value";
}

/** Texts longer than this are cut when an error quotes them. */
const longestQuote = 60;

/**
 * The options of `value` with defaults filled in. `place` says where they were written (`run.yaml`, `--set`, `exact()`), or where each was.
 * Throws ConfigError: the first fault in its sentence, all of them in `data.faults`.
 */
export function parseOptions<S extends z.ZodType>(schema: S, value: unknown, place: string | ((path: Path) => string)): z.output<S> {
  const result = checked(schema, value === undefined ? {} : value, placeOf(place, []));
  if (result.success) return result.data;
  const faults = result.error.issues.flatMap((issue) => faultsOf(issue, schema, value, []));
  // A misspelt key is the likely cause of a missing one, so it is told first.
  const order = ["unknown", "value", "missing"];
  const [first, ...others] = faults.sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind)) as [Fault, ...Fault[]];
  const more = others.length === 0 ? "" : ` (${others.length} more: ${others.map((fault) => pathText(fault.path)).join(", ")})`;
  throw new ConfigError({
    place: placeOf(place, first.path),
    cause: first.cause,
    mend: first.mend + more,
    data: { faults: faults.map((fault) => ({ option: pathText(fault.path), kind: fault.kind, cause: fault.cause, mend: fault.mend })) },
  });
}

function checked<S extends z.ZodType>(schema: S, value: unknown, place: string): z.ZodSafeParseResult<z.output<S>> {
  try {
    return schema.safeParse(value);
  } catch (error) {
    // Of objects made by a program: a file's nesting is bounded where it is read.
    if (!(error instanceof RangeError)) throw error;
    throw new ConfigError({ place, cause: "an option is nested without end, or holds itself", mend: "give plain values" }, { cause: error });
  }
}

/** `train.groups[2].rate`; keys that are no plain words are quoted. */
export function pathText(path: Path): string {
  return path.reduce<string>((text, key) => {
    if (typeof key === "number") return `${text}[${key}]`;
    const word = String(key);
    if (!/^[\w-]+$/.test(word)) return `${text}[${JSON.stringify(word)}]`;
    return text === "" ? word : `${text}.${word}`;
  }, "");
}

/** The name nearest to a misspelt one, if any is near enough to have been meant. */
export function nearestName(name: string, valid: readonly string[]): string | undefined {
  if (valid.length === 0) return undefined;
  const plain = (text: string): string => text.toLowerCase().replace(/[-_\s]/g, "");
  const same = valid.find((candidate) => plain(candidate) === plain(name)) ?? valid.find((candidate) => isSwapped(plain(name), plain(candidate)));
  if (same !== undefined) return same;
  const words = ofWords(name, valid);
  if (words !== undefined) return words;
  const nearest = closest(name, [...valid]);
  // A third of the letters may be wrong; in a short name, one.
  return distance(name, nearest) <= Math.max(1, Math.floor(Math.max(name.length, nearest.length) / 3)) ? nearest : undefined;
}

/** The one name that has all words of another, or of whose words another has all: `max_new_tokens` for `max_tokens`. */
function ofWords(name: string, valid: readonly string[]): string | undefined {
  const wordsOf = (text: string): string[] => text.toLowerCase().split(/[-_\s]+/);
  const own = wordsOf(name);
  const found = valid.filter((candidate) => {
    const words = wordsOf(candidate);
    return words.every((word) => own.includes(word)) || own.every((word) => words.includes(word));
  });
  return found.length === 1 ? found[0] : undefined;
}

/** Whether two texts differ by two neighbouring letters that changed places. */
function isSwapped(a: string, b: string): boolean {
  const at = [...a].findIndex((letter, i) => letter !== b[i]);
  return at >= 0 && a === b.slice(0, at) + (b[at + 1] ?? "") + (b[at] ?? "") + b.slice(at + 2);
}

/** `did you mean "rate"?`, or all valid names when none is near. */
export function suggestion(name: string, valid: readonly string[], what = "valid here"): string {
  const near = nearestName(name, valid);
  if (near !== undefined) return `did you mean "${near}"?`;
  return valid.length === 0 ? "nothing can be set here; leave it out" : `${what}: ${valid.join(", ")}`;
}

function placeOf(place: string | ((path: Path) => string), path: Path): string {
  if (typeof place === "function") return place(path);
  return path.length === 0 ? place : `${place}, option ${pathText(path)}`;
}

function faultsOf(issue: Issue, schema: z.core.$ZodType, root: unknown, above: Path): Fault[] {
  const path = [...above, ...issue.path];
  const seen = path.reduce<unknown>(
    (value, key) => (typeof value === "object" && value !== null && Object.hasOwn(value, key) ? (value as Record<PropertyKey, unknown>)[key] : undefined),
    root,
  );
  const target = schemaAt(schema, path);
  if (issue.code === "unrecognized_keys") {
    const valid = keysOf(target, seen);
    return issue.keys.map((key) => ({ kind: "unknown", path: [...path, key], cause: "there is no such option", mend: suggestion(key, valid) }));
  }
  if (issue.code === "invalid_union" && issue.errors.length > 0) return unionFaults(issue, schema, root, path, target);
  const expected = target === undefined ? undefined : describe(target);
  if (seen === undefined && path.length > 0) {
    return [{ kind: "missing", path, cause: "it is missing", mend: `give ${expected ?? "a value"}` }];
  }
  const cause = `got ${quote(seen)}`;
  const choices = choicesOf(issue);
  if (choices !== undefined && typeof seen === "string") {
    const near = nearestName(seen, choices);
    return [
      {
        kind: "value",
        path,
        cause,
        mend: near === undefined ? `choose one of ${choices.join(", ")}` : `did you mean "${near}"? (one of ${choices.join(", ")})`,
      },
    ];
  }
  // Of a text in a wrong form, what the form is.
  const mend = issue.code === "custom" ? issue.message : `give ${issue.code === "invalid_format" ? issue.message : (expected ?? issue.message)}`;
  return [{ kind: "value", path, cause, mend }];
}

/** Of a union's branches the one that was meant: whose type fits, so that its faults lie deeper; else all branches as choices. */
function unionFaults(issue: Extract<Issue, { code: "invalid_union" }>, schema: z.core.$ZodType, root: unknown, path: Path, target?: z.core.$ZodType): Fault[] {
  const inside = (branch: readonly Issue[]): boolean =>
    branch.every((part) => part.path.length > 0 || part.code === "unrecognized_keys" || part.code === "too_small" || part.code === "too_big");
  const meant = issue.errors.filter(inside).sort((a, b) => a.length - b.length)[0];
  if (meant !== undefined) return meant.flatMap((part) => faultsOf(part as Issue, schema, root, path));
  const seen = path.reduce<unknown>((value, key) => (value as Record<PropertyKey, unknown> | undefined)?.[key], root);
  const branches = target === undefined ? [] : branchesOf(target);
  const literals = issue.errors.flatMap((branch) => (branch[0] === undefined ? [] : (choicesOf(branch[0] as Issue) ?? [])));
  const near = typeof seen === "string" ? nearestName(seen, literals) : undefined;
  const forms = branches.map(describe).join(", or ");
  if (seen === undefined && path.length > 0) return [{ kind: "missing", path, cause: "it is missing", mend: `give ${forms}` }];
  return [{ kind: "value", path, cause: `got ${quote(seen)}`, mend: near === undefined ? `give ${forms}` : `did you mean "${near}"? (${forms})` }];
}

function choicesOf(issue: Issue): string[] | undefined {
  if (issue.code === "invalid_value") return issue.values.map(String);
  if (issue.code === "invalid_union" && "options" in issue && Array.isArray(issue.options)) return issue.options.map(String);
  return undefined;
}

/** A value as an error shows it: its type where that is what went wrong, and never more than a line. */
function quote(value: unknown): string {
  if (value === null) return "null";
  if (typeof value === "string") return `the text ${JSON.stringify(value.length > longestQuote ? `${value.slice(0, longestQuote)}…` : value)}`;
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : `a list of ${value.length}`;
  if (typeof value === "object") {
    const keys = Object.keys(value as { [key: string]: Json });
    return keys.length === 0 ? "an empty object" : `an object with ${keys.slice(0, 5).join(", ")}${keys.length > 5 ? "…" : ""}`;
  }
  return typeof value === "function" ? "a function" : String(value);
}
