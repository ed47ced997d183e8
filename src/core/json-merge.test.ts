import { describe, expect, it } from "vitest";
import type { Json } from "./json.js";
import { mergeJson } from "./json-merge.js";

const refuse = (path: readonly string[]): never => {
  throw new Error(path.join("."));
};
const merged = (base: Json | undefined, ours: Json, theirs: Json) => mergeJson(base, ours, theirs, refuse);

describe("two changes of one value", () => {
  it("both count where they touch other keys, at any depth", () => {
    const base = { cursor: 4, seen: { a: 1, b: 2 }, rest: [1] };
    expect(merged(base, { ...base, seen: { a: 5, b: 2 } }, { ...base, cursor: 8, seen: { a: 1, b: 2, c: 3 } })).toEqual({
      cursor: 8,
      seen: { a: 5, b: 2, c: 3 },
      rest: [1],
    });
  });

  it("both count where one took away or neither was there before", () => {
    expect(merged({ a: 1, b: 2 }, { b: 2 }, { a: 1, b: 3 })).toEqual({ b: 3 });
    expect(merged(undefined, { a: 1 }, { b: 2 })).toEqual({ a: 1, b: 2 });
    expect(merged(3, 3, 7)).toBe(7);
  });

  it("do not go together where they touch the same place, which is named", () => {
    expect(() => merged({ a: { n: 1 } }, { a: { n: 2 } }, { a: { n: 3 } })).toThrow("a.n");
    expect(() => merged({ a: [1] }, { a: [1, 2] }, { a: [1, 3] })).toThrow("a");
    expect(() => merged({ a: 1 }, {}, { a: 2 })).toThrow("a");
    expect(() => merged({ a: 1 }, { a: 2 }, { a: 2 })).toThrow("a");
  });

  it("keep names that objects have of their own", () => {
    expect(JSON.stringify(merged({}, JSON.parse('{"__proto__":1}'), { constructor: 2 }))).toBe('{"__proto__":1,"constructor":2}');
  });
});
