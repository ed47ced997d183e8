/** The options of a schema as a table, for documentation. */
import type { z } from "zod";
import { branchesOf, describe as describeSchema, unwrap } from "./schema.js";

/** One option: its path, what it takes, its default, and what it is for. */
export interface DocumentedOption {
  readonly path: string;
  readonly takes: string;
  /** Absent: none, and the option may be left out or must be given, as `about` says. */
  readonly fallback?: string;
  readonly about: string;
}

type Types = z.core.$ZodTypes;

/** All options in the order of the schema; objects are followed into. */
export function documentedOptions(schema: z.core.$ZodType, prefix = ""): DocumentedOption[] {
  const def = (unwrap(schema) as Types)._zod.def;
  if (def.type !== "object") return [];
  return Object.entries(def.shape).flatMap(([key, value]) => {
    const path = `${prefix}${key}`;
    const inside = branchesOf(value).length === 1 ? documentedOptions(value, `${path}.`) : [];
    if (inside.length > 0) return inside;
    const fallback = defaultOf(value);
    return [{ path, takes: describeSchema(value), ...(fallback === undefined ? {} : { fallback }), about: (value as z.ZodType).description ?? "" }];
  });
}

function defaultOf(schema: z.core.$ZodType): string | undefined {
  const def = (schema as Types)._zod.def;
  return def.type === "default" ? JSON.stringify(def.defaultValue) : undefined;
}

/** The table in Markdown. */
export function optionsTable(schema: z.core.$ZodType): string {
  const rows = documentedOptions(schema).map(
    ({ path, takes, fallback, about }) => `| \`${path}\` | ${takes} | ${fallback === undefined ? "" : `\`${fallback}\``} | ${about} |`,
  );
  return ["| option | takes | default | what it is for |", "| --- | --- | --- | --- |", ...rows].join("\n");
}
