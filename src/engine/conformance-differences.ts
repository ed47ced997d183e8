/** Gradients against central differences of a scalar loss, through `weights.write` alone. */
import { expect } from "vitest";
import { type Bench, setOf } from "./conformance-bench.js";
import type { Derivatives, Forward, ModelInfo, Scores, Sequence, TensorValue, Want } from "./contract.js";

export type Kind = keyof Derivatives;

const numberOf = { dLogp: "logp", dEntropy: "entropy", dValue: "values", dTargetLogp: "targetLogp", dTargetTail: "targetTail" } as const satisfies {
  [kind in Kind]: keyof Scores;
};

/** A loss that is linear in what `forward` returns, with random coefficients: its derivatives are these coefficients. */
export class LinearLoss {
  readonly want: Want;
  readonly derivatives: readonly Derivatives[];

  constructor(
    readonly bench: Bench,
    readonly info: ModelInfo,
    readonly sequences: readonly Sequence[],
    readonly kinds: readonly Kind[],
  ) {
    const listed = kinds.includes("dTargetLogp") || kinds.includes("dTargetTail");
    // One sequence has no targets, and the others differ in k.
    const targets = sequences.map((sequence, s) => (s === 1 ? undefined : bench.targets(sequence, 2 + (s % 3), info.vocabulary)));
    this.want = { entropy: kinds.includes("dEntropy"), values: kinds.includes("dValue"), ...(listed ? { targets } : {}) };
    this.derivatives = sequences.map(({ response: { length } }, s) => {
      const sizes = { dLogp: length, dEntropy: length, dValue: length + 1, dTargetLogp: length * (targets[s]?.k ?? 0), dTargetTail: targets[s] ? length : 0 };
      const present = kinds.filter((kind) => sizes[kind] > 0);
      return Object.fromEntries(present.map((kind) => [kind, bench.numbers(sizes[kind])]));
    });
  }

  value(scores: readonly Scores[]): number {
    let sum = 0;
    this.derivatives.forEach((given, s) => {
      for (const kind of this.kinds) {
        for (const [i, d] of given[kind]?.entries() ?? []) sum += d * scores[s][numberOf[kind]]![i];
      }
    });
    return sum;
  }

  forward(): Promise<Forward> {
    return this.bench.engine.forward(this.sequences, this.want);
  }

  async evaluate(sequences = this.sequences): Promise<number> {
    const { handle, scores } = await this.bench.engine.forward(sequences, this.want);
    await this.bench.engine.release(handle);
    return this.value(scores);
  }

  /** Adds the gradient to the role's own. */
  async backward(): Promise<void> {
    await this.bench.engine.backward((await this.forward()).handle, this.derivatives, setOf(this.info.role));
  }
}

/** Derivative at 0 by central differences of steps h and h/2, extrapolated (Richardson): the error falls with the fourth power of h. */
export async function centralDifference(f: (x: number) => Promise<number>, h: number): Promise<number> {
  const wide = ((await f(h)) - (await f(-h))) / (2 * h);
  const narrow = ((await f(h / 2)) - (await f(-h / 2))) / h;
  return (4 * narrow - wide) / 3;
}

interface Direction {
  readonly label: string;
  readonly along: readonly TensorValue[];
  /** What the derivative is measured against, beside itself. */
  readonly scale: number;
}

const rmsOf = ({ data }: TensorValue): number => Math.hypot(...data) / Math.sqrt(data.length);
const dot = (a: readonly TensorValue[], b: readonly TensorValue[]): number =>
  a.reduce((sum, { data }, i) => sum + data.reduce((part, x, j) => part + x * b[i].data[j], 0), 0);
const withData = (tensor: TensorValue, data: Float64Array): TensorValue => ({ ...tensor, data });

/** Along the gradient, along random signs, and along single entries: the largest and two that chance picks, which may have gradient 0. */
function directions(bench: Bench, weights: readonly TensorValue[], gradient: readonly TensorValue[]): Direction[] {
  const unit = weights.map((tensor) => Math.max(rmsOf(tensor), 0.05));
  const largest = gradient.map(({ data }) => data.reduce((most, x) => Math.max(most, Math.abs(x)), 0));
  const most = Math.max(...largest);
  const result: Direction[] = [];
  if (most > 0) {
    const along = gradient.map((tensor, i) =>
      withData(
        tensor,
        tensor.data.map((x) => (x / most) * unit[i]),
      ),
    );
    result.push({ label: "the gradient", along, scale: 0 });
  }
  const signs = gradient.map((tensor, i) =>
    withData(
      tensor,
      tensor.data.map(() => (bench.stream.next() < 0.5 ? -unit[i] : unit[i])),
    ),
  );
  result.push({ label: "random signs", along: signs, scale: Math.hypot(...gradient.map(({ data }, i) => unit[i] * Math.hypot(...data))) });
  for (const pick of ["largest", "random", "random"]) {
    const i = pick === "largest" ? largest.indexOf(most) : bench.stream.int(gradient.length);
    const { data } = gradient[i];
    const entry = pick === "largest" ? data.findIndex((x) => Math.abs(x) === most) : bench.stream.int(data.length);
    const along = gradient.map((tensor, j) =>
      withData(
        tensor,
        tensor.data.map((_, at) => (i === j && at === entry ? unit[i] : 0)),
      ),
    );
    result.push({ label: `entry ${entry} of ${gradient[i].name}`, along, scale: largest[i] * unit[i] });
  }
  return result;
}

/** Compares the gradient of a loss with differences: over all tensors together, or over each of them. */
export async function checkGradient(loss: LinearLoss, per: "all" | "tensor"): Promise<void> {
  const { bench, info } = loss;
  const { weights: store } = bench.engine;
  await store.zeroGradient(setOf(info.role));
  await loss.backward();
  const gradient = await bench.gradient(info);
  const weights = await bench.read(info);
  expect(Math.max(...gradient.map(({ data }) => Math.hypot(...data))), "the loss has a gradient").toBeGreaterThan(0);
  const parts = per === "all" ? [weights.map((_, i) => i)] : weights.map((_, i) => [i]);
  for (const part of parts) {
    const here = part.map((i) => weights[i]);
    const slope = part.map((i) => gradient[i]);
    for (const { label, along, scale } of directions(bench, here, slope)) {
      const at = async (x: number): Promise<number> => {
        await store.write(
          info.role,
          here.map((tensor, i) =>
            withData(
              tensor,
              tensor.data.map((w, j) => w + x * along[i].data[j]),
            ),
          ),
        );
        return loss.evaluate();
      };
      const found = await centralDifference(at, bench.step);
      const expected = dot(slope, along);
      const names = per === "all" ? "all tensors" : here[0].name;
      const allowed = bench.tolerance.gradient * (Math.abs(expected) + scale) + 1e-12;
      expect(Math.abs(found - expected), `${names} along ${label}: ${expected} where differences give ${found}`).toBeLessThanOrEqual(allowed);
    }
    await store.write(info.role, here);
  }
}
