import { describe, expect, it } from "vitest";
import { played } from "../../../test/support/worked.js";
import { accept } from "../../core/verdict.js";
import type { Exchange } from "../contract.js";
import { guess, leftOf, listOf, overAndOver } from "./guess.js";

const said = (action: string, answer: string): Exchange => ({ action, observation: [{ role: "user", content: answer }] });

describe("the task guess", () => {
  it("lists numbers, one of which is meant, and is solved by halving", async () => {
    for (const { problem, episode, verdict } of await played(guess(), 80)) {
      const list = listOf(problem);
      expect([list.length, new Set(list).size, [...list].sort((a, b) => a - b)]).toEqual([7, 7, list]);
      expect(list).toContain(problem.reference.answer);
      expect(verdict).toEqual(accept());
      expect(episode.turns[0]?.action).toBe(String(list[3]));
      expect(episode.turns.at(-1)).toMatchObject({ observation: "=", info: { distance: 0 } });
    }
  });

  it("leaves what the answers leave", () => {
    const list = [2, 3, 5, 8, 13, 17, 19];
    expect(leftOf(list, [])).toEqual(list);
    expect(leftOf(list, [said("8", "+")])).toEqual([13, 17, 19]);
    expect(leftOf(list, [said("8", "-"), said("3", "+")])).toEqual([5]);
    expect(leftOf(list, [said("8", "?")])).toEqual(list);
  });

  it("has a habit with which 38 % of games are won", async () => {
    // Exact, by enumeration: W(left, k) = 0.6 W after the first number + 0.4 W after the middle, of seven numbers with three guesses.
    const games = await played(guess(overAndOver), 3000);
    const share = games.filter(({ verdict }) => verdict.kind === "accept").length / games.length;
    expect(Math.abs(share - 0.383)).toBeLessThan(4 * Math.sqrt((0.383 * 0.617) / games.length));
    const first = games.filter(({ problem, episode }) => episode.turns[0]?.action === String(listOf(problem)[0])).length / games.length;
    expect(Math.abs(first - 0.6)).toBeLessThan(4 * Math.sqrt(0.24 / games.length));
  });

  it("takes what is no number for a guess, and ends after the last", async () => {
    const step = guess().environment?.step.bind(guess().environment);
    expect(await step?.({ number: 7, guesses: 0 }, "7 8", [0, 0, 0, 0])).toEqual({
      state: { number: 7, guesses: 1 },
      observation: [{ role: "user", content: "?" }],
      info: { distance: 20 },
      done: false,
    });
    expect(await step?.({ number: 7, guesses: 2 }, "12", [0, 0, 0, 0])).toMatchObject({ observation: [{ content: "-" }], info: { distance: 5 }, done: true });
  });

  it("refuses more numbers than there are", () => {
    expect(() => guess({ numbers: 5, listed: 7 })).toThrow("task guess, option listed: got 7; give at most numbers");
  });
});
