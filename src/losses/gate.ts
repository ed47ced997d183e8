/**
 * The soft gate of SAPO (Gao et al. 2025, arXiv 2511.20347) in place of a hard bound:
 *
 *     f(r, A) = (4 / tau) sigmoid(tau (r - 1)) A,   tau = tau_pos where A > 0, else tau_neg
 *
 * Its slope in r is A at r = 1 and fades on both sides; `bounds` stages have nothing to act on.
 */
import type { Surrogate } from "./contract.js";
import { type FamilyOptions, fate, ratioSurrogate } from "./surrogate.js";

export interface GateOptions extends FamilyOptions {
  /** Sharpness of the gate for positive coefficients; larger is narrower. */
  readonly tau_pos: number;
  readonly tau_neg: number;
}

export function softGate(options: GateOptions): Surrogate {
  return ratioSurrogate("gate", options, { low: 0, high: Number.POSITIVE_INFINITY }, (out, r, a) => {
    const tau = a > 0 ? options.tau_pos : options.tau_neg;
    const s = 1 / (1 + Math.exp(-tau * (r - 1)));
    out.value = (4 / tau) * s * a;
    out.slope = 4 * s * (1 - s) * a;
    out.fate = fate.kept;
  });
}
