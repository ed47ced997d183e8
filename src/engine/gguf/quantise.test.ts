import { describe, expect, it } from "vitest";
import { fixture } from "../../../test/paths.js";
import { float16ToFloat32, float32ToFloat16 } from "../half.js";
import { GgufFile } from "./file.js";
import { quantised } from "./quantise.js";

describe("float32 as float16", () => {
  it("gives back every float16, and takes the nearest, of two equally near ones the even", () => {
    const all = Uint16Array.from({ length: 65536 }, (_, bits) => bits).filter((bits) => (bits & 0x7c00) !== 0x7c00 || (bits & 0x3ff) === 0);
    const values = new Float32Array(all.length);
    float16ToFloat32(all, values);
    expect(float32ToFloat16(values)).toEqual(all);
    // 1 + 1/2048 lies between 1 and 1 + 1/1024, 1 + 3/2048 between the odd 1 + 1/1024 and the even 1 + 2/1024.
    const halfway = [1 + 1 / 2048, 1 + 3 / 2048, 1 + 1 / 2048 + 2 ** -23, 2 ** -25, 3 * 2 ** -25, 65519, 65520, -1e9, Number.NaN];
    expect([...float32ToFloat16(Float32Array.from(halfway))].map((bits) => bits.toString(16))).toEqual([
      "3c00",
      "3c02",
      "3c01",
      "0",
      "2",
      "7bff",
      "7c00",
      "fc00",
      "7e00",
    ]);
  });
});

describe("blocks of eight bits", () => {
  it("have a scale of the largest over 127, and round halves away from zero", () => {
    const values = new Float32Array(32);
    values.set([127, -127, 0.5, -0.5, 1.5, 0.49]);
    const bytes = quantised(values, "Q8_0") as Uint8Array;
    expect([...bytes.subarray(0, 8)]).toEqual([0x00, 0x3c, 127, 256 - 127, 1, 256 - 1, 2, 0]);
    expect(quantised(new Float32Array(32), "Q8_0")).toEqual(new Uint8Array(34));
  });

  it.each([
    ["llama-q8_0", "llama-f32"],
    ["llama-f16", "llama-f32"],
  ])("%s.gguf has the reference's bytes of the numbers of %s.gguf", async (name, original) => {
    const file = await GgufFile.open(fixture("gguf", `${name}.gguf`));
    const source = await GgufFile.open(fixture("gguf", `${original}.gguf`));
    try {
      for (const { name: tensor, type } of file.tensors.values()) {
        if (type !== "Q8_0" && type !== "F16") continue;
        const bytes = quantised(await source.read(tensor), type) as Uint8Array;
        expect(Buffer.compare(bytes, await file.bytes(tensor)), tensor).toBe(0);
      }
    } finally {
      await file.close();
      await source.close();
    }
  });

  it("and halves refuse what they cannot hold", () => {
    expect(quantised(Float32Array.of(65520), "F16")).toBeUndefined();
    expect(quantised(new Float32Array(32).fill(1e7), "Q8_0")).toBeUndefined();
    expect(quantised(Float32Array.of(1e7), "F32")).toEqual(new Uint8Array(Float32Array.of(1e7).buffer));
  });
});
