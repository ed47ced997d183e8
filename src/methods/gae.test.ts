import { describe, expect, it } from "vitest";
import { batch, group, row } from "../../test/support/batch.js";
import { unscored } from "../core/verdict.js";
import { gae, lengthAdaptiveLambda, tokenAdvantages } from "./gae.js";

const close = (found: ArrayLike<number>, wanted: readonly number[]) => {
  expect(found.length).toBe(wanted.length);
  wanted.forEach((x, t) => {
    expect(found[t]).toBeCloseTo(x, 12);
  });
};
const rewards = [0, 0.5, 0, 1];
const values = [0.2, 0.4, 0.6, 0.8];

describe("generalised advantages of four steps, by hand, gamma 0.9", () => {
  // delta: 0.9 0.4 - 0.2, 0.5 + 0.9 0.6 - 0.4, 0.9 0.8 - 0.6, 1 + 0.9 after - 0.8
  it("lambda 0 are the errors of single steps", () => {
    close(gae(rewards, values, 0, 0.9, 0), [0.16, 0.64, 0.12, 0.2]);
    close(gae(rewards, values, 0.5, 0.9, 0), [0.16, 0.64, 0.12, 0.65]);
  });

  it("lambda 0.95", () => {
    const f = 0.9 * 0.95;
    for (const [after, last] of [
      [0, 0.2],
      [0.5, 0.65],
    ] as const) {
      const a2 = 0.12 + f * last;
      const a1 = 0.64 + f * a2;
      close(gae(rewards, values, after, 0.9, 0.95), [0.16 + f * a1, a1, a2, last]);
    }
  });

  it("lambda 1 are returns less values", () => {
    const returns = (after: number) => [0.45 + 0.729 * (1 + 0.9 * after), 0.5 + 0.81 * (1 + 0.9 * after), 0.9 * (1 + 0.9 * after), 1 + 0.9 * after];
    for (const after of [0, 0.5])
      close(
        gae(rewards, values, after, 0.9, 1),
        returns(after).map((g, t) => g - values[t]),
      );
  });
});

describe("advantages of a batch", () => {
  const options = { gamma: 1, lambda: () => 1, truncated: "terminal" } as const;
  const v = (...numbers: number[]) => Float64Array.from(numbers);

  it("put the return on the episode's last token, and rewards of tokens on theirs", () => {
    const b = batch(group("p", [row("p", 0, { old: [-1, -1] })]));
    const found = tokenAdvantages(b, { values: [1], tokens: [v(-0.25, -0.5)] }, [v(0.5, 0.5, 9)], options);
    close(found[0], [0.25 - 0.5, 0.5 - 0.5]);
  });

  it("go through the turns of an episode, over what the policy did not write", () => {
    const first = row("p", 0, { old: [-1, -1, -1], mask: [1, 0, 1], episode: "e" });
    const second = row("p", 1, { old: [-1], episode: "e", turn: 1 });
    const found = tokenAdvantages(batch(group("p", [second, first])), { values: [1, 0] }, [v(0.5, 9), v(0.1, 7, 0.3, 9)], {
      ...options,
      gamma: 0.5,
      lambda: () => 0,
    });
    close(found[1], [0.5 * 0.3 - 0.1, 0, 0.5 * 0.5 - 0.3]);
    close(found[0], [0.5]);
  });

  it("take the critic's value after an answer that was cut off, where asked to", () => {
    const cut = { ...row("p", 0, { old: [-1] }), stop: "length" as const };
    const found = (truncated: "terminal" | "bootstrap") =>
      tokenAdvantages(batch(group("p", [cut])), { values: [0] }, [v(0.5, 0.7)], { ...options, truncated })[0][0];
    expect(found("terminal")).toBeCloseTo(-0.5, 12);
    expect(found("bootstrap")).toBeCloseTo(0.2, 12);
  });

  it("are 0 where there is no score", () => {
    const found = tokenAdvantages(batch(group("p", [row("p", 0, { old: [-1], verdict: unscored("down") })])), { values: [undefined] }, [v(3, 3)], options);
    expect([...found[0]]).toEqual([0]);
  });
});

it("lambda that adapts to the length stays within 0 and 1", () => {
  expect(lengthAdaptiveLambda(0.05, 200)).toBeCloseTo(0.9, 12);
  expect(lengthAdaptiveLambda(0.05, 10)).toBe(0);
  expect(lengthAdaptiveLambda(1, 1)).toBe(0);
  expect(lengthAdaptiveLambda(1, 4)).toBe(0.75);
});
