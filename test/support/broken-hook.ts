/** A hook of a program that fails. */
export function broken(): never {
  throw new Error("no such chart");
}
