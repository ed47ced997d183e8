/** The model behind the test server: a bigram table over a fixed base, with the losses, reductions and Adam of a server of the protocol, in float64. */
import { Stream, uniform } from "../../src/core/random.js";

export const vocabulary = 12;
const size = vocabulary * vocabulary;

/** As JSON has it; the protobuf dialect is read into the same. */
export interface WireDatum {
  readonly tokens: readonly number[];
  readonly inputs: { readonly [name: string]: readonly number[] };
}

const base = (() => {
  const stream = new Stream([1, 2, 3, 4]);
  return Float64Array.from({ length: size }, () => stream.normal());
})();

/** Everything that a checkpoint holds. */
export interface Saved {
  readonly weights: Float64Array;
  readonly m: Float64Array;
  readonly v: Float64Array;
  readonly steps: number;
}

export type ServerReduction = "sum" | "sequence-mean-then-batch-mean";

export class BigramModel {
  weights = new Float64Array(size);
  private m = new Float64Array(size);
  private v = new Float64Array(size);
  private steps = 0;
  private gradient = new Float64Array(size);
  private sequences = 0;

  constructor(private readonly reduction: ServerReduction) {}

  save(): Saved {
    return { weights: this.weights.slice(), m: this.m.slice(), v: this.v.slice(), steps: this.steps };
  }

  load({ weights, m, v, steps }: Saved, optimizer: boolean): void {
    this.weights = weights.slice();
    if (!optimizer) return;
    [this.m, this.v, this.steps] = [m.slice(), v.slice(), steps];
  }

  /** Log-probs of the targets; where it is a backward pass, its gradient is added. */
  pass({ tokens, inputs }: WireDatum, loss: string, config: { readonly [key: string]: number }, backward: boolean): number[] {
    const targets = inputs.target_tokens as readonly number[];
    const weights = inputs.weights ?? targets.map(() => 1);
    const total =
      this.reduction === "sum"
        ? 1
        : Math.max(
            1e-9,
            weights.reduce((sum, w) => sum + w, 0),
          );
    const logps = targets.map((target, i) => {
      const p = distribution(this.weights, tokens[i] as number);
      const logp = Math.fround(Math.log(p[target] as number));
      if (backward) {
        const slope = slopeOf(loss, config, logp, inputs.logprobs?.[i] ?? 0, inputs.advantages?.[i] ?? 0);
        const factor = ((weights[i] as number) * slope) / total;
        p.forEach((share, id) => (this.gradient[(tokens[i] as number) * vocabulary + id] += factor * ((id === target ? 1 : 0) - share)));
      }
      return logp;
    });
    if (backward) this.sequences++;
    return logps;
  }

  /** Adam with decoupled decay; the norm of the gradient that it was made of. */
  step(adam: { readonly [name: string]: number }): number {
    const { learning_rate: rate = 1e-4, beta1 = 0.9, beta2 = 0.95, eps = 1e-12, weight_decay: decay = 0 } = adam;
    const mean = this.reduction === "sum" ? 1 : Math.max(1, this.sequences);
    const gradient = this.gradient.map((x) => x / mean);
    this.gradient = new Float64Array(size);
    this.sequences = 0;
    this.steps++;
    for (let i = 0; i < size; i++) {
      const g = gradient[i] as number;
      this.m[i] = beta1 * (this.m[i] as number) + (1 - beta1) * g;
      this.v[i] = beta2 * (this.v[i] as number) + (1 - beta2) * g * g;
      const mean1 = (this.m[i] as number) / (1 - beta1 ** this.steps);
      const mean2 = (this.v[i] as number) / (1 - beta2 ** this.steps);
      this.weights[i] = (this.weights[i] as number) * (1 - rate * decay) - (rate * mean1) / (Math.sqrt(mean2) + eps);
    }
    return Math.hypot(...gradient);
  }
}

/** d loss / d logp of one token. */
function slopeOf(loss: string, config: { readonly [key: string]: number }, logp: number, q: number, advantage: number): number {
  if (loss === "cross_entropy") return -1;
  const ratio = Math.exp(logp - q);
  const { clip_low_threshold: low = 0.8, clip_high_threshold: high = 1.2 } = config;
  if (loss === "importance_sampling") return -ratio * advantage;
  const clipped = Math.min(high, Math.max(low, ratio));
  if (loss === "cispo") return -clipped * advantage;
  return ratio * advantage <= clipped * advantage ? -ratio * advantage : 0;
}

export function distribution(weights: Float64Array, before: number, temperature = 1): Float64Array {
  const logits = weights.slice(before * vocabulary, (before + 1) * vocabulary).map((x, id) => (x + (base[before * vocabulary + id] as number)) / temperature);
  const most = Math.max(...logits);
  const p = logits.map((x) => Math.exp(x - most));
  const total = p.reduce((sum, x) => sum + x, 0);
  return p.map((x) => x / total);
}

/** One answer of a sampler: tokens and log-probs at temperature 1. */
export function drawn(
  weights: Float64Array,
  prompt: readonly number[],
  { max_tokens: most = 1, temperature = 1, seed = 0, stop = [] }: { max_tokens?: number; temperature?: number; seed?: number; stop?: readonly number[] },
): { tokens: number[]; logprobs: number[]; stop_reason: string } {
  const tokens: number[] = [];
  const logprobs: number[] = [];
  for (let before = prompt.at(-1) as number; tokens.length < most; before = tokens.at(-1) as number) {
    const raw = distribution(weights, before);
    const p = temperature === 0 ? raw : distribution(weights, before, temperature);
    const u = uniform([seed, 0, 0, 7], tokens.length);
    let sum = 0;
    const found = p.findIndex((x) => {
      sum += x;
      return u < sum;
    });
    const id = temperature === 0 ? p.indexOf(Math.max(...p)) : found < 0 ? vocabulary - 1 : found;
    tokens.push(id);
    logprobs.push(Math.fround(Math.log(raw[id] as number)));
    if (stop.includes(id)) return { tokens, logprobs, stop_reason: "stop" };
  }
  return { tokens, logprobs, stop_reason: "length" };
}
