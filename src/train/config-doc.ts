/** The options of a configuration as a table, made of their schema. */
import type { z } from "zod";
import { branchesOf, describe as describeSchema, unwrap } from "../core/schema.js";
import { trainConfig } from "./config.js";

/** One option: its path, what it takes, its default, and what it is for. */
export interface DocumentedOption {
  readonly path: string;
  readonly takes: string;
  /** Absent: none, and the option may be left out or must be given, as `about` says. */
  readonly fallback?: string;
  readonly about: string;
}

/** All options in the order of the schema; objects are followed into. */
export function documentedOptions(): DocumentedOption[] {
  return optionsOf(trainConfig, "");
}

type Types = z.core.$ZodTypes;

function optionsOf(schema: z.core.$ZodType, prefix: string): DocumentedOption[] {
  const def = (unwrap(schema) as Types)._zod.def;
  if (def.type !== "object") return [];
  return Object.entries(def.shape).flatMap(([key, value]) => {
    const path = `${prefix}${key}`;
    const inside = branchesOf(value).length === 1 ? optionsOf(value, `${path}.`) : [];
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
export function optionsTable(): string {
  const rows = documentedOptions().map(
    ({ path, takes, fallback, about }) => `| \`${path}\` | ${takes} | ${fallback === undefined ? "" : `\`${fallback}\``} | ${about} |`,
  );
  return ["| option | takes | default | what it is for |", "| --- | --- | --- | --- |", ...rows].join("\n");
}
