/** How tokens are coloured: the number that a colouring shows, its scale over a group, and its colour. */
import type { TokenSlice } from "../shapes.js";
import { digits } from "./format.js";

export const colourings = ["coefficient", "ratio", "log-prob", "entropy", "mask", "none"] as const;
export type Colouring = (typeof colourings)[number];

/** One sentence for each. */
export const about: { readonly [colouring in Colouring]: string } = {
  coefficient:
    "What the token's log-probability is multiplied by in the loss, before the weights of the aggregation: blue is made likelier, orange less likely.",
  ratio: "Probability in the token's last pass of training over that of the rollout: blue rose, orange fell.",
  "log-prob": "Of the token when it was drawn, in nats: the darker, the more surprising.",
  entropy: "Of the distribution that the token was drawn from, in nats: the darker, the more open the choice was.",
  mask: "What the loss may touch: blue the reward and the loss, purple the loss alone, plain neither, hatched what was not drawn by the policy.",
  none: "",
};

/** Log of the ratio of the trained weights to those of the rollout; null where the run does not keep it. */
export function logRatio({ columns }: TokenSlice, i: number): number | null {
  const now = columns.logp?.[i] ?? null;
  const before = columns.old?.[i] ?? columns.behaviour?.[i] ?? null;
  return now === null || before === null ? null : now - before;
}

/** The number of a token that a colouring shows; null: it has none. */
export function numberOf(colouring: Colouring, slice: TokenSlice, i: number): number | null {
  if (colouring === "coefficient") return slice.columns.coefficient?.[i] ?? null;
  if (colouring === "ratio") return logRatio(slice, i);
  if (slice.sampled[i] !== 1) return null;
  if (colouring === "log-prob") return slice.columns.behaviour?.[i] ?? null;
  if (colouring === "entropy") return slice.columns.entropy?.[i] ?? null;
  return null;
}

export interface Shades {
  readonly colouring: Colouring;
  /** The largest absolute number: the full colour. */
  readonly most: number;
  /** Ends of the scale in words. */
  readonly ends: readonly [string, string] | null;
  /** Why no token has a colour. */
  readonly silent?: string;
}

/** The scale over the tokens of a group, so that members can be compared. */
export function shadesOf(colouring: Colouring, slices: readonly TokenSlice[]): Shades {
  let most = 0;
  for (const slice of slices) for (let i = 0; i < slice.ids.length; i++) most = Math.max(most, Math.abs(numberOf(colouring, slice, i) ?? 0));
  if (colouring === "none" || colouring === "mask") return { colouring, most: 1, ends: null };
  if (most === 0) {
    const some = slices.some((slice) => slice.ids.some((_, i) => numberOf(colouring, slice, i) !== null));
    return { colouring, most: 1, ends: null, silent: some ? "0 on every token" : "not kept for these tokens" };
  }
  if (colouring === "ratio")
    return { colouring, most: Math.max(most, 1e-3), ends: [digits(Math.exp(-Math.max(most, 1e-3))), digits(Math.exp(Math.max(most, 1e-3)))] };
  if (colouring === "coefficient") return { colouring, most, ends: [digits(-most), `+${digits(most)}`] };
  return { colouring, most, ends: colouring === "log-prob" ? ["0", digits(-most)] : ["0", digits(most)] };
}

/** The background of a token; undefined: plain. */
export function shade({ colouring, most }: Shades, slice: TokenSlice, i: number): string | undefined {
  const mixed = (colour: string, share: number): string => `color-mix(in srgb, var(--${colour}) ${Math.round(6 + 54 * Math.min(1, share))}%, transparent)`;
  if (colouring === "none") return undefined;
  if (colouring === "mask") {
    if (slice.reward[i] === 1) return mixed("up", 0.5);
    return slice.loss[i] === 1 ? mixed("heat", 0.5) : undefined;
  }
  const value = numberOf(colouring, slice, i);
  if (value === null || Math.abs(value) < 1e-9 * most) return undefined;
  if (colouring === "coefficient" || colouring === "ratio") return mixed(value > 0 ? "up" : "down", Math.abs(value) / most);
  return mixed("heat", Math.abs(value) / most);
}
