/** The method that answers what a composition leaves open, and that a run without a method has: the one place where its name stands. */
export { grpo as fallback } from "./grpo/grpo.js";
export const fallbackName = "grpo";
