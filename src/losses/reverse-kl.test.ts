import { describe, expect, it } from "vitest";
import { lossRow } from "../../test/support/batch.js";
import { Stream } from "../core/random.js";
import type { LossRow } from "./contract.js";
import { least, type Outcomes, reverseKlTerm, sampledKlTerm } from "./reverse-kl.js";

const logSoftmax = (z: readonly number[]): number[] => {
  const log = Math.log(z.reduce((sum, x) => sum + Math.exp(x), 0));
  return z.map((x) => x - log);
};
const klOf = (logp: readonly number[], logq: readonly number[]): number => logp.reduce((sum, l, v) => sum + Math.exp(l) * (l - (logq[v] as number)), 0);

/** The k most likely of a teacher's tokens and, unless these are all, the rest as one. */
function outcomes(logq: readonly number[], k = logq.length): Outcomes {
  const ids = [...logq.keys()].sort((a, b) => (logq[b] as number) - (logq[a] as number)).slice(0, k);
  const rest = logq.reduce((sum, l, v) => sum + (ids.includes(v) ? 0 : Math.exp(l)), 0);
  return {
    k,
    ids: Int32Array.from(ids),
    logp: Float64Array.from(ids, (v) => logq[v] as number),
    ...(k < logq.length ? { tail: Float64Array.of(Math.log(rest)) } : {}),
  };
}

/** A row of one token whose policy has these log-probs. */
function rowAt(logp: readonly number[], { ids }: Outcomes, sampled = 0): LossRow {
  const base = lossRow({ old: [-1], now: [logp[sampled] as number], coefficient: 0 });
  const rest = logp.reduce((sum, l, v) => sum + (ids.includes(v) ? 0 : Math.exp(l)), 0);
  return { ...base, now: { ...base.now, targetLogp: Float64Array.from(ids, (v) => logp[v] as number), targetTail: Float64Array.of(Math.log(rest)) } };
}

const term = (teacher: Outcomes, coefficient = 1) => reverseKlTerm({ name: "kl", coefficient, teacher: [teacher], weights: [Float64Array.of(1)] });

/** Derivatives by logits, of derivatives by the listed log-probs and the tail. */
function byLogits(logp: readonly number[], { ids }: Outcomes, dTarget: Float64Array, dTail = 0): number[] {
  const p = logp.map(Math.exp);
  const tail = p.reduce((sum, x, v) => sum + (ids.includes(v) ? 0 : x), 0);
  const dLog = p.map((x, v) => (ids.includes(v) ? (dTarget[ids.indexOf(v)] as number) : tail > 0 ? (dTail * x) / tail : 0));
  const all = dLog.reduce((a, b) => a + b, 0);
  return dLog.map((d, v) => d - (p[v] as number) * all);
}

describe("the reverse KL to a teacher", () => {
  const [p, q] = [[0.5, 0.3, 0.2].map(Math.log), [0.2, 0.3, 0.5].map(Math.log)];

  it("by hand: 0.5 ln 2.5 + 0.2 ln 0.4, weighted; and its slope by log p is p (log p - log q + 1)", () => {
    const teacher = outcomes(q);
    const { value, derivatives, statistics } = reverseKlTerm({ name: "kl", coefficient: 3, teacher: [teacher], weights: [Float64Array.of(0.5)] }).run([
      rowAt(p, teacher),
    ]);
    const kl = 0.5 * Math.log(2.5) + 0.2 * Math.log(0.4);
    expect(value).toBeCloseTo(1.5 * kl, 14);
    expect(statistics.kl).toEqual({ sum: expect.closeTo(kl, 14), count: 1 });
    teacher.ids.forEach((v, j) =>
      expect(derivatives[0]?.dTargetLogp?.[j]).toBeCloseTo(1.5 * Math.exp(p[v] as number) * ((p[v] as number) - (q[v] as number) + 1), 14),
    );
  });

  it("is never negative, and 0 only where both are equal", () => {
    const random = new Stream([1, 2, 3, 4]);
    for (let i = 0; i < 200; i++) {
      const [a, b] = [0, 1].map(() => logSoftmax(Array.from({ length: 6 }, () => 4 * random.next() - 2))) as [number[], number[]];
      const teacher = outcomes(b, 1 + random.int(6));
      expect(term(teacher).run([rowAt(a, teacher)]).value).toBeGreaterThan(-1e-15);
      expect(term(outcomes(b)).run([rowAt(a, outcomes(b))]).value).toBeGreaterThan(1e-6);
      expect(term(outcomes(a)).run([rowAt(a, outcomes(a))]).value).toBeCloseTo(0, 14);
    }
  });

  it("has the gradient of finite differences by the logits, lumped and whole", () => {
    const z = [0.3, -1, 0.8, 0.1, -0.4];
    const logq = logSoftmax([1, 0.5, -0.7, 0.2, 0]);
    for (const k of [1, 2, 4, 5]) {
      const teacher = outcomes(logq, k);
      const at = (logits: readonly number[]): number => term(teacher).run([rowAt(logSoftmax(logits), teacher)]).value;
      const { derivatives } = term(teacher).run([rowAt(logSoftmax(z), teacher)]);
      const gradient = byLogits(logSoftmax(z), teacher, derivatives[0]?.dTargetLogp as Float64Array, derivatives[0]?.dTargetTail?.[0]);
      z.forEach((_, v) => {
        const moved = (h: number) => z.map((x, i) => (i === v ? x + h : x));
        expect(gradient[v]).toBeCloseTo((at(moved(1e-5)) - at(moved(-1e-5))) / 2e-5, 8);
      });
    }
  });

  it("never grows where outcomes are lumped, and reaches the whole at k = V", () => {
    const random = new Stream([5, 6, 7, 8]);
    for (let i = 0; i < 100; i++) {
      const [a, b] = [0, 1].map(() => logSoftmax(Array.from({ length: 8 }, () => 6 * random.next() - 3))) as [number[], number[]];
      const kls = Array.from({ length: 8 }, (_, n) => term(outcomes(b, n + 1)).run([rowAt(a, outcomes(b, n + 1))]).value);
      kls.slice(1).forEach((kl, n) => expect(kl).toBeGreaterThanOrEqual((kls[n] as number) - 1e-12));
      expect(kls[7]).toBeCloseTo(klOf(a, b), 12);
    }
  });

  it("from sampled tokens has the whole one's gradient on average, within 3 standard errors", () => {
    const logp = logSoftmax([0.3, -1, 0.8, 0.1]);
    const logq = logSoftmax([1, 0.5, -0.7, 0.2]);
    const teacher = outcomes(logq);
    const whole = byLogits(logp, teacher, term(teacher).run([rowAt(logp, teacher)]).derivatives[0]?.dTargetLogp as Float64Array);
    const random = new Stream([9, 1, 1, 2]);
    const n = 40_000;
    const sums = logp.map(() => ({ sum: 0, squares: 0 }));
    for (let i = 0; i < n; i++) {
      const at = random.next();
      const y = logp.findIndex((_, v) => at < logp.slice(0, v + 1).reduce((mass, l) => mass + Math.exp(l), 0));
      const one = sampledKlTerm({ name: "kl", coefficient: 1, teacher: [Float64Array.of(logq[y] as number)], weights: [Float64Array.of(1)] });
      const d = one.run([rowAt(logp, teacher, y)]).derivatives[0]?.dLogp?.[0] as number;
      sums.forEach((each, v) => {
        const g = d * ((v === y ? 1 : 0) - Math.exp(logp[v] as number));
        each.sum += g;
        each.squares += g * g;
      });
    }
    sums.forEach(({ sum, squares }, v) => {
      const mean = sum / n;
      const error = Math.sqrt((squares / n - mean * mean) / n);
      expect(Math.abs(mean - (whole[v] as number))).toBeLessThan(3 * error);
    });
  });

  it("is finite where the teacher gives nothing to what the policy takes, or the policy nothing to what the teacher takes", () => {
    const none = Number.NEGATIVE_INFINITY;
    const teacher: Outcomes = { k: 2, ids: Int32Array.of(0, 1), logp: Float64Array.of(0, none) };
    const { value, derivatives } = term(teacher).run([rowAt([Math.log(0.5), Math.log(0.5)], teacher)]);
    expect(value).toBeCloseTo(Math.log(0.5) - 0.5 * least, 10);
    expect(derivatives[0]?.dTargetLogp?.every(Number.isFinite)).toBe(true);
    expect(term(teacher).run([rowAt([0, none], teacher)]).value).toBe(0);
  });

  it("leaves rows without a teacher, and tokens without a weight", () => {
    const teacher = outcomes(q);
    const both = reverseKlTerm({ name: "kl", coefficient: 1, teacher: [undefined, teacher], weights: [Float64Array.of(1), Float64Array.of(0)] });
    const { value, derivatives, statistics } = both.run([rowAt(p, teacher), { ...rowAt(p, teacher), index: 1 }]);
    expect([value, derivatives[0], [...(derivatives[1]?.dTargetLogp ?? [])], statistics.kl]).toEqual([0, {}, [0, 0, 0], { sum: 0, count: 0 }]);
    expect(both.want?.targets?.(0)).toBeUndefined();
  });
});
