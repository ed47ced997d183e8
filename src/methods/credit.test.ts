import { describe, expect, it } from "vitest";
import { batch, group, row } from "../../test/support/batch.js";
import { Cells } from "./cell.js";
import type { Invariant } from "./contract.js";
import { Credit, perGroup, rowsOf } from "./credit.js";
import { checkInvariants } from "./invariants.js";

const turns = [
  { name: "turn", start: 0, end: 1 },
  { name: "turn", start: 2, end: 4 },
];
const b = batch(
  group("p", [row("p", 0, { old: [0, 0, 0, 0], spans: turns }), row("p", 1, { old: [0, 0] })]),
  group("q", [row("q", 0, { old: [0] }), row("q", 1, { old: [0], purpose: "aux" })]),
);
const f = (...x: number[]) => Float64Array.from(x);
const lists = (rows: readonly Float64Array[]) => rows.map((r) => [...r]);

describe("levels of credit", () => {
  it("each is a broadcast of the level above until it is written", () => {
    expect([...Credit.zero(b).group]).toEqual([0, 0]);
    const byGroup = Credit.zero(b).with("group", f(1, 2));
    expect([...byGroup.trajectory]).toEqual([1, 1, 2]);
    const byTrajectory = byGroup.with("trajectory", f(3, 4, 5));
    expect([...byTrajectory.group]).toEqual([1, 2]);
    expect(lists(byTrajectory.turn)).toEqual([[3, 3], [4], [5]]);
    const byTurn = byTrajectory.with("turn", [f(6, 7), f(8), f(9)]);
    expect(lists(byTurn.token)).toEqual([[6, 3, 7, 7], [8, 8], [9]]); // token 1 lies in no turn
    expect([...byTurn.trajectory]).toEqual([3, 4, 5]);
  });

  it("a write does not change the credit it came from", () => {
    const before = Credit.zero(b).with("trajectory", f(1, 2, 3));
    before.with("token", [f(9, 9, 9, 9), f(9, 9), f(9)]);
    expect(lists(before.token)).toEqual([[1, 1, 1, 1], [2, 2], [3]]);
  });

  it("scaling carries to finer levels that were written", () => {
    const tokens = Credit.zero(b).with("token", [f(1, 2, 3, 4), f(5, 6), f(7)]);
    expect(lists(tokens.scaled("group", f(2, -1)).token)).toEqual([[2, 4, 6, 8], [10, 12], [-7]]);
    expect(lists(tokens.scaled("trajectory", f(0, 1, 2)).token)).toEqual([[0, 0, 0, 0], [5, 6], [14]]);
  });

  it("a coarser write over a finer one is refused, because it would be lost", () => {
    const tokens = Credit.zero(b).with("token", [f(1, 2, 3, 4), f(5, 6), f(7)]);
    expect(() => tokens.with("trajectory", f(1, 2, 3))).toThrow(
      'credit at the trajectory level: the token level was written before and would be lost; multiply with scaled("trajectory", factors)',
    );
  });

  it("a wrong number of entries is refused, naming the trajectory", () => {
    expect(() => Credit.zero(b).with("trajectory", f(1, 2))).toThrow("2 entries were given for 3 trajectories");
    expect(() => Credit.zero(b).with("token", [f(1, 2, 3, 4), f(5), f(7)])).toThrow("1 entries were given for the 2 tokens of 1:p/1");
  });

  it("rows are the trained trajectories, in the order of groups", () => {
    expect(rowsOf(b).map((r) => r.key)).toEqual(["1:p/0", "1:p/1", "1:q/0"]);
    expect(perGroup(b, (rows, g) => rows.map((i) => `${g}:${i}`))).toEqual(["0:0", "0:1", "1:2"]);
  });
});

describe("invariants", () => {
  const before = Credit.zero(b).with("token", [f(1, -1, 2, 0), f(1, 1), f(-1)]);
  const mask = [[1, 1, 1, 1], [1, 0], [1]].map((m) => Uint8Array.from(m));
  const check = (keeps: Invariant[], ...token: Float64Array[]) => checkInvariants("stage", keeps, before, Credit.zero(b).with("token", token), mask);

  it("hold for a stage that keeps its promises, whatever it does outside the mask", () => {
    expect(() => check(["sign", "sum", "zero"], f(0.5, -1, 2.5, 0), f(1, -99), f(-1))).not.toThrow();
  });

  it.each([
    ["sign", f(1, 1, 2, 0), "token 1 of 1:p/0: it promises to keep sign, and made 1 of -1"],
    ["zero", f(1, -1, 2, 3), "token 3 of 1:p/0: it promises to keep zero, and made 3 of 0"],
    ["sum", f(1, -1, 3, 0), "1:p/0: it promises to keep sum, and made 3 of 2"],
  ] as const)("%s: a breach is told with the token and both numbers", (invariant, first, message) => {
    expect(() => check([invariant], first, f(1, 1), f(-1))).toThrow(`shape stage of stage, ${message}`);
  });

  it("group-sum is over the trajectories of each group", () => {
    const old = Credit.zero(b).with("trajectory", f(1, -1, 5));
    expect(() => checkInvariants("stage", ["group-sum"], old, Credit.zero(b).with("trajectory", f(3, -3, 5)), mask)).not.toThrow();
    expect(() => checkInvariants("stage", ["group-sum"], old, Credit.zero(b).with("trajectory", f(1, -2, 6)), mask)).toThrow(
      "group 1:p:main: it promises to keep group-sum, and made -1 of 0",
    );
  });
});

describe("cells", () => {
  it("count only once the step is committed, and a checkpoint gives them back", () => {
    const cells = new Cells();
    const cell = cells.cell("grpo", { cursor: 0 });
    cell.set({ cursor: 4 });
    expect(cell.get()).toEqual({ cursor: 4 });
    expect(cells.toJson()).toEqual({});
    cells.rollback();
    expect(cell.get()).toEqual({ cursor: 0 });
    cell.set({ cursor: 8 });
    cells.commit();
    const restored = new Cells();
    restored.restore(JSON.parse(JSON.stringify(cells.toJson())));
    expect(restored.cell("grpo", { cursor: 0 }).get()).toEqual({ cursor: 8 });
  });

  it("refuse what a checkpoint could not hold, where it is set", () => {
    expect(() => new Cells().cell("m", { x: 0 }).set({ x: Number.NaN })).toThrow("JSON cannot carry the number NaN");
  });
});
