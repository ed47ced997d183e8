/** A check of a module of its own that works once, when it is tried before the run, and then fails on every answer. */
let calls = 0;

export function verify(): boolean {
  const fields = calls++ === 0 ? { right: false } : undefined;
  if (fields === undefined) throw new TypeError("no such field");
  return fields.right;
}
