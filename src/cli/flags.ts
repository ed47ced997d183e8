/** Readers of what follows a flag: text to a value, or a ConfigError that names the flag. */
import { ConfigError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import { placeIn, readJson } from "../core/json-text.js";

/** A number in decimal digits, as JSON has it; what else is one to JavaScript (`0x10`, `1_000`, blanks) is NaN. */
export function decimal(text: string): number {
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text.trim()) ? Number(text) : Number.NaN;
}

/** A text that is not empty. */
export function someText(flag: string): (text: string) => string {
  return (text) => {
    if (text.trim() !== "") return text;
    throw new ConfigError({ place: `option ${flag}`, cause: "it is empty", mend: "give a value, or leave the option out" });
  };
}

/** Texts of a flag that may be repeated, blank ones such as a line end too. */
export function someTexts(flag: string): (text: string, before?: string[]) => string[] {
  const read = someText(flag);
  return (text, before = []) => [...before, text === "" ? read(text) : text];
}

/** A whole number of at least `least`. */
export function wholeNumber(flag: string, least: number): (text: string) => number {
  return (text) => {
    const value = decimal(text);
    if (!Number.isSafeInteger(value) || value < least) {
      throw new ConfigError({ place: `option ${flag}`, cause: `got ${quoted(text)}`, mend: `give a whole number of at least ${least}` });
    }
    return value;
  };
}

/** Whole numbers of at least `least`, with commas between them. */
export function wholeNumbers(flag: string, least: number): (text: string) => number[] {
  const read = wholeNumber(flag, least);
  return (text) => text.split(",").map(read);
}

/** A number above 0. */
export function positiveNumber(flag: string): (text: string) => number {
  return (text) => {
    const value = decimal(text);
    if (!(value > 0 && Number.isFinite(value))) throw new ConfigError({ place: `option ${flag}`, cause: `got ${quoted(text)}`, mend: "give a number above 0" });
    return value;
  };
}

/** A number from 0 on. */
export function numberFromZero(flag: string): (text: string) => number {
  return (text) => {
    const value = decimal(text);
    if (!(value >= 0 && Number.isFinite(value)))
      throw new ConfigError({ place: `option ${flag}`, cause: `got ${quoted(text)}`, mend: "give a number from 0 on" });
    return value;
  };
}

/** A number above 0, or from 0 on, up to 1. */
export function share(flag: string, least: "above 0" | "from 0"): (text: string) => number {
  return (text) => {
    const value = decimal(text);
    if ((least === "above 0" ? value > 0 : value >= 0) && value <= 1) return value;
    throw new ConfigError({
      place: `option ${flag}`,
      cause: `got ${quoted(text)}`,
      mend: `give a number ${least === "above 0" ? "above 0, at most 1" : "from 0 to 1"}`,
    });
  };
}

/** An object in JSON. */
export function jsonObject(flag: string): (text: string) => { readonly [key: string]: Json } {
  return (text) => {
    const { value, fault } = readJson(text);
    if (value !== undefined && typeof value === "object" && value !== null && !Array.isArray(value)) return value as { readonly [key: string]: Json };
    const why = fault === undefined ? "" : `, where ${fault.cause} (column ${placeIn(text, fault.at).column})`;
    throw new ConfigError({ place: `option ${flag}`, cause: `got ${quoted(text)}${why}`, mend: `give an object in JSON, such as '{"name": 1}'` });
  };
}

/** What was typed, cut where it is long. */
export function quoted(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}
