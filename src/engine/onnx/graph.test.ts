import { describe, expect, it } from "vitest";
import { Graph, type Value } from "./graph.js";
import { add, linear, mul, reshape } from "./ops.js";
import { decode, evaluate, runInRuntime } from "./test-reference.js";
import { tensor } from "./test-tensor.js";

const scalar = (value: number) => tensor([], [value]);
const one = (g: Graph, name: string): Value => g.input(name, "float32", []);

describe("a graph", () => {
  it("holds only what its outputs need, in order", () => {
    const g = new Graph();
    const [a, b] = [one(g, "a"), one(g, "b")];
    mul(g, b, g.float(5));
    g.output("y", add(g, mul(g, a, g.float(2)), g.float(3)), "float32", []);
    const { nodes, constants, inputs } = g.pruned();
    expect(nodes.map(({ op }) => op)).toEqual(["Mul", "Add"]);
    expect(constants.map(({ data }) => data[0])).toEqual([2, 3]);
    expect(inputs.map(({ name }) => name)).toEqual(["a"]);
  });

  it("shares equal constants of one type, and only those", () => {
    const g = new Graph();
    expect(g.ints([1])).toBe(g.ints([1]));
    expect(new Set([g.ints([1]), g.int(1), g.float(1), g.double(1), g.ints([1, 1])]).size).toBe(5);
  });

  it("gives any value under any name, in ONNX Runtime too: an input, a constant, one value twice, one that other nodes read", async () => {
    const g = new Graph();
    const a = one(g, "a");
    const b = mul(g, a, a);
    for (const [name, value] of Object.entries({ same: a, fixed: g.float(1.5), square: b, again: b, more: add(g, b, g.float(1.5)) })) {
      g.output(name, value, "float32", []);
    }
    const run = await runInRuntime(g.build(), { a: scalar(3) });
    expect(Object.fromEntries(Object.entries(run).map(([name, { data }]) => [name, data[0]]))).toEqual({
      same: 3,
      fixed: 1.5,
      square: 9,
      again: 9,
      more: 10.5,
    });
  });

  it("takes a supplied value instead of computing it, and drops what only led there", async () => {
    const g = new Graph();
    const [a, b] = [one(g, "a"), one(g, "b")];
    const kept = g.apply("Exp", [mul(g, a, b)]);
    g.output("y", add(g, kept, b), "float32", []);
    g.output("kept", kept, "float32", []);
    g.supply(kept, "from", []);
    const { inputs, nodes } = g.pruned();
    expect(inputs.map(({ name }) => name)).toEqual(["b", "from"]);
    expect(nodes.map(({ op }) => op)).toEqual(["Add", "Identity"]);
    const run = await runInRuntime(g.build(), { b: scalar(2), from: scalar(10) });
    expect([run.y.data[0], run.kept.data[0]]).toEqual([12, 10]);
  });

  it("still computes a node of which one output is supplied and another is needed", async () => {
    const g = new Graph();
    const [left, right] = g.applyMany("Split", [g.input("x", "float32", [4]), g.ints([2, 2])], 2, { axis: 0 });
    g.supply(left, "left", [2]);
    g.output("y", mul(g, left, right), "float32", [2]);
    const run = await runInRuntime(g.build(), { x: tensor([4], [1, 2, 3, 4]), left: tensor([2], [10, 20]) });
    expect([...run.y.data]).toEqual([30, 80]);
  });

  it("supplies nothing that no output reads", () => {
    const g = new Graph();
    const a = one(g, "a");
    g.supply(g.apply("Exp", [a]), "unused", []);
    g.output("y", g.apply("Neg", [a]), "float32", []);
    expect(g.pruned().inputs.map(({ name }) => name)).toEqual(["a"]);
  });
});

describe("a gradient", () => {
  it("adds up over all uses of a value and over all seeds", () => {
    const g = new Graph();
    const a = one(g, "a");
    const square = mul(g, a, a);
    const cube = mul(g, square, a);
    const da = g
      .gradient(
        [
          [square, g.float(10)],
          [cube, g.float(1)],
        ],
        [a],
      )
      .get(a) as Value;
    g.output("da", da, "float32", []);
    expect(evaluate(decode(g.build()), { a: scalar(3) }).da.data[0]).toBe(10 * 2 * 3 + 3 * 3 * 3);
  });

  it("may be taken of an intermediate value, as if it were given", () => {
    const g = new Graph();
    const a = one(g, "a");
    const square = mul(g, a, a);
    const gradients = g.gradient([[mul(g, square, square), g.float(1)]], [square]);
    g.output("d", gradients.get(square) as Value, "float32", []);
    expect(evaluate(decode(g.build()), { a: scalar(3) }).d.data[0]).toBe(18);
  });

  it("has no entry for what no seed depends on", () => {
    const g = new Graph();
    const [a, b] = [one(g, "a"), one(g, "b")];
    expect([...g.gradient([[g.apply("Exp", [a]), g.float(1)]], [a, b]).keys()]).toEqual([a]);
  });

  it("emits nothing for operands that are not asked for", () => {
    const g = new Graph();
    const y = linear(g, g.input("x", "float32", ["N", 3]), g.input("w", "float32", [2, 3]));
    const before = g.nodes.length;
    g.gradient([[y, g.input("dy", "float32", ["N", 2])]], ["x" as Value]);
    expect(g.nodes.slice(before).map(({ op }) => op)).toEqual(["MatMul"]);
  });

  it("walks past operators without a rule where no gradient flows, and names one where it does", () => {
    const g = new Graph();
    const [a, b] = [one(g, "a"), one(g, "b")];
    const y = mul(g, a, g.apply("Floor", [b]));
    expect(g.gradient([[y, g.float(1)]], [a]).has(a)).toBe(true);
    expect(() => g.gradient([[y, g.float(1)]], [b])).toThrow(/Floor.*ops\.ts/);
  });

  it("of a reshape leads back by the shape that was given, so that the input itself is not needed", () => {
    const g = new Graph();
    const x = g.input("x", "float32", ["N", 6]);
    const y = reshape(g, x, g.ints([-1, 2, 3]), g.ints([-1, 6]));
    g.output("dx", g.gradient([[y, g.input("dy", "float32", ["N", 2, 3])]], [x]).get(x) as Value, "float32", ["N", 6]);
    expect(g.pruned().inputs.map(({ name }) => name)).toEqual(["dy"]);
  });
});
