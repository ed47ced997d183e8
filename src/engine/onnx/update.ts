/**
 * The loops of an optimizer step over plain arrays. They are the same on every thread, and each number depends on its own
 * index alone, so that the bits do not depend on how the arrays are divided. Arithmetic is in float64, storage in float32.
 */

/** Float32 in the engine; the loops are exact in float64, which is how they are tested. */
export type Numbers = Float32Array | Float64Array;

/** Elements `start` to `end` of a parameter, which have one rate and one decay. */
export interface Range {
  readonly start: number;
  readonly end: number;
  readonly rate: number;
  readonly decay: number;
}

/** One parameter of a step. Its arrays are replaced when their buffers come back from another thread. */
export interface Job {
  readonly ranges: readonly Range[];
  data: Numbers;
  grad: Numbers;
  /** First moment (AdamW) or momentum (SGD). */
  first: Numbers | undefined;
  /** Second moment (AdamW). */
  second: Numbers | undefined;
}

/** AdamW with its bias corrections 1 − βᵗ of this step, or SGD. */
export type Update =
  | {
      readonly rule: "adamw";
      readonly beta1: number;
      readonly beta2: number;
      readonly epsilon: number;
      readonly correction1: number;
      readonly correction2: number;
    }
  | { readonly rule: "sgd"; readonly momentum: number };

/** The sum of squares of a gradient, and the index of its first number that is not finite (−1: none). */
export interface Inspection {
  readonly squares: number;
  readonly bad: number;
}

/** Sums four interleaved lanes, since one would wait for its own addition: part of the definition of the norm's bits. */
export function inspect(grad: Numbers): Inspection {
  let a = 0;
  let b = 0;
  let c = 0;
  let d = 0;
  const whole = grad.length - (grad.length % 4);
  for (let i = 0; i < whole; i += 4) {
    a += grad[i] * grad[i];
    b += grad[i + 1] * grad[i + 1];
    c += grad[i + 2] * grad[i + 2];
    d += grad[i + 3] * grad[i + 3];
  }
  for (let i = whole; i < grad.length; i++) a += grad[i] * grad[i];
  const squares = a + b + (c + d);
  return { squares, bad: Number.isFinite(squares) ? -1 : grad.findIndex((x) => !Number.isFinite(x)) };
}

/** Makes the step of one parameter; `clip` multiplies the gradient. */
export function applyUpdate({ ranges, data, grad, first, second }: Job, update: Update, clip: number): void {
  for (const range of ranges) {
    if (update.rule === "adamw") {
      if (range.rate === 0) adamwMoments(grad, first!, second!, range, update, clip);
      else adamw(data, grad, first!, second!, range, update, clip);
    } else if (first) sgdMomentum(data, grad, first, range, update.momentum, clip);
    else sgd(data, grad, range, clip);
  }
}

/** Loshchilov and Hutter 2019, algorithm 2, with the rate in the decay (as torch.optim.AdamW): w ← w(1 − rate·decay) − rate·m̂/(√v̂ + ε). */
function adamw(w: Numbers, g: Numbers, m: Numbers, v: Numbers, { start, end, rate, decay }: Range, update: Update & { rule: "adamw" }, clip: number): void {
  const { beta1, beta2 } = update;
  const rest1 = (1 - beta1) * clip;
  const rest2 = (1 - beta2) * clip * clip;
  const keep = 1 - rate * decay;
  const size = rate / update.correction1;
  const root = 1 / Math.sqrt(update.correction2);
  // Where no gradient ever fell, epsilon 0 would make 0/0.
  const epsilon = update.epsilon || Number.MIN_VALUE;
  for (let i = start; i < end; i++) {
    const gi = g[i];
    const mi = beta1 * m[i] + rest1 * gi;
    const vi = beta2 * v[i] + rest2 * gi * gi;
    m[i] = mi;
    v[i] = vi;
    w[i] = keep * w[i] - (size * mi) / (Math.sqrt(vi) * root + epsilon);
  }
}

/** With rate 0 the weights are not written at all: −0 − (−0) would turn a bit. */
function adamwMoments(g: Numbers, m: Numbers, v: Numbers, { start, end }: Range, { beta1, beta2 }: Update & { rule: "adamw" }, clip: number): void {
  const rest1 = (1 - beta1) * clip;
  const rest2 = (1 - beta2) * clip * clip;
  for (let i = start; i < end; i++) {
    m[i] = beta1 * m[i] + rest1 * g[i];
    v[i] = beta2 * v[i] + rest2 * g[i] * g[i];
  }
}

/** w ← w − rate·(g + decay·w). */
function sgd(w: Numbers, g: Numbers, { start, end, rate, decay }: Range, clip: number): void {
  if (rate === 0) return;
  for (let i = start; i < end; i++) w[i] -= rate * (clip * g[i] + decay * w[i]);
}

/** As torch.optim.SGD: b ← momentum·b + g + decay·w, w ← w − rate·b. */
function sgdMomentum(w: Numbers, g: Numbers, b: Numbers, { start, end, rate, decay }: Range, momentum: number, clip: number): void {
  for (let i = start; i < end; i++) {
    const direction = momentum * b[i] + clip * g[i] + decay * w[i];
    b[i] = direction;
    if (rate !== 0) w[i] -= rate * direction;
  }
}
