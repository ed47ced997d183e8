/** Results of a comparison, with the rule that decided and why. */
import type { Comparison } from "./types.js";

export const equal = (rule: string, reason: string): Comparison => ({ kind: "equal", rule, reason });
export const different = (rule: string, reason: string): Comparison => ({ kind: "different", rule, reason });
export const unsupported = (rule: string, reason: string): Comparison => ({ kind: "unsupported", rule, reason });
