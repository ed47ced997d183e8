/** Results of a comparison, with the rule that decided and why. */
import type { Comparison, Value } from "./types.js";

export const equal = (rule: string, reason: string): Comparison => ({ kind: "equal", rule, reason });
export const different = (rule: string, reason: string): Comparison => ({ kind: "different", rule, reason });
export const unsupported = (rule: string, reason: string): Comparison => ({ kind: "unsupported", rule, reason });

/** Values of kinds that are never one. */
export const kinds = (a: Value, b: Value): Comparison => different("kinds", `${named(a)} is not ${named(b)}`);

export const named = ({ kind }: Value): string => (kind === "intervals" ? "a set of intervals" : `${/^[aeiou]/.test(kind) ? "an" : "a"} ${kind}`);
