import { describe, expect, it } from "vitest";
import { encodeModel } from "./proto.js";
import { decode, readFields } from "./test-reference.js";

const model = {
  nodes: [
    {
      op: "Some",
      domain: "com.microsoft",
      inputs: ["x", "", "c"],
      outputs: ["y", "z"],
      attributes: { whole: -2, none: 0, fraction: { float: 1 }, nothing: { float: 0 }, several: [1, 0, -3], empty: [], text: "add" },
    },
  ],
  constants: [
    { name: "c", type: "int64", dims: [2], data: BigInt64Array.of(-1n, 9007199254740991n) },
    { name: "f", type: "float32", dims: [], data: Float32Array.of(0.1) },
    { name: "d", type: "float64", dims: [1, 2], data: new Float64Array([7, 0.1, 0.2, 7]).subarray(1, 3) },
  ],
  inputs: [
    { name: "x", type: "float32", dims: ["N", 0, 3] },
    { name: "b", type: "bool", dims: [] },
  ],
  outputs: [{ name: "y", type: "float64", dims: [1, "N"] }],
} as const;

describe("a model file", () => {
  it("reads back as it was written", () => {
    const { nodes, constants, inputs, outputs } = decode(encodeModel(model));
    expect(nodes).toEqual([
      {
        op: "Some",
        domain: "com.microsoft",
        inputs: ["x", "", "c"],
        outputs: ["y", "z"],
        attributes: { whole: -2, none: 0, fraction: 1, nothing: 0, several: [1, 0, -3], empty: [], text: "add" },
      },
    ]);
    expect(constants.c).toEqual({ dims: [2], data: Float64Array.of(-1, 9007199254740991) });
    expect(constants.f).toEqual({ dims: [], data: Float64Array.of(Math.fround(0.1)) });
    expect(constants.d).toEqual({ dims: [1, 2], data: Float64Array.of(0.1, 0.2) });
    expect(inputs).toEqual(model.inputs);
    expect(outputs).toEqual(["y"]);
  });

  it("tells whole numbers, fractions, texts and lists apart, also where they are 0 or 1", () => {
    const { attribute } = readFields(encodeModel(model)).graph.node[0];
    expect(Object.fromEntries(attribute.map(({ name, type }) => [name, type]))).toEqual({
      whole: 2,
      none: 2,
      fraction: 1,
      nothing: 1,
      several: 7,
      empty: 7,
      text: 3,
    });
  });

  it("states the version of the format and of both sets of operators", () => {
    const { ir_version, opset_import } = readFields(encodeModel(model));
    expect(ir_version).toBe(10);
    expect(opset_import.map(({ domain, version }) => [domain ?? "", version])).toEqual([
      ["", 20],
      ["com.microsoft", 1],
    ]);
  });

  it("begins as the format prescribes: field 1, the version, then field 2, the producer", () => {
    expect([...encodeModel(model).subarray(0, 4)]).toEqual([0x08, 10, 0x12, "touchstone".length]);
  });
});
