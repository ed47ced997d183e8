/** The mathematics of distributions against the numbers of a reference transformer: everything behind its logits. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { fixture } from "../../test/paths.js";
import { SafetensorsFile } from "./safetensors.js";
import { entropyOf, logitGradient, logSoftmax, tailOf, topOf } from "./values.js";

interface Listed {
  readonly sequence: number;
  readonly position: number;
  readonly ids: readonly number[];
}
interface Target extends Listed {
  readonly q: readonly number[];
  readonly q_tail: number;
  readonly weight: number;
}
interface Scored extends Listed {
  readonly s: readonly number[];
  readonly s_tail: number;
}
interface Case {
  readonly value: number;
  readonly gradients: { readonly [tensor: string]: { readonly index: readonly number[]; readonly value: readonly number[] } };
}
interface Expected {
  readonly sequences: readonly { readonly ids: readonly number[] }[];
  readonly sparse_targets: readonly Target[];
  readonly signed_scores: readonly Scored[];
  readonly cases: { readonly [name: string]: Case };
}

const vocabulary = 97;
const relative = (actual: number, expected: number): number => Math.abs(actual - expected) / Math.max(1, Math.abs(expected));

async function load(model: string) {
  const expected: Expected = JSON.parse(readFileSync(fixture("models", model, "expected.json"), "utf8"));
  const file = await SafetensorsFile.open(fixture("models", model, "expected.safetensors"));
  const names = [0, 1].flatMap((s) => [`logits.s${s}`, `entropy.s${s}`, `logp.s${s}`, `entropy_t0.7.s${s}`, `logp_t0.7.s${s}`]);
  const arrays = new Map<string, Float64Array>();
  for (const name of [...names, "top8_logp.s0", "top8_tail.s0", "hidden.final.s0"]) arrays.set(name, await file.readFloat64(name));
  await file.close();
  const logp = (sequence: number, position: number, temperature = 1): Float64Array =>
    logSoftmax(arrays.get(`logits.s${sequence}`)!.subarray(position * vocabulary, (position + 1) * vocabulary), temperature);
  return { expected, arrays, logp };
}

/** Log-probs of the listed ids, then that of the tail. */
function outcomesOf(logp: (sequence: number, position: number) => Float64Array, { sequence, position, ids }: Listed): number[] {
  const here = logp(sequence, position);
  return [...ids.map((id) => here[id]), tailOf(here, ids)];
}

describe.each(["llama-tied", "qwen2"])("the fixture %s", async (model) => {
  const { expected, arrays, logp } = await load(model);
  const { sparse_targets: targets, signed_scores: scores, cases } = expected;
  const outcomes = (listed: Listed): number[] => outcomesOf(logp, listed);

  it("has these log-probs and entropies at temperatures 1 and 0.7", () => {
    for (const s of [0, 1]) {
      const { ids } = expected.sequences[s];
      for (const [suffix, temperature] of [
        ["", 1],
        ["_t0.7", 0.7],
      ] as const) {
        ids.forEach((_, t) => {
          expect(relative(entropyOf(logp(s, t, temperature)), arrays.get(`entropy${suffix}.s${s}`)![t])).toBeLessThan(1e-12);
          if (t + 1 < ids.length) expect(relative(logp(s, t, temperature)[ids[t + 1]], arrays.get(`logp${suffix}.s${s}`)![t])).toBeLessThan(1e-12);
        });
      }
    }
  });

  it("has this top-8 with its tail", () => {
    const [best, tails] = [arrays.get("top8_logp.s0")!, arrays.get("top8_tail.s0")!];
    tails.forEach((tail, t) => {
      const top = topOf(logp(0, t), 8);
      top.logp.forEach((x, i) => void expect(relative(x, best[8 * t + i])).toBeLessThan(1e-12));
      // The file holds the tail as a probability.
      expect(relative(Math.exp(top.tail), tail)).toBeLessThan(1e-12);
    });
  });

  it("has these sparse divergences, the tail being one outcome", () => {
    const entropyTerm = (q: number, p: number): number => (q === 0 ? 0 : q * Math.log(q / p));
    const sum = (from: readonly Target[], f: (q: number, p: number) => number): number =>
      from.reduce(
        (total, target) => total + target.weight * outcomes(target).reduce((part, x, i) => part + f([...target.q, target.q_tail][i], Math.exp(x)), 0),
        0,
      );
    expect(relative(sum(targets, entropyTerm), cases.forward_kl_sparse.value)).toBeLessThan(1e-10);
    const withTail = targets.filter(({ q_tail }) => q_tail > 0);
    expect(
      relative(
        sum(withTail, (q, p) => entropyTerm(p, q)),
        cases.reverse_kl_sparse.value,
      ),
    ).toBeLessThan(1e-10);
    const js = (q: number, p: number): number => (entropyTerm(q, (p + q) / 2) + entropyTerm(p, (p + q) / 2)) / 2;
    expect(relative(sum(targets, js), cases.js_sparse.value)).toBeLessThan(1e-10);
  });

  it("has these terms of signed scores", () => {
    const sum = (f: (s: number, logp: number) => number): number =>
      scores.reduce((total, given) => total + outcomes(given).reduce((part, x, i) => part + f([...given.s, given.s_tail][i], x), 0), 0);
    expect(
      relative(
        sum((s, x) => s * x),
        cases.signed_logp.value,
      ),
    ).toBeLessThan(1e-10);
    expect(
      relative(
        sum((s, x) => s * Math.exp(x)),
        cases.expected_reward.value,
      ),
    ).toBeLessThan(1e-10);
  });
});

// An untied head receives dL/dlogits times the hidden state before it: the derivatives alone decide its gradient.
describe("the fixture qwen2", async () => {
  const { expected, arrays, logp } = await load("qwen2");

  it("has these gradients of its head under signed scores, through targets and tail", () => {
    const hidden = arrays.get("hidden.final.s0")!;
    const width = hidden.length / expected.sequences[0].ids.length;
    const check = (name: string, derivative: (s: number, logp: number) => number): void => {
      const gradient = new Float64Array(vocabulary * width);
      for (const given of expected.signed_scores) {
        const d = outcomesOf(logp, given).map((x, i) => derivative([...given.s, given.s_tail][i], x));
        const here = { token: 0, dLogp: 0, dEntropy: 0, ids: given.ids, dTargetLogp: d.slice(0, -1), dTargetTail: d[d.length - 1] };
        logitGradient(logp(0, given.position), 1, here).forEach((x, v) => {
          for (let j = 0; j < width; j++) gradient[v * width + j] += x * hidden[given.position * width + j];
        });
      }
      const { index, value } = expected.cases[name].gradients["lm_head.weight"];
      index.forEach((at, i) => void expect(relative(gradient[at], value[i])).toBeLessThan(1e-10));
      expect(index.length).toBeGreaterThan(10);
    };
    check("signed_logp", (s) => s);
    check("expected_reward", (s, x) => s * Math.exp(x));
  });
});
