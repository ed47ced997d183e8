import { describe, expect, it } from "vitest";
import { alphabetTokenizer } from "../core/alphabet.js";
import { randomKey, Stream } from "../core/random.js";
import { tokensOf } from "./spans.js";

const symbols = ["#", "10", "ten", "\n", "é", "="];
const tokenizer = alphabetTokenizer(symbols);
const decode = (ids: ArrayLike<number>): string => tokenizer.decode(ids);

describe("tokens of a range of characters", () => {
  it("are those with a character in it, in part or as a whole", () => {
    const ids = tokenizer.encode("ten=10\n#10");
    expect(tokensOf({ start: 8, end: 10 }, ids, decode)).toEqual({ start: 5, end: 6 });
    expect(tokensOf({ start: 1, end: 5 }, ids, decode)).toEqual({ start: 0, end: 3 });
    expect(tokensOf({ start: 0, end: 10 }, ids, decode)).toEqual({ start: 0, end: 6 });
  });

  it("leave out an end token behind them, which has no text", () => {
    const ids = Int32Array.from([...tokenizer.encode("#10"), tokenizer.eosIds[0] as number]);
    expect(tokensOf({ start: 1, end: 3 }, ids, decode)).toEqual({ start: 1, end: 2 });
  });

  it("agree with counting characters, for any text and range", () => {
    const random = new Stream(randomKey({ seed: 4, purpose: "spans" }));
    for (let round = 0; round < 300; round++) {
      const pieces = Array.from({ length: 1 + random.int(12) }, () => random.pick(symbols));
      const ids = Int32Array.from(pieces, (piece) => tokenizer.encode(piece)[0] as number);
      const length = pieces.join("").length;
      const start = random.int(length);
      const end = start + 1 + random.int(length - start);
      let at = 0;
      const inside = pieces.flatMap((piece, t) => {
        at += piece.length;
        return at - piece.length < end && at > start ? [t] : [];
      });
      expect(tokensOf({ start, end }, ids, decode)).toEqual({ start: inside[0], end: (inside.at(-1) as number) + 1 });
    }
  });
});
