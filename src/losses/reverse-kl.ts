/**
 * The reverse KL to a teacher at each token of the policy's own answers, as a loss term. With p the policy and q the teacher
 * over outcomes v (the whole vocabulary, or some tokens and all others as one):
 *
 *     loss = sum_t w_t sum_v p_v (log p_v - log q_v)        dloss/dlog p_v = w_t p_v (log p_v - log q_v + 1)
 *     from the sampled token y alone:                        dloss/dlog p_y = w_t sg[log p_y - log q_y]
 *
 * The second has the first's gradient as expectation over y from p, because E[grad log p] = 0. Lumping tokens together never
 * raises the KL. Our choice: log-probs of the teacher below `least` count as `least`, so that the loss is finite.
 */
import { ArgumentError } from "../core/errors.js";
import type { LossRow, Term } from "./contract.js";
import { finite } from "./surrogate.js";

/** The smallest log-prob of a teacher's outcome: 1e-30. */
export const least = -30 * Math.LN10;

/** A teacher's distribution at each token: the listed ids and, unless these are all, the rest together. */
export interface Outcomes {
  readonly k: number;
  readonly ids: Int32Array; // [tokens][k], distinct within a position
  readonly logp: Float64Array; // [tokens][k]
  /** Absent: the ids are the whole vocabulary. */
  readonly tail?: Float64Array; // [tokens]
}

export interface ReverseKlOptions {
  readonly name: string;
  readonly coefficient: number;
  /** [rows]; undefined: the term does not fall on that row. */
  readonly teacher: readonly (Outcomes | undefined)[];
  /** Token weights, normaliser included; 0 where the term does not fall. [rows][tokens] */
  readonly weights: readonly Float64Array[];
}

/** The term over listed outcomes. Reports the mean KL over its tokens, in nats, under its name. */
export function reverseKlTerm({ name, coefficient, teacher, weights }: ReverseKlOptions): Term {
  return {
    name,
    want: { targets: (index) => teacher[index] },
    run(rows) {
      const total = { value: 0, sum: 0, count: 0 };
      const derivatives = rows.map((row) => {
        const q = teacher[row.index];
        if (q === undefined) return {};
        const { targetLogp: now, targetTail: tail } = row.now;
        if (now === undefined || tail === undefined)
          throw new ArgumentError({
            place: `${name}, trajectory ${row.trajectory.key}`,
            cause: "no log-probs of its outcomes were given",
            mend: "pass the term's want on",
          });
        const { k } = q;
        const dTargetLogp = new Float64Array(now.length);
        const dTargetTail = new Float64Array(tail.length);
        for (let t = 0; t < tail.length; t++) {
          const w = coefficient * (weights[row.index]?.[t] ?? 0);
          if (w === 0) continue;
          let kl = 0;
          for (let j = t * k; j < (t + 1) * k; j++) {
            const [value, slope] = outcome(now[j] as number, q.logp[j] as number);
            kl += value;
            dTargetLogp[j] = w * slope;
          }
          if (q.tail) {
            const [value, slope] = outcome(tail[t] as number, q.tail[t] as number);
            kl += value;
            dTargetTail[t] = w * slope;
          }
          total.value += w * kl;
          total.sum += kl;
          total.count++;
        }
        return { dTargetLogp, dTargetTail };
      });
      return finite(name, rows, { value: total.value, derivatives, statistics: { [name]: { sum: total.sum, count: total.count } } });
    },
  };
}

/** p (log p - log q) of one outcome, and its derivative by log p. An outcome that the policy never takes counts nothing. */
function outcome(logp: number, logq: number): readonly [value: number, slope: number] {
  if (logp === Number.NEGATIVE_INFINITY) return [0, 0];
  const p = Math.exp(logp);
  const gap = logp - Math.max(logq, least);
  return [p * gap, p * (gap + 1)];
}

export interface SampledKlOptions extends Omit<ReverseKlOptions, "teacher"> {
  /** Log-probs of the sampled tokens under the teacher. [rows][tokens] */
  readonly teacher: readonly (Float64Array | undefined)[];
}

/** The term from the sampled token alone; its value is the estimate log p - log q, which may be negative. */
export function sampledKlTerm({ name, coefficient, teacher, weights }: SampledKlOptions): Term {
  return {
    name,
    run(rows: readonly LossRow[]) {
      const total = { value: 0, sum: 0, count: 0 };
      const derivatives = rows.map((row) => {
        const q = teacher[row.index];
        if (q === undefined) return {};
        const dLogp = new Float64Array(q.length);
        for (let t = 0; t < q.length; t++) {
          const w = coefficient * (weights[row.index]?.[t] ?? 0);
          if (w === 0) continue;
          const gap = (row.now.logp[t] as number) - Math.max(q[t] as number, least);
          dLogp[t] = w * gap;
          total.value += w * gap;
          total.sum += gap;
          total.count++;
        }
        return { dLogp };
      });
      return finite(name, rows, { value: total.value, derivatives, statistics: { [name]: { sum: total.sum, count: total.count } } });
    },
  };
}
