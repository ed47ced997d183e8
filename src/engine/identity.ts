/** Identities of weights: `policy@3` after three steps, `policy@3+1` when tensors were also written once. */

/** The identity after one more step, or one more write of tensors. */
export function afterChange(identity: string, kind: "step" | "write"): string {
  const [, role, steps, writes] = /^(.*)@(\d+)(?:\+(\d+))?$/.exec(identity)!;
  const written = Number(writes ?? 0) + (kind === "write" ? 1 : 0);
  return `${role}@${Number(steps) + (kind === "step" ? 1 : 0)}${written > 0 ? `+${written}` : ""}`;
}
