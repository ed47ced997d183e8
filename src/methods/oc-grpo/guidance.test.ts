import { describe, expect, it } from "vitest";
import { randomKey, Stream } from "../../core/random.js";
import { prefixOf } from "./guidance.js";

describe("the prefix of a solution", () => {
  it("by hand: shares of 13 characters, cut back to a word", () => {
    const text = "+3=8\n*4=10\n#8";
    expect([0, 0.2, 0.3, 0.35, 0.4, 0.8, 0.9, 1].map((share) => prefixOf(text, share))).toEqual([
      "", // 0 characters
      "", // 2: within the first word
      "", // 3
      "+3=8", // 4
      "+3=8", // 5: the line's end is no word
      "+3=8\n*4=10", // 10
      "+3=8\n*4=10", // 11
      text,
    ]);
  });

  it("never cuts a word, grows with the share, and is its own prefix", () => {
    const random = new Stream(randomKey({ seed: 5, purpose: "prefix" }));
    for (let round = 0; round < 400; round++) {
      const text = Array.from({ length: 1 + random.int(40) }, () => random.pick([..."ab=# \n\té"])).join("");
      const [a, b] = [random.next(), random.next()].sort((x, y) => x - y) as [number, number];
      const [short, long] = [prefixOf(text, a), prefixOf(text, b)];
      expect(text.startsWith(long)).toBe(true);
      expect(long.startsWith(short)).toBe(true);
      expect(prefixOf(short, 1)).toBe(short);
      expect(short.length).toBeLessThanOrEqual(a * text.length);
      const words = (of: string): string[] => of.split(/\s+/).filter(Boolean);
      const [some, all] = [words(short), words(text)];
      expect(some).toEqual(all.slice(0, some.length));
    }
    expect(prefixOf("any text at all ", 1)).toBe("any text at all ");
  });
});
