import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { fixture } from "../../test/paths.js";
import { ModelError } from "../core/errors.js";
import { SafetensorsFile } from "./safetensors.js";
import { writeSafetensors } from "./safetensors-write.js";

const folder = mkdtempSync(join(tmpdir(), "safetensors-"));
afterAll(() => rmSync(folder, { recursive: true }));
const path = (name: string): string => join(folder, name);

/** A file made by hand: header text and data. */
function file(name: string, header: string | Uint8Array, data: Uint8Array = new Uint8Array(), length?: bigint): string {
  const text = typeof header === "string" ? new TextEncoder().encode(header) : header;
  const prefix = new Uint8Array(8);
  new DataView(prefix.buffer).setBigUint64(0, length ?? BigInt(text.length), true);
  writeFileSync(path(name), Buffer.concat([prefix, text, data]));
  return path(name);
}

function plain(name: string, text: string): string {
  writeFileSync(path(name), text);
  return path(name);
}

const entry = (dtype: string, shape: number[], begin: number, end: number) => ({ dtype, shape, data_offsets: [begin, end] });

async function reading<T>(name: string, use: (file: SafetensorsFile) => Promise<T>): Promise<T> {
  const opened = await SafetensorsFile.open(name);
  try {
    return await use(opened);
  } finally {
    await opened.close();
  }
}

describe("writing and reading", () => {
  it("gives back every type, shape and text", async () => {
    const tensors = [
      { name: "small", shape: [3], data: Uint8Array.of(1, 2, 255) },
      { name: "matrix", shape: [2, 2], data: Float32Array.of(1, -0, Number.NaN, 3e38) },
      { name: "wide", shape: [2], data: Float64Array.of(Math.PI, -1e300) },
      { name: "ids", shape: [1, 2], data: BigInt64Array.of(-1n, 2n ** 62n) },
      { name: "scalar", shape: [], data: Float32Array.of(7) },
      { name: "none", shape: [0, 5], data: new Float32Array() },
    ];
    await writeSafetensors(path("all"), tensors, { step: "3", 'odd "name"': "ä" });
    await reading(path("all"), async (f) => {
      expect(f.metadata).toEqual({ step: "3", 'odd "name"': "ä" });
      expect([...f.entries.values()].map(({ name, dtype, shape }) => [name, dtype, shape])).toEqual([
        ["wide", "F64", [2]],
        ["ids", "I64", [1, 2]],
        ["matrix", "F32", [2, 2]],
        ["scalar", "F32", []],
        ["none", "F32", [0, 5]],
        ["small", "U8", [3]],
      ]);
      for (const { begin, dtype } of f.entries.values()) expect(begin % (dtype === "U8" ? 1 : 4)).toBe(0);
      expect(await f.readFloat64("wide")).toEqual(Float64Array.of(Math.PI, -1e300));
      expect(await f.readFloat32("wide")).toEqual(Float32Array.of(Math.PI, Number.NEGATIVE_INFINITY));
      expect(await f.readFloat32("matrix")).toEqual(Float32Array.of(1, -0, Number.NaN, 3e38));
      expect(await f.readFloat64("matrix")).toEqual(Float64Array.of(1, -0, Number.NaN, Math.fround(3e38)));
      expect(await f.readInt64("ids")).toEqual(BigInt64Array.of(-1n, 2n ** 62n));
      expect(await f.readBytes("small")).toEqual(Uint8Array.of(1, 2, 255));
      expect(await f.readFloat32("none")).toEqual(new Float32Array());
    });
  });

  it("writes the same bytes for the same tensors, and leaves no other file", async () => {
    const tensors = [
      { name: "2", shape: [1], data: Float32Array.of(2) },
      { name: "1", shape: [1], data: Float32Array.of(1) },
    ];
    await writeSafetensors(path("first"), tensors);
    await writeSafetensors(path("second"), tensors);
    const bytes = readFileSync(path("first"));
    expect(readFileSync(path("second"))).toEqual(bytes);
    expect(bytes.readBigUInt64LE(0) % 8n).toBe(0n);
    expect(bytes.subarray(8).toString("latin1")).toMatch(/^\{"2":.*"1":/);
    expect(readdirSync(folder).filter((name) => name.includes("tmp"))).toEqual([]);
  });

  it("keeps the old file when new tensors are refused", async () => {
    await writeSafetensors(path("kept"), [{ name: "a", shape: [1], data: Float32Array.of(5) }]);
    const before = readFileSync(path("kept"));
    const twice = { name: "a", shape: [1], data: Float32Array.of(6) };
    await expect(writeSafetensors(path("kept"), [twice, twice])).rejects.toThrow(/the tensor name a is taken/);
    await expect(writeSafetensors(path("kept"), [{ ...twice, shape: [2] }])).rejects.toThrow(/tensor a of shape \[2\] has 1 values/);
    expect(readFileSync(path("kept"))).toEqual(before);
  });

  it("reads a view of a larger array as its own numbers only", async () => {
    await writeSafetensors(path("view"), [{ name: "middle", shape: [2], data: Float32Array.of(1, 2, 3, 4).subarray(1, 3) }]);
    await reading(path("view"), async (f) => {
      const target = new Float32Array(4);
      await f.readFloat32("middle", target.subarray(2));
      expect(target).toEqual(Float32Array.of(0, 0, 2, 3));
      await expect(f.readFloat32("middle", target)).rejects.toThrow(/tensor middle has 2 elements, and 4 are wanted/);
    });
  });

  it("reads beyond 2 GiB without reading what lies before", async () => {
    const large = 3 * 2 ** 30;
    const header = JSON.stringify({ large: entry("U8", [large], 0, large), last: entry("F32", [1], large, large + 4) });
    const handle = await open(file("large", header), "r+");
    await handle.truncate(8 + header.length + large + 4);
    await handle.write(new Uint8Array(Float32Array.of(42).buffer), 0, 4, 8 + header.length + large);
    await handle.close();
    expect(await reading(path("large"), (f) => f.readFloat32("last"))).toEqual(Float32Array.of(42));
  });
});

describe("half precision", () => {
  it("reads float16 exactly: normal, subnormal, extremes and the infinities", async () => {
    const bits = Uint16Array.of(0x3c00, 0xc000, 0x3555, 0x0001, 0x03ff, 0x0400, 0x7bff, 0x7c00, 0xfc00, 0x8000, 0x7e00);
    const values = [1, -2, 0.333251953125, 2 ** -24, 1023 * 2 ** -24, 2 ** -14, 65504, Infinity, -Infinity, -0, Number.NaN];
    const name = file("f16", JSON.stringify({ x: entry("F16", [11], 0, 22) }), new Uint8Array(bits.buffer));
    expect(await reading(name, (f) => f.readFloat32("x"))).toEqual(Float32Array.from(values));
    expect(await reading(name, (f) => f.readFloat64("x"))).toEqual(Float64Array.from(values));
  });

  it("reads bfloat16 exactly", async () => {
    const bits = Uint16Array.of(0x3f80, 0xc000, 0x0001, 0x7f80, 0x4049);
    const name = file("bf16", JSON.stringify({ x: entry("BF16", [5], 0, 10) }), new Uint8Array(bits.buffer));
    expect(await reading(name, (f) => f.readFloat32("x"))).toEqual(Float32Array.of(1, -2, 2 ** -133, Infinity, 3.140625));
  });
});

describe("damaged files are refused in one sentence", () => {
  const data = new Uint8Array(16);
  const cases: [what: string, make: () => string, says: RegExp][] = [
    ["no file", () => path("absent"), /absent: it cannot be read \(ENOENT\); /],
    ["a few bytes", () => plain("bytes", "abc"), /it has 3 bytes/],
    ["a huge header", () => file("huge", "{}", data, 2n ** 40n), /header is said to have 1099511627776 bytes/],
    ["a header past the end", () => file("past", "{}", data, 1000n), /header of 1000 bytes passes the end/],
    ["no JSON", () => file("json", "{'a': 1}"), /header is not a JSON object/],
    ["no UTF-8", () => file("utf", Uint8Array.of(0x7b, 0xff, 0x7d)), /header is not a JSON object/],
    ["a list", () => file("list", "[]"), /header is not a JSON object/],
    ["a name twice", () => file("twice", `{"a":${JSON.stringify(entry("F32", [4], 0, 16))},"b":{"a":1},"\\u0061":1}`, data), /names the tensor a twice/],
    ["an unknown type", () => file("type", JSON.stringify({ a: entry("F12", [4], 0, 16) }), data), /tensor a has the type "F12"/],
    ["a negative size", () => file("shape", JSON.stringify({ a: entry("F32", [-4], 0, 16) }), data), /tensor a has the shape \[-4\]/],
    ["no offsets", () => file("offsets", JSON.stringify({ a: { dtype: "F32", shape: [4] } }), data), /tensor a has the offsets undefined/],
    ["a wrong byte count", () => file("count", JSON.stringify({ a: entry("F32", [3], 0, 16) }), data), /tensor a of F32 \[3\] needs 12 bytes and has 16/],
    ["an overlap", () => file("overlap", JSON.stringify({ a: entry("F32", [2], 0, 8), b: entry("F32", [3], 4, 16) }), data), /tensor b overlaps tensor a/],
    ["a gap", () => file("gap", JSON.stringify({ a: entry("F32", [1], 0, 4), b: entry("F32", [2], 8, 16) }), data), /4 bytes between tensor a and tensor b/],
    ["truncation", () => file("cut", JSON.stringify({ a: entry("F32", [4], 0, 16), b: entry("F32", [4], 16, 32) }), data), /truncated: tensor b ends at byte/],
    ["bytes behind", () => file("behind", JSON.stringify({ a: entry("F32", [2], 0, 8) }), data), /8 bytes behind tensor a belong to nothing/],
    ["odd metadata", () => file("meta", JSON.stringify({ __metadata__: { a: 1 } })), /__metadata__ is not an object of strings/],
  ];
  it.each(cases)("%s", async (_, make, says) => {
    const error = await SafetensorsFile.open(make()).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(ModelError);
    expect((error as ModelError).message).toMatch(says);
    expect((error as ModelError).message).not.toMatch(/\n/);
  });

  it("names a tensor that is not there, and a type that has no float32", async () => {
    await writeSafetensors(path("ids"), [{ name: "ids", shape: [1], data: BigInt64Array.of(1n) }]);
    await reading(path("ids"), async (f) => {
      await expect(f.readFloat32("x")).rejects.toThrow(/it has no tensor x; name one of: ids/);
      await expect(f.readFloat32("ids")).rejects.toThrow(/tensor ids holds I64/);
    });
  });
});

it("reads files of the reference implementation", async () => {
  await reading(fixture("models", "llama-tied", "expected.safetensors"), async (f) => {
    expect(f.entry("top8_ids.s0").dtype).toBe("I64");
    const logp = await f.readFloat64("logp.s0");
    expect(logp.length).toBe(20);
    expect(logp.every((x) => x < 0)).toBe(true);
  });
});
