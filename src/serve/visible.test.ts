import { describe, expect, it } from "vitest";
import { randomKey, Stream } from "../core/random.js";
import { Visible } from "./visible.js";

/** What is shown of a text that comes in these pieces. */
function shown(pieces: readonly string[], stops: readonly string[], whole = false): { parts: string[]; ended: string | undefined } {
  const visible = new Visible(stops, whole);
  const parts = [...pieces.map((piece) => visible.push(piece)), visible.end()];
  return { parts, ended: visible.ended };
}

describe("visible text", () => {
  it("comes at once where no stop string can begin in it, and is held where one can", () => {
    expect(shown(["ab", "cd"], []).parts).toEqual(["ab", "cd", ""]);
    expect(shown(["a\n", "\nb"], ["\n\n"])).toEqual({ parts: ["a", "", ""], ended: "\n\n" });
    expect(shown(["a\n", "b"], ["\n\n"]).parts).toEqual(["a", "\nb", ""]);
    expect(shown(["a\n"], ["\n\n"]).parts).toEqual(["a", "\n"]);
  });

  it("ends before the first of several stop strings, or with it", () => {
    expect(shown(["one END two STOP"], ["STOP", "END"])).toEqual({ parts: ["one ", ""], ended: "END" });
    expect(shown(["one EN", "D two"], ["END"], true)).toEqual({ parts: ["one ", "END", ""], ended: "END" });
  });

  it("is the text before the stop string that is complete first, however it is cut into pieces", () => {
    const random = new Stream(randomKey({ seed: 1, purpose: "test/visible" }));
    for (let i = 0; i < 500; i++) {
      const text = Array.from({ length: 30 }, () => random.pick(["a", "b", "\n"])).join("");
      const stops = [random.pick(["ab", "a\n", "bba", "\n\n\n"]), "ba\nb"];
      const pieces: string[] = [];
      for (let at = 0; at < text.length; ) {
        const length = 1 + random.int(4);
        pieces.push(text.slice(at, at + length));
        at += length;
      }
      const ends = stops.flatMap((stop) => (text.includes(stop) ? [{ end: text.indexOf(stop) + stop.length, at: text.indexOf(stop) }] : []));
      const first = ends.sort((a, b) => a.end - b.end || a.at - b.at)[0]?.at ?? text.length;
      expect(shown(pieces, stops).parts.join(""), JSON.stringify([text, stops])).toBe(text.slice(0, first));
    }
  });
});
