import { describe, expect, it } from "vitest";
import { rewarded } from "../../../test/support/batch.js";
import { lossAt, made } from "../../../test/support/method.js";
import { gpg, gpgOptions } from "./gpg.js";

const b = rewarded([1, 0], [1, 1], [0, 0], [1, null]);
const now = b.groups.flatMap(({ trajectories }) => trajectories.map(() => [-1]));
const advantages = async (options: object) => [...(await lossAt(made(gpg, options), b, now)).c.credit.trajectory];

describe("GPG, by hand", () => {
  it("one group of four has signal: A = 4 (R - 1/2)", async () => {
    expect(await advantages({})).toEqual([2, -2, 0, 0, 0, 0, 0, 0]);
    expect(await advantages({ rescale: false })).toEqual([0.5, -0.5, 0, 0, 0, 0, 0, 0]);
  });

  it("divided by the group's deviation where asked to", async () => {
    const a = 0.5 / (Math.sqrt(1 / 2) + 1e-6);
    expect((await advantages({ norm: "sample", rescale: false }))[0]).toBeCloseTo(a, 12);
  });

  it("is the mean over the 7 scored tokens of -A l", async () => {
    const { value, d } = await lossAt(made(gpg), b, [[-0.5], [-3], ...now.slice(2)]);
    expect(value).toBeCloseTo(-(1 / 7) * (2 * -0.5 - 2 * -3), 12);
    expect(d[0]?.[0]).toBeCloseTo(-2 / 7, 12);
    expect(d[1]?.[0]).toBeCloseTo(2 / 7, 12);
  });

  it("without any signal all is 0", async () => {
    const silent = rewarded([1, 1], [0, 0]);
    expect([...(await lossAt(made(gpg), silent, [[-1], [-1], [-1], [-1]])).c.credit.trajectory]).toEqual([0, 0, 0, 0]);
  });
});

it("has the documented defaults", () => expect(gpgOptions.parse({})).toEqual({ norm: "none", rescale: true }));
