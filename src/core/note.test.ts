import { describe, expect, it } from "vitest";
import { note, notesOf, restoreNotes } from "./note.js";
import type { Problem } from "./problem.js";

const problem = (): Problem => Object.freeze({ key: "p", prompt: [], reference: { state: "none", version: 0 } }) as Problem;

describe("a note", () => {
  it("is what was written, on that holder alone, also when the holder is frozen", () => {
    const prior = note<number>("prior");
    const [a, b] = [problem(), problem()];
    prior.set(a, 0.25);
    expect([prior.get(a), prior.get(b)]).toEqual([0.25, undefined]);
    prior.set(a, 0.5);
    expect(prior.get(a)).toBe(0.5);
  });

  it("falls back only when nothing was written: 0, false, the empty text and null are values", () => {
    const on = problem();
    const any = note<null | boolean | number | string>("any", "fallback");
    expect(any.get(on)).toBe("fallback");
    for (const value of [0, false, "", null]) {
      any.set(on, value);
      expect(any.get(on)).toBe(value);
    }
  });

  it("is the same for two declarations of one id", () => {
    const on = problem();
    note<number>("shared").set(on, 3);
    expect(note<number>("shared").get(on)).toBe(3);
    expect(note<number>("not shared").get(on)).toBe(undefined);
  });

  it("survives being stored and put back, and is listed in the order of ids", () => {
    const on = problem();
    note("b").set(on, [1, null]);
    note("a").set(on, { x: 1 });
    const stored = JSON.parse(JSON.stringify(notesOf(on)));
    expect(Object.keys(stored)).toEqual(["a", "b"]);
    const again = problem();
    note("gone").set(again, 1);
    restoreNotes(again, stored);
    expect(notesOf(again)).toEqual({ a: { x: 1 }, b: [1, null] });
    expect(notesOf(problem())).toEqual({});
  });
});
