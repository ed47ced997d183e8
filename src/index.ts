/** Touchstone as a library: everything that a task, a method or a program of one's own needs. */
export * from "./core/errors.js";
export * from "./core/json.js";
export * from "./core/note.js";
export * from "./core/problem.js";
export * from "./core/random.js";
export * from "./core/trajectory.js";
export * from "./core/verdict.js";
