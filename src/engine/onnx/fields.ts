/** Fields of a configuration file, read with their kind checked. */
import { ModelError } from "../../core/errors.js";
import type { Json } from "../../core/json.js";

type Fields = { readonly [key: string]: Json };

/** An object of a configuration file; `place` names it in errors. */
export class Reader {
  constructor(
    readonly fields: Fields,
    readonly place: string,
  ) {}

  fail(cause: string, mend: string): never {
    throw new ModelError({ place: this.place, cause, mend });
  }

  /** A field that is present and not null. */
  has(key: string): boolean {
    return this.fields[key] !== undefined && this.fields[key] !== null;
  }

  number(key: string, fallback?: number): number {
    const value = this.has(key) ? this.fields[key] : fallback;
    if (value === undefined) this.fail(`${key} is missing`, `take the ${fileOf(this.place)} that belongs to the weights`);
    if (typeof value !== "number" || !Number.isFinite(value) || value <= 0) this.fail(`${key} is ${JSON.stringify(value)}`, "give a positive number");
    return value;
  }

  count(key: string, fallback?: number): number {
    const value = this.number(key, fallback);
    if (!Number.isSafeInteger(value)) this.fail(`${key} is ${value}`, "give a whole number");
    return value;
  }

  flag(key: string, fallback: boolean): boolean {
    const value = this.has(key) ? this.fields[key] : fallback;
    if (typeof value !== "boolean") this.fail(`${key} is ${JSON.stringify(value)}`, "give true or false");
    return value;
  }

  /** Token ids: a number, several, or none. */
  ids(key: string, vocabulary: number): number[] {
    const value = this.fields[key] ?? [];
    const list = Array.isArray(value) ? (value as readonly Json[]) : [value as Json];
    return list.map((id) => {
      if (!Number.isSafeInteger(id) || (id as number) < 0 || (id as number) >= vocabulary) {
        this.fail(`${key} has ${JSON.stringify(id)}, outside the vocabulary of ${vocabulary}`, "give ids of the vocabulary");
      }
      return id as number;
    });
  }
}

/** The file of a place such as `folder/config.json, rope_scaling`. */
const fileOf = (place: string): string => /[^\\/]+\.json(?=$|,)/.exec(place)?.[0] ?? "metadata";

/** The object as a reader. Throws ModelError for anything else. */
export function reader(json: Json, place: string): Reader {
  if (json === null || typeof json !== "object" || Array.isArray(json)) {
    throw new ModelError({ place, cause: "it is not a JSON object", mend: `take the ${fileOf(place)} that belongs to the weights` });
  }
  return new Reader(json as Fields, place);
}
