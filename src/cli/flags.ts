/** Readers of what follows a flag: text to a value, or a ConfigError that names the flag. */
import { ConfigError } from "../core/errors.js";

/** A whole number of at least `least`. */
export function wholeNumber(flag: string, least: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() === "" || !Number.isSafeInteger(value) || value < least) {
      throw new ConfigError({ place: `option ${flag}`, cause: `got ${JSON.stringify(text)}`, mend: `give a whole number of at least ${least}` });
    }
    return value;
  };
}
