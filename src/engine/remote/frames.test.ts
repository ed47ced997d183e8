import { describe, expect, it } from "vitest";
import { EngineError } from "../../core/errors.js";
import { Stream } from "../../core/random.js";
import { encodeFrame, FrameDecoder, protocolVersion } from "./frames.js";

const place = "engine at test";
const bytesOf = (...messages: unknown[]): Buffer => Buffer.concat(messages.flatMap((message) => encodeFrame(message)));

function decode(bytes: Uint8Array, cuts: readonly number[] = []): unknown[] {
  const decoder = new FrameDecoder({ place });
  const messages: unknown[] = [];
  const borders = [0, ...cuts, bytes.length];
  for (let i = 1; i < borders.length; i++) messages.push(...decoder.push(bytes.subarray(borders[i - 1], borders[i])));
  decoder.end();
  return messages;
}

/** A random tree of everything that a message may hold. */
function anything(random: Stream, depth = 0): unknown {
  const leaf = [
    () => null,
    () => random.int(2) === 1,
    () => random.normal(),
    () => random.pick([NaN, Infinity, -Infinity, -0, 0, Number.MAX_SAFE_INTEGER]),
    () => random.pick(["", "é\u2028🙂", '"\\', "$array"]),
    () => Float64Array.from({ length: random.int(5) }, () => random.normal()),
    () => Float32Array.from({ length: random.int(5000) }, () => random.normal()),
    () => Int32Array.from({ length: random.int(4) }, () => random.int(1000) - 500),
    () => Uint8Array.from({ length: random.int(18000) }, () => random.int(256)),
    () => BigInt64Array.from({ length: random.int(3) }, () => BigInt(random.int(1e9)) * -4294967296n),
  ];
  const kind = random.int(depth < 3 ? 4 : 2);
  if (kind < 2) return random.pick(leaf)();
  const size = random.int(5);
  if (kind === 2) return Array.from({ length: size }, () => (random.int(6) === 0 ? undefined : anything(random, depth + 1)));
  const keys = ["a", "$array", "$$", "$number", "__proto__", "constructor", "b c"];
  return Object.fromEntries(Array.from({ length: size }, () => [random.pick(keys), anything(random, depth + 1)]));
}

describe("frames", () => {
  it("carry every value through any cutting of the byte stream", () => {
    const random = new Stream([1, 2, 3, 4]);
    for (let round = 0; round < 40; round++) {
      const messages = Array.from({ length: 1 + random.int(3) }, () => anything(random));
      const bytes = bytesOf(...messages);
      const cuts = Array.from({ length: random.int(30) }, () => random.int(bytes.length)).sort((a, b) => a - b);
      expect(decode(bytes, cuts)).toEqual(messages);
    }
  });

  it("carry a small message cut at every single byte", () => {
    const message = { ids: Int32Array.of(1, -2, 3), logp: Float64Array.of(-0.5), empty: new Float32Array(0), text: "é" };
    const bytes = bytesOf(message, message);
    expect(decode(bytes, Array.from(bytes.keys()))).toEqual([message, message]);
  });

  it("keep the bits of not-a-number and of subviews", () => {
    const whole = new Float32Array(new Uint32Array([0x7fc12345, 0x80000000, 1, 2]).buffer);
    const [received] = decode(bytesOf(whole.subarray(0, 3))) as [Float32Array];
    expect([...new Uint32Array(received.buffer, received.byteOffset, received.length)]).toEqual([0x7fc12345, 0x80000000, 1]);
  });

  it("send large arrays from where they are and receive each into a buffer of its own", () => {
    const large = new Float64Array(5000).fill(1.5);
    expect(encodeFrame({ small: Int32Array.of(1), large }).some((chunk) => chunk.buffer === large.buffer)).toBe(true);
    const [received] = decode(bytesOf({ small: Int32Array.of(1), large })) as [{ large: Float64Array }];
    expect(received.large.buffer.byteLength).toBe(large.byteLength);
  });

  it("drop undefined fields and keep undefined entries", () => {
    expect(decode(bytesOf({ a: undefined, b: [undefined, 1] }))).toEqual([{ b: [undefined, 1] }]);
    expect(Object.keys(decode(bytesOf({ a: undefined }))[0] as object)).toEqual([]);
  });

  it("refuse to send what the other side could not rebuild", () => {
    expect(() => encodeFrame({ has: new Set([1]) })).toThrow("Set");
    expect(() => encodeFrame({ run: () => 1 })).toThrow("function");
    expect(() => encodeFrame(new Uint16Array(2))).toThrow("Uint16Array");
  });
});

describe("a damaged stream", () => {
  const good = bytesOf({ a: Float64Array.of(1, 2) });
  const changed = (at: number, value: number): Buffer => {
    const bytes = Buffer.from(good);
    bytes[at] = value;
    return bytes;
  };

  it.each([
    ["another protocol", Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n"), "not a Touchstone frame"],
    ["another version", changed(4, 9), `speaks version 9 of the engine protocol and this side version ${protocolVersion}`],
    ["an end within a frame", good.subarray(0, good.length - 3), "ended within a frame"],
    ["an end within the greeting", good.subarray(0, 5), "ended within a frame (5 of 8 bytes of its greeting)"],
    ["a header that is no JSON", changed(24, 33), "header is not JSON"],
    ["another number of arrays", changed(12, 2), "list of arrays"],
    ["another body length", changed(16, 24), "its arrays need 16 bytes and it has 24"],
    ["a reference without its array", Buffer.from(good.toString("latin1").replace('"$array":0', '"$array":7'), "latin1"), "array 7 of 1"],
    ["an unknown number type", Buffer.from(good.toString("latin1").replace('"f64"', '"f16"'), "latin1"), "list of arrays"],
  ])("is named: %s", (_, bytes, words) => {
    const attempt = (): unknown => decode(bytes);
    expect(attempt).toThrow(EngineError);
    expect(attempt).toThrow(words);
    expect(attempt).toThrow(place);
  });

  it("is refused over the limit before anything is allocated", () => {
    const decoder = new FrameDecoder({ place, limit: 1000 });
    const announced = bytesOf({ a: new Float64Array(200) }).subarray(0, 24);
    expect(() => decoder.push(announced)).toThrow("over the limit of 1000");
  });
});
