/** Do two updates of the weights pull the same way? Arithmetic over the tensors of checkpoints. */
import { ArgumentError } from "../../core/errors.js";
import type { TensorValue } from "../../engine/contract.js";

/** What training changed between two checkpoints of one model. Throws ArgumentError where their tensors differ in name or size. */
export function updateOf(from: readonly TensorValue[], to: readonly TensorValue[]): TensorValue[] {
  return paired(from, to).map(([a, b]) => ({ ...b, data: b.data.map((x, i) => x - (a.data[i] as number)) }));
}

/** Share of all parameters that two updates move in opposite directions. */
export function signConflict(first: readonly TensorValue[], second: readonly TensorValue[]): number {
  let [opposite, all] = [0, 0];
  for (const [a, b] of paired(first, second)) {
    a.data.forEach((x, i) => {
      if (Math.sign(x) * Math.sign(b.data[i] as number) < 0) opposite++;
    });
    all += a.data.length;
  }
  return all === 0 ? 0 : opposite / all;
}

function paired(a: readonly TensorValue[], b: readonly TensorValue[]): (readonly [TensorValue, TensorValue])[] {
  const byName = new Map(b.map((tensor) => [tensor.name, tensor]));
  return a.map((tensor) => {
    const other = byName.get(tensor.name);
    if (other !== undefined && other.data.length === tensor.data.length && a.length === b.length) return [tensor, other] as const;
    throw new ArgumentError({
      place: `tensor ${tensor.name}`,
      cause: "the other checkpoint does not have it in this size",
      mend: "give checkpoints of one model",
    });
  });
}
