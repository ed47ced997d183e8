/**
 * Entropy bonus: loss = -coefficient sum_t w_t H_t, with H_t the entropy in nats of the distribution that token t was drawn
 * from, under the weights being differentiated (Williams and Peng 1991). A negative coefficient punishes entropy.
 */
import type { Term } from "./contract.js";
import { finite } from "./surrogate.js";

export interface EntropyTermOptions {
  readonly coefficient: number;
  /** Token weights, normaliser included; 0 where the term does not fall. [rows][tokens] */
  readonly weights: readonly Float64Array[];
}

/** The entropy bonus as a loss term. Needs an engine that gives entropies a gradient (`train.entropy`). */
export function entropyTerm(options: EntropyTermOptions): Term {
  return {
    name: "entropy",
    want: { entropy: true },
    run(rows) {
      let value = 0;
      const derivatives = rows.map((row) => {
        const entropy = row.now.entropy as Float64Array;
        const weights = options.weights[row.index] as Float64Array;
        const dEntropy = new Float64Array(weights.length);
        for (let t = 0; t < weights.length; t++) {
          const w = weights[t] as number;
          if (w === 0) continue;
          value -= options.coefficient * w * (entropy[t] as number);
          dEntropy[t] = -options.coefficient * w;
        }
        return { dEntropy };
      });
      return finite(this.name, rows, { value, derivatives, statistics: {} });
    },
  };
}
