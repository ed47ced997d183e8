import { describe, expect, it } from "vitest";
import { drawGraph } from "./draw.js";
import { type HeadWants, headBackward, headForward } from "./head.js";
import { tinyConfig as c } from "./test-config.js";
import { centralDifferences, decode, evaluate, runInRuntime, type Tensors } from "./test-reference.js";
import { normals, relativeError, type Tensor, tensor } from "./test-tensor.js";

const R = 3;
const V = c.vocabulary;
const feeds: { readonly [name: string]: Tensor } = {
  x: normals("x", [R, c.width]),
  norm: normals("norm", [c.width]),
  table: normals("table", [V, c.width]),
  inverseT: tensor([R, 1], [1, 0.5, 1.75]),
  valueWeight: normals("value", [1, c.width]),
  valueBias: tensor([1], [0.25]),
  // The response token, then its targets: in row 0 it is one of them, in row 1 the last token of the vocabulary.
  ids: tensor([R, 4], [7, 7, 0, 255, 299, 3, 4, 256, 11, 12, 13, 298]),
  targets: tensor([R, 3], [7, 0, 255, 3, 4, 256, 12, 13, 298]),
  d: normals("d", [R, 4]),
  dTail: normals("dTail", [R, 1]),
  dEntropy: normals("dEntropy", [R, 1]),
  dValue: normals("dValue", [R, 1]),
  soFar: normals("soFar", [V, c.width]),
};
const everything: HeadWants = { entropy: true, tail: true, values: true };
const variants = [{}, { entropy: true }, { tail: true }, { values: true }, everything].map(
  (wants: HeadWants) => [["log-probs", ...Object.keys(wants)].join(", "), wants] as const,
);

/** What headBackward says that it differentiates, from the outputs of the forward graph. */
function loss(wants: HeadWants, out: Tensors): number {
  let sum = 0;
  for (let r = 0; r < R; r++) {
    const total = out.total.data[r];
    for (let k = 0; k < 4; k++) sum += feeds.d.data[r * 4 + k] * (out.chosen.data[r * 4 + k] - Math.log(total));
    if (wants.tail) sum += feeds.dTail.data[r] * Math.log(out.tail.data[r] / total);
    if (wants.entropy) sum += feeds.dEntropy.data[r] * (Math.log(total) - out.energy.data[r] / total);
    if (wants.values) sum += feeds.dValue.data[r] * out.value.data[r];
  }
  return sum;
}

const weightsOf = ({ values }: HeadWants): string[] => ["table", "norm", ...(values ? ["valueWeight", "valueBias"] : [])];
const given = (gradient: string): string => gradient.replace(/^d_?/, "");

describe("the head's gradient", () => {
  it.each(variants)("agrees with central differences of its forward graph: %s", (_, wants) => {
    const forward = decode(headForward(c, wants));
    const gradients = evaluate(decode(headBackward(c, wants, false)), feeds);
    expect(Object.keys(gradients).sort()).toEqual(["dx", ...weightsOf(wants).map((name) => `d_${name}`)].sort());
    for (const name of Object.keys(gradients)) {
      const at = feeds[given(name)].data;
      // Of the table's 1,800 entries every seventh: in each column, and in most rows.
      const some = name === "d_table" ? 7 : 1;
      const picked = Float64Array.from({ length: Math.ceil(at.length / some) }, (_, i) => at[i * some]);
      const f = () => {
        picked.forEach((value, i) => {
          at[i * some] = value;
        });
        return loss(wants, evaluate(forward, feeds));
      };
      const numeric = centralDifferences(f, picked);
      f();
      const exact = gradients[name].data.filter((_, i) => i % some === 0);
      expect(relativeError(exact, numeric), name).toBeLessThan(1e-7);
    }
  });

  it.each(variants)("agrees with ONNX Runtime: %s", async (_, wants) => {
    for (const accumulate of [false, true]) {
      const bytes = headBackward(c, wants, accumulate);
      const reference = evaluate(decode(bytes), feeds);
      const run = await runInRuntime(bytes, feeds);
      for (const [name, value] of Object.entries(reference)) expect(relativeError(run[name].data, value.data), name).toBeLessThan(5e-6);
    }
  });

  it("adds to what is there already, for the table alone", () => {
    const plain = evaluate(decode(headBackward(c, everything, false)), feeds);
    const { d_table, ...others } = evaluate(decode(headBackward(c, everything, true)), feeds);
    const sum = plain.d_table.data.map((value, i) => value + feeds.soFar.data[i]);
    expect(relativeError(d_table.data, sum)).toBeLessThan(1e-14);
    for (const name of Object.keys(others)) expect(others[name]).toEqual(plain[name]);
  });

  it("of the input alone is the same without those of the weights", () => {
    const { dx } = evaluate(decode(headBackward(c, everything, false)), feeds);
    expect(evaluate(decode(headBackward(c, everything, false, "nothing")), feeds)).toEqual({ dx });
  });

  it("is finite and right in float32 where all tokens but the targets have probability 0, so that the tail is 0", async () => {
    const listed = [7, 0, 255];
    const table = tensor(
      [V, c.width],
      feeds.table.data.map((value, i) => (i % c.width > 0 ? value : listed.includes(Math.floor(i / c.width)) ? value : -1e4)),
    );
    const norm = tensor([c.width], [1, 0.1, 0.1, 0.1, 0.1, 0.1]);
    const x = { ...feeds.x, data: feeds.x.data.map(Math.abs) };
    const targets = tensor([R, 3], [...listed, ...listed, ...listed]);
    const sharp = { ...feeds, x, table, norm, targets, dTail: tensor([R, 1], [100, -100, 0.5]) };
    expect([...evaluate(decode(headForward(c, { tail: true })), sharp).tail.data]).toEqual([0, 0, 0]);
    const bytes = headBackward(c, { entropy: true, tail: true }, false);
    const run = await runInRuntime(bytes, sharp);
    for (const [name, value] of Object.entries(evaluate(decode(bytes), sharp))) expect(relativeError(run[name].data, value.data), name).toBeLessThan(5e-6);
  });
});

describe("the head", () => {
  const wants: HeadWants = { ...everything, topK: 5, full: true, hidden: true };
  const out = evaluate(decode(headForward(c, wants)), feeds);
  const logProbs = (r: number) => [...out.z.data.subarray(r * 512, r * 512 + V)].map((z) => z - Math.log(out.total.data[r]));

  it("gives log-probs, entropy, tail and the most likely tokens of the tempered softmax", () => {
    for (let r = 0; r < R; r++) {
      const normed = out.normed.data.subarray(r * c.width, (r + 1) * c.width);
      const logits = Array.from(
        { length: V },
        (_, v) => feeds.inverseT.data[r] * normed.reduce((sum, value, i) => sum + value * feeds.table.data[v * c.width + i], 0),
      );
      const logTotal = Math.log(logits.reduce((sum, z) => sum + Math.exp(z), 0));
      const expected = logits.map((z) => z - logTotal);
      expect(relativeError(logProbs(r), expected)).toBeLessThan(1e-12);
      const total = out.total.data[r];
      const entropy = -expected.reduce((sum, l) => sum + Math.exp(l) * l, 0);
      expect(Math.log(total) - out.energy.data[r] / total).toBeCloseTo(entropy, 10);
      const targets = [...feeds.targets.data.subarray(r * 3, r * 3 + 3)];
      expect(out.tail.data[r] / total).toBeCloseTo(
        expected.reduce((sum, l, v) => sum + (targets.includes(v) ? 0 : Math.exp(l)), 0),
        12,
      );
      const best = [...expected.keys()].sort((a, b) => expected[b] - expected[a]).slice(0, 5);
      expect([...out.topIds.data.subarray(r * 5, r * 5 + 5)]).toEqual(best);
      expect(out.topTail.data[r] / total).toBeCloseTo(
        expected.reduce((sum, l, v) => sum + (best.includes(v) ? 0 : Math.exp(l)), 0),
        12,
      );
      expect(out.value.data[r]).toBeCloseTo(
        normed.reduce((sum, value, i) => sum + value * feeds.valueWeight.data[i], 0.25),
        12,
      );
    }
  });

  it("agrees with ONNX Runtime in float32", async () => {
    const run = await runInRuntime(headForward(c, wants), feeds);
    for (const [name, value] of Object.entries(out)) expect(relativeError(run[name].data, value.data), name).toBeLessThan(3e-6);
  });

  it("gives the padding's tokens probability 0, also beside very low logits", async () => {
    const low = { ...feeds, table: { ...feeds.table, data: feeds.table.data.map((value) => 1e4 * value) } };
    const { z, total } = await runInRuntime(headForward(c, { full: true }), low);
    for (let r = 0; r < R; r++) {
      expect(Math.max(...z.data.subarray(r * 512 + V, (r + 1) * 512))).toBeLessThan(-1e8);
      expect(total.data[r]).toBeCloseTo(
        z.data.subarray(r * 512, r * 512 + V).reduce((sum, value) => sum + Math.exp(value), 0),
        5,
      );
    }
  });
});

describe("the draw's graph", () => {
  const draw: Tensors = {
    ...feeds,
    u: tensor([R, 1], [0.1, 0.5, 0.9]),
    greedy: tensor([R, 1], [1, 0, 0]),
    forced: tensor([R, 1], [-1, 299, -1]),
  };
  const wants = { tempered: true, chosen: true, topK: 4, restricted: false };

  it("agrees with the head on masses, in float64 and in ONNX Runtime; greedy and forced rows take their token", async () => {
    const headOut = evaluate(decode(headForward(c, { ...everything, topK: 4, full: true })), feeds);
    const raw = evaluate(decode(headForward(c, { full: true })), { ...feeds, inverseT: tensor([R, 1], [1, 1, 1]) });
    const reference = evaluate(decode(drawGraph(c, wants)), draw);
    const run = await runInRuntime(drawGraph(c, wants), draw);
    for (const [name, value] of Object.entries(reference)) expect(relativeError(run[name].data, value.data), name).toBeLessThan(3e-6);
    for (const name of ["total", "energy", "topZ", "topIds", "topTail"])
      expect(relativeError(reference[name].data, headOut[name].data), name).toBeLessThan(1e-13);
    expect(relativeError(reference.rawTotal.data, raw.total.data)).toBeLessThan(1e-13);
    const best = headOut.topIds.data[0];
    expect([...run.token.data.subarray(0, 2)]).toEqual([best, 299]);
    for (let r = 0; r < R; r++) {
      const at = r * 512 + reference.token.data[r];
      expect(reference.z.data[r]).toBeCloseTo(headOut.z.data[at], 12);
      expect(reference.rawZ.data[r]).toBeCloseTo(raw.z.data[at], 12);
    }
  });

  it("draws the inverse transform's token in untempered rows without greedy or forced ones", async () => {
    const { z, total } = evaluate(decode(headForward(c, { full: true })), { ...feeds, inverseT: tensor([R, 1], [1, 1, 1]) });
    const run = await runInRuntime(drawGraph(c, { tempered: false, chosen: false, topK: 0, restricted: false }), draw);
    for (let r = 0; r < R; r++) {
      let below = draw.u.data[r] * total.data[r];
      const token = z.data.subarray(r * 512, (r + 1) * 512).findIndex((value) => {
        below -= Math.exp(value);
        return below < 0;
      });
      expect(run.token.data[r]).toBe(token);
    }
  });
});
