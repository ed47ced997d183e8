/** JSON is read as JSON.parse reads it, and what that lets pass is refused with its place. */
import { describe, expect, it } from "vitest";
import { deepest, placeIn, readJson } from "./json-text.js";
import { randomKey, Stream } from "./random.js";

/** What JSON.parse makes of a text, undefined where it throws. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

describe("reading JSON", () => {
  it("agrees with JSON.parse on texts from pieces of JSON, in any order", () => {
    const pieces = [
      "{",
      "}",
      "[",
      "]",
      ":",
      ",",
      '"a"',
      '"b"',
      "1",
      "-0.5e3",
      "01",
      "true",
      "null",
      "nul",
      " ",
      "\n",
      '"\\u00e9"',
      '"\\x"',
      '"',
      "\\",
      "\u00a0",
      "-",
    ];
    const random = new Stream(randomKey({ seed: 1, purpose: "json" }));
    let accepted = 0;
    for (let i = 0; i < 20_000; i++) {
      const text = Array.from({ length: 1 + random.int(7) }, () => pieces[random.int(pieces.length)]).join("");
      const { value, fault } = readJson(text);
      if (fault?.cause.includes("there twice")) continue;
      expect(fault === undefined ? value : undefined, text).toEqual(parsed(text));
      if (fault === undefined) accepted++;
    }
    expect(accepted).toBeGreaterThan(500);
  });

  it("keeps a value through writing and reading", () => {
    const value = { a: [1, -2.5, 1e21, 'é\n"\\', { b: null, "": true }], c: {}, d: [] };
    expect(readJson(JSON.stringify(value, null, 2)).value).toEqual(value);
  });

  it.each([
    ['{"a": 1, "a": 2}', 'the key "a" is there twice', 10],
    ['{"a": 1, "\\u0061": 2}', 'the key "a" is there twice', 10],
    ["[1e999]", "the number 1e999 is too large", 2],
    [`${"[".repeat(deepest + 1)}${"]".repeat(deepest + 1)}`, `it is nested more than ${deepest} deep`, deepest + 1],
    ['{"é": "a\tb"}', "a tab stands in a text, where it must be escaped", 9],
    ['{"a": 1', "it ends before }", 8],
    ['["a', "a text is not closed", 2],
    ["", "there is no value", 1],
    ["1 2", "2 stands behind the value", 3],
  ])("refuses %j", (text, cause, column) => {
    const { fault } = readJson(text);
    expect(fault?.cause).toBe(cause);
    expect(placeIn(text, fault?.at ?? -1)).toEqual({ line: 1, column });
  });

  it("lets two objects beside each other have the same keys", () => {
    expect(readJson('[{"a": 1}, {"a": {"a": 2}}]').value).toEqual([{ a: 1 }, { a: { a: 2 } }]);
  });
});
