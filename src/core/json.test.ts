import { describe, expect, it } from "vitest";
import { canonicalJson, hashJson, type Json, sha256 } from "./json.js";

describe("canonical JSON", () => {
  it("does not depend on the order in which keys were set, at any depth", () => {
    expect(canonicalJson({ b: 1, a: { d: [1, { z: 0, y: null }], c: "x" } })).toBe('{"a":{"c":"x","d":[1,{"y":null,"z":0}]},"b":1}');
    expect(canonicalJson({ a: 1, b: 2 })).toBe(canonicalJson({ b: 2, a: 1 }));
    // Whole-number keys come first in a JavaScript object; here they sort as text.
    expect(canonicalJson({ 10: 1, 9: 2, b: 3, "": 4 })).toBe('{"":4,"10":1,"9":2,"b":3}');
  });

  it("keeps the order of lists, and tells types apart", () => {
    expect(canonicalJson([2, 1])).toBe("[2,1]");
    const values: Json[] = [null, false, 0, "", "0", "null", [], {}, [null], { a: null }, ["a"], { 0: "a" }];
    expect(new Set(values.map(canonicalJson)).size).toBe(values.length);
  });

  it("is read back by JSON.parse, for awkward texts too", () => {
    const value = { 'quote"': "line\nbreak", "\u2028": "\ud800", é: [1e-7, 1e21, -0.5] };
    expect(JSON.parse(canonicalJson(value))).toEqual(value);
  });

  it("leaves out undefined as JSON does, and refuses numbers that JSON has not", () => {
    expect(canonicalJson({ a: undefined, b: 1 } as unknown as Json)).toBe('{"b":1}');
    for (const bad of [Number.NaN, Infinity, -Infinity]) expect(() => canonicalJson({ a: [bad] })).toThrow(`JSON cannot carry the number ${bad}`);
  });
});

describe("hashes", () => {
  it("are SHA-256 in hexadecimal (FIPS 180-2, appendix B.1), of texts as UTF-8", () => {
    expect(sha256("abc")).toBe("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    expect(sha256("é")).toBe(sha256(Uint8Array.of(0xc3, 0xa9)));
  });

  it("are equal for equal values", () => {
    expect(hashJson({ a: 1, b: [2] })).toBe(hashJson({ b: [2], a: 1 }));
    expect(hashJson({ a: 1 })).not.toBe(hashJson({ a: "1" }));
  });
});
