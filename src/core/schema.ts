/** Reads zod schemas: what lies at a path, which keys an object takes, and what a value should be, in words. */
import { z } from "zod";

export type Path = readonly PropertyKey[];
type Schema = z.core.$ZodType;
type Types = z.core.$ZodTypes;

/** The schema without what only wraps it (optional, default, nullable, readonly, pipe). */
export function unwrap(schema: Schema): Schema {
  const def = (schema as Types)._zod.def;
  switch (def.type) {
    case "optional":
    case "default":
    case "prefault":
    case "nullable":
    case "nonoptional":
    case "readonly":
    case "catch":
      return unwrap(def.innerType);
    case "pipe":
      return unwrap(def.in);
    case "lazy":
      return unwrap(def.getter());
    default:
      return schema;
  }
}

/** The schemas that a value may have: the members of a union, flattened, or the schema alone. */
export function branchesOf(schema: Schema): Schema[] {
  const plain = unwrap(schema) as Types;
  const { def } = plain._zod;
  return def.type === "union" ? def.options.flatMap(branchesOf) : [plain];
}

/** The schema at a path, or undefined where the path leaves the schema. In a union, the first member that has the path. */
export function schemaAt(schema: Schema, path: Path): Schema | undefined {
  const [key, ...rest] = path;
  if (key === undefined) return schema;
  for (const branch of branchesOf(schema)) {
    const next = child(branch, key);
    const found = next && schemaAt(next, rest);
    if (found !== undefined) return found;
  }
  return undefined;
}

function child(schema: Schema, key: PropertyKey): Schema | undefined {
  const def = (schema as Types)._zod.def;
  if (def.type === "object") return Object.hasOwn(def.shape, key) ? def.shape[String(key)] : undefined;
  if (def.type === "array") return def.element;
  if (def.type === "record") return def.valueType;
  if (def.type === "tuple") return def.items[Number(key)] ?? def.rest ?? undefined;
  return undefined;
}

/** The keys that an object schema takes. Of a union, those of the members that `value` chose by its discriminator, else of all. */
export function keysOf(schema: Schema | undefined, value?: unknown): string[] {
  if (schema === undefined) return [];
  const def = (unwrap(schema) as Types)._zod.def;
  if (def.type === "object") return Object.keys(def.shape);
  if (def.type !== "union") return [];
  const key = "discriminator" in def && typeof def.discriminator === "string" ? def.discriminator : undefined;
  const chosen = key === undefined ? [] : def.options.filter((option) => chooses(option, key, value));
  return [...new Set((chosen.length > 0 ? chosen : def.options).flatMap((option) => keysOf(option, value)))];
}

function chooses(option: Schema, key: string, value: unknown): boolean {
  const literal = child(unwrap(option), key);
  const given = typeof value === "object" && value !== null ? (value as { readonly [key: string]: unknown })[key] : undefined;
  return literal !== undefined && z.safeParse(literal, given).success;
}

/** What a value of this schema is, as the object of "give …". */
export function describe(schema: Schema): string {
  const branches = branchesOf(schema);
  if (branches.length > 1) return branches.map(describe).join(", or ");
  const plain = branches[0] as Types;
  const def = plain._zod.def;
  switch (def.type) {
    case "string":
      return `a text${textLimits(plain)}`;
    case "number":
      return numberText(plain);
    case "boolean":
      return "true or false";
    case "literal":
      return def.values.map((value) => JSON.stringify(value)).join(" or ");
    case "enum":
      return `one of ${Object.values(def.entries).join(", ")}`;
    case "array":
      return `a list${countLimits(plain)}, each ${describe(def.element)}`;
    case "tuple":
      return `a list of ${def.items.length}`;
    case "object": {
      const keys = Object.keys(def.shape);
      return keys.length === 0 ? "an empty object" : `an object with ${keys.join(", ")}`;
    }
    case "record":
      // Any JSON is described by itself, without end.
      return (def.valueType as Types)._zod.def.type === "lazy" ? "an object" : `an object whose values are each ${describe(def.valueType)}`;
    case "null":
      return "null";
    default:
      return `a value of type ${def.type}`;
  }
}

/** The limits of a schema, by the names of JSON Schema. */
interface Limits {
  readonly type?: string;
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly maximum?: number;
  readonly exclusiveMaximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
}

function limitsOf(schema: Schema): Limits {
  return z.toJSONSchema(schema, { unrepresentable: "any", io: "input" }) as Limits;
}

function numberText(schema: Schema): string {
  const limits = limitsOf(schema);
  const whole = limits.type === "integer";
  // Whole numbers carry the safe integers as limits, which nobody needs to be told.
  const told = (limit: number | undefined): limit is number => limit !== undefined && !(whole && Math.abs(limit) === Number.MAX_SAFE_INTEGER);
  const parts: string[] = [];
  if (told(limits.exclusiveMinimum)) parts.push(`above ${limits.exclusiveMinimum}`);
  else if (told(limits.minimum)) parts.push(`of at least ${limits.minimum}`);
  if (told(limits.exclusiveMaximum)) parts.push(`below ${limits.exclusiveMaximum}`);
  else if (told(limits.maximum)) parts.push(`at most ${limits.maximum}`);
  return [`a ${whole ? "whole " : ""}number`, parts.join(" and ")].filter(Boolean).join(" ");
}

function textLimits(schema: Schema): string {
  const { minLength, maxLength } = limitsOf(schema);
  if (minLength === 1 && maxLength === undefined) return " that is not empty";
  return range(minLength, maxLength, " characters");
}

function countLimits(schema: Schema): string {
  const { minItems, maxItems } = limitsOf(schema);
  return range(minItems, maxItems, "");
}

function range(least: number | undefined, most: number | undefined, unit: string): string {
  if (least !== undefined && least === most) return ` of ${least}${unit}`;
  if (least !== undefined && most !== undefined) return ` of ${least} to ${most}${unit}`;
  if (least !== undefined) return ` of at least ${least}${unit}`;
  return most === undefined ? "" : ` of at most ${most}${unit}`;
}
