/**
 * Rotary position embedding and its scalings, as transformers' config.json writes them, in both spellings. For a head of
 * size d, pair i of D = d / 2 turns by the angle position · f_i, and cosines and sines are multiplied by `scale`.
 */
import type { Json } from "../../core/json.js";
import { type Reader, reader } from "./fields.js";

/** How frequencies differ from θ^(−i/D). `original` is the length in tokens that the model was trained for before scaling. */
export type Rope =
  | { readonly kind: "default" }
  /** All frequencies divided by the factor (position interpolation). */
  | { readonly kind: "linear"; readonly factor: number }
  /** θ grows with sequences longer than the model's base length; up to it, the default. */
  | { readonly kind: "dynamic"; readonly factor: number }
  | { readonly kind: "llama3"; readonly factor: number; readonly original: number; readonly lowFrequency: number; readonly highFrequency: number }
  | {
      readonly kind: "yarn";
      readonly factor: number;
      readonly original: number;
      readonly betaFast: number;
      readonly betaSlow: number;
      /** Bounds of the ramp are rounded to whole pairs. */
      readonly truncate: boolean;
      /** Factor on cosines and sines. */
      readonly attentionFactor: number;
    };

const kinds = ["default", "linear", "dynamic", "llama3", "yarn"] as const;

/** `rope_parameters` (newer) or `rope_theta` and `rope_scaling` with `rope_type` or `type` (older). Throws ModelError, by name, for what is not known. */
export function ropeOf(r: Reader): { readonly rope: Rope; readonly ropeTheta: number } {
  const key = r.has("rope_parameters") ? "rope_parameters" : "rope_scaling";
  const inner = reader(r.fields[key] ?? {}, `${r.place}, ${key}`);
  const kind = inner.fields.rope_type ?? inner.fields.type ?? "default";
  if (!(kinds as readonly Json[]).includes(kind)) {
    inner.fail(`the rotary embedding ${JSON.stringify(kind)} is not known`, `use a model with one of ${kinds.join(", ")}`);
  }
  return { rope: scaling(kind as Rope["kind"], inner, r), ropeTheta: inner.has("rope_theta") ? inner.number("rope_theta") : r.number("rope_theta", 10000) };
}

function scaling(kind: Rope["kind"], inner: Reader, outer: Reader): Rope {
  if (kind === "default") return { kind };
  const factor = inner.number("factor");
  if (factor < 1) inner.fail(`factor is ${factor}`, "give one of 1 or more");
  if (kind === "linear" || kind === "dynamic") return { kind, factor };
  const original = inner.count("original_max_position_embeddings", outer.count("max_position_embeddings"));
  if (kind === "llama3") {
    const lowFrequency = inner.number("low_freq_factor");
    const highFrequency = inner.number("high_freq_factor");
    if (highFrequency <= lowFrequency) inner.fail(`high_freq_factor ${highFrequency} is not above low_freq_factor ${lowFrequency}`, "give a higher one");
    return { kind, factor, original, lowFrequency, highFrequency };
  }
  // The attention of DeepSeek's models; two mscales that are equal cancel.
  const magnitude = (by: number): number => 0.1 * by * Math.log(factor) + 1;
  const scales =
    inner.has("mscale") && inner.has("mscale_all_dim") ? magnitude(inner.number("mscale")) / magnitude(inner.number("mscale_all_dim")) : magnitude(1);
  return {
    kind,
    factor,
    original,
    betaFast: inner.number("beta_fast", 32),
    betaSlow: inner.number("beta_slow", 1),
    truncate: inner.flag("truncate", true),
    attentionFactor: inner.number("attention_factor", scales),
  };
}

/** The fields of config.json that say it, in the older spelling. */
export function ropeFields({ rope, ropeTheta }: { readonly rope: Rope; readonly ropeTheta: number }): { [key: string]: Json } {
  const written = ({ kind, ...rest }: Rope): Json => {
    const names: { readonly [name: string]: string } = {
      original: "original_max_position_embeddings",
      lowFrequency: "low_freq_factor",
      highFrequency: "high_freq_factor",
      betaFast: "beta_fast",
      betaSlow: "beta_slow",
      attentionFactor: "attention_factor",
    };
    return { rope_type: kind, ...Object.fromEntries(Object.entries(rest).map(([name, value]) => [names[name] ?? name, value as Json])) };
  };
  return { rope_theta: ropeTheta, rope_scaling: rope.kind === "default" ? null : written(rope) };
}

export interface Angles {
  /** Radians a position, of each pair. [headDim / 2] */
  readonly frequencies: Float64Array;
  /** Factor on cosines and sines. */
  readonly scale: number;
}

/** The angles of a model's heads; of `dynamic` those up to its base length. */
export function anglesOf({ headDim, rope, ropeTheta }: { readonly headDim: number; readonly rope: Rope; readonly ropeTheta: number }): Angles {
  const half = headDim / 2;
  const plain = Float64Array.from({ length: half }, (_, i) => ropeTheta ** (-i / half));
  if (rope.kind === "default" || rope.kind === "dynamic") return { frequencies: plain, scale: 1 };
  const { factor } = rope;
  if (rope.kind === "linear") return { frequencies: plain.map((f) => f / factor), scale: 1 };
  const clamp = (x: number): number => Math.min(1, Math.max(0, x));
  if (rope.kind === "llama3") {
    const { original, lowFrequency: low, highFrequency: high } = rope;
    const frequencies = plain.map((f) => {
      const kept = clamp(((original * f) / (2 * Math.PI) - low) / (high - low));
      return f * (kept + (1 - kept) / factor);
    });
    return { frequencies, scale: 1 };
  }
  const { original, betaFast, betaSlow, truncate, attentionFactor } = rope;
  /** The pair, as a real number, that turns so many times within the original length. */
  const pairOf = (turns: number): number => (half * Math.log(original / (turns * 2 * Math.PI))) / Math.log(ropeTheta);
  const low = Math.max(0, truncate ? Math.floor(pairOf(betaFast)) : pairOf(betaFast));
  const high = Math.min(headDim - 1, truncate ? Math.ceil(pairOf(betaSlow)) : pairOf(betaSlow));
  const width = high === low ? 0.001 : high - low;
  const frequencies = plain.map((f, i) => {
    const divided = clamp((i - low) / width);
    return f * (1 - divided) + (f / factor) * divided;
  });
  return { frequencies, scale: attentionFactor };
}
