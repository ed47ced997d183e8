import { describe, expect, it } from "vitest";
import type { TensorValue } from "../../engine/contract.js";
import { signConflict, updateOf } from "./conflict.js";
import { advanced, beforeSwitch, type SwitchOptions, type SwitchState } from "./switch.js";

const options = (more: Partial<SwitchOptions> = {}): SwitchOptions => ({ switch_at: "plateau", improvement: 0.005, patience: 3, ...more });

/** The state after evaluations of these scores, one every two steps from step 0 on. */
function evaluated(scores: readonly number[], own: SwitchOptions, from: SwitchState = beforeSwitch): SwitchState[] {
  const states: SwitchState[] = [];
  let state = from;
  for (let step = 1; step <= 2 * scores.length; step++) {
    state = advanced(state, step, { score: scores[(step - 1) >> 1], at: 2 * ((step - 1) >> 1) }, own);
    states.push(state);
  }
  return states;
}

describe("the switch", () => {
  it("by steps comes after as many as it says, once", () => {
    const states = evaluated([0, 0, 0, 0], options({ switch_at: 3 }));
    expect(states.map(({ switched }) => switched)).toEqual([null, null, 3, 3, 3, 3, 3, 3]);
    expect(states.at(-1)).toMatchObject({ steps: 8, reason: "3 steps are done" });
  });

  it("at a plateau comes after three evaluations without a rise of half a point, with its reason, once", () => {
    // 0.30 stands; 0.304 and 0.3 are no rise by 0.005; 0.305 is; then three without one.
    const states = evaluated([0.3, 0.304, 0.3, 0.305, 0.309, 0.2, 0.3, 0.9], options());
    expect(states.map(({ stale }) => stale).filter((_, i) => i % 2 === 0)).toEqual([0, 1, 2, 0, 1, 2, 3, 3]);
    expect(states.map(({ switched }) => switched).filter((s, i, all) => s !== all[i - 1])).toEqual([null, 13]);
    expect(states.at(-1)?.reason).toBe("the score has not risen by 0.005 over 0.305 in 3 evaluations and is 0.3 after step 12");
  });

  it("counts an evaluation once, however many steps see it, and steps without any not at all", () => {
    let state: SwitchState = beforeSwitch;
    for (let step = 1; step <= 30; step++) state = advanced(state, step, { score: 0.3, at: 0 }, options());
    expect(state).toMatchObject({ switched: null, stale: 0, steps: 30 });
    for (let step = 31; step <= 60; step++) state = advanced(state, step, { score: undefined, at: undefined }, options());
    expect(state.switched).toBeNull();
  });

  it("never comes where it is told never to", () => {
    expect(evaluated([0.3, 0.3, 0.3, 0.3, 0.3, 0.3], options({ switch_at: "never" })).every(({ switched }) => switched === null)).toBe(true);
  });

  it("goes on from a stored state as if nothing had been between", () => {
    const scores = [0.3, 0.301, 0.302, 0.303, 0.304];
    const whole = evaluated(scores, options());
    const stored = JSON.parse(JSON.stringify(whole[3])) as SwitchState;
    let state = stored;
    for (let step = 5; step <= 10; step++) state = advanced(state, step, { score: scores[(step - 1) >> 1], at: 2 * ((step - 1) >> 1) }, options());
    expect(state).toEqual(whole[9]);
    expect(state.switched).toBe(7);
  });
});

describe("the conflict of two updates", () => {
  const tensors = (a: readonly number[], b: readonly number[]): TensorValue[] => [
    { name: "a", shape: [a.length], data: Float64Array.from(a) },
    { name: "b", shape: [b.length], data: Float64Array.from(b) },
  ];

  it("by hand: of five parameters two go back and forth, one does not move", () => {
    const [start, middle, end] = [tensors([0, 0, 0], [0, 0]), tensors([1, -1, 2], [1, 0]), tensors([2, 1, 1], [3, 5])];
    // First: + - + + 0. Second: + + - + +.
    expect(signConflict(updateOf(start, middle), updateOf(middle, end))).toBe(2 / 5);
    expect(signConflict(updateOf(start, middle), updateOf(start, middle))).toBe(0);
    expect(signConflict(updateOf(start, middle), updateOf(middle, start))).toBe(4 / 5);
  });

  it("does not depend on the order of tensors, and is refused between models that are not alike", () => {
    const [a, b] = [tensors([1, 2, 3], [1, 1]), tensors([-1, 2, 3], [1, -1])];
    expect(signConflict(a, [...b].reverse())).toBe(2 / 5);
    expect(() => updateOf(a, b.slice(1))).toThrow("tensor a: the other checkpoint does not have it in this size; give checkpoints of one model");
  });
});
