import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Truncation } from "../../core/trajectory.js";
import { truncated } from "../values.js";
import { kept } from "./draw.js";
import { Graph } from "./graph.js";
import { loadRuntime } from "./runtime.js";
import { Sessions } from "./sessions.js";
import { logitsOf } from "./test-distributions.js";

/** The rules' own graph over z = log of masses whose largest is 1, one row a rule. */
function keptGraph(): Uint8Array {
  const g = new Graph();
  const z = g.input("z", "float32", ["R", "V"]);
  const rules = [g.input("mostRanks", "int64", ["R", 1]), g.input("share", "float64", ["R", 1]), g.input("leastMass", "float64", ["R", 1])] as const;
  g.output("kept", kept(g, z, g.apply("Exp", [z]), ...rules), "bool", ["R", "V"]);
  return g.build();
}

let sessions: Sessions;
beforeAll(async () => {
  sessions = new Sessions(await loadRuntime(), 1);
});
afterAll(() => sessions.close());

/** Ids that each rule keeps of masses, all rules in one call. */
async function keptOf(masses: readonly number[], rules: readonly Truncation[]): Promise<number[][]> {
  const most = Math.max(...masses);
  const z = Float32Array.from(masses, (mass) => Math.log(mass / most));
  return keptOfLogs(z, rules);
}

async function keptOfLogs(z: Float32Array, rules: readonly Truncation[]): Promise<number[][]> {
  const [R, V] = [rules.length, z.length];
  const rows = new Float32Array(R * V);
  rules.forEach((_, r) => rows.set(z, r * V));
  const numbers = (of: (rule: Truncation) => number) => sessions.double(Float64Array.from(rules, of), [R, 1]);
  const out = await sessions.run("kept", keptGraph, {
    z: sessions.float(rows, [R, V]),
    mostRanks: sessions.ints(
      BigInt64Array.from(rules, ({ topK }) => BigInt(topK ?? V)),
      [R, 1],
    ),
    share: numbers(({ topP }) => topP ?? Number.POSITIVE_INFINITY),
    leastMass: numbers(({ minP }) => minP ?? 0),
  });
  const flags = out.kept?.data as Uint8Array;
  return rules.map((_, r) => Array.from({ length: V }, (_, v) => v).filter((v) => flags[r * V + v]));
}

describe("what is kept of four tokens, by hand", () => {
  const cases: readonly (readonly [Truncation, readonly number[]])[] = [
    [{}, [0, 1, 2, 3]],
    [{ topK: 2 }, [1, 3]],
    [{ topK: 9 }, [0, 1, 2, 3]],
    [{ topP: 0.39 }, [3]],
    [{ topP: 0.41 }, [1, 3]],
    [{ topP: 0.71 }, [1, 2, 3]],
    [{ minP: 0.49 }, [1, 2, 3]],
    [{ minP: 0.51 }, [1, 3]],
    [{ minP: 1 }, [3]],
    // The share is of what top-k left: 0.4 of 0.7 is 0.571.
    [{ topK: 2, topP: 0.57 }, [3]],
    [{ topK: 2, topP: 0.58 }, [1, 3]],
    // Min-p is relative to the most likely token, whatever was taken away before.
    [{ topK: 3, topP: 0.99, minP: 0.7 }, [1, 3]],
  ];

  it.each(cases)("%j", async (rule, expected) => {
    expect(await keptOf([0.1, 0.3, 0.2, 0.4], [rule])).toEqual([expected]);
  });

  it("is of each row's own rule", async () => {
    const all = cases.map(([rule]) => rule);
    expect(await keptOf([0.1, 0.3, 0.2, 0.4], all)).toEqual(cases.map(([, expected]) => expected));
  });
});

describe("ties", () => {
  it("go to the lower id, in top-k and in top-p", async () => {
    const rules = [{ topK: 1 }, { topK: 3 }, { topP: 0.33 }, { topP: 0.34 }, { topP: 0.7 }];
    expect(await keptOf([1, 2, 2, 1], rules)).toEqual([[1], [0, 1, 2], [1], [1, 2], [0, 1, 2]]);
  });

  it("at min-p's limit stay together", async () => {
    expect(await keptOf([1, 2, 2, 1], [{ minP: 0.5 }])).toEqual([[0, 1, 2, 3]]);
  });
});

describe("a vocabulary of 49,152", () => {
  it.each(["typical", "zipf", "flat"])("keeps what the same rules in float64 keep, but for tokens at a limit within rounding: %s", async (name) => {
    const logits = logitsOf(name);
    const most = logits.reduce((a, b) => Math.max(a, b));
    const z = logits.map((logit) => Math.fround(logit - most));
    const rules: Truncation[] = [{ topK: 50 }, { topP: 0.95 }, { minP: 0.05 }, { topK: 1000, topP: 0.9, minP: 0.01 }];
    const exact = Float64Array.from(z);
    const total = Math.log(exact.reduce((sum, x) => sum + Math.exp(x), 0));
    const ids = await keptOfLogs(z, rules);
    rules.forEach((rule, r) => {
      const expected = truncated(
        exact.map((x) => x - total),
        rule,
      );
      const wanted = Array.from(expected.keys()).filter((v) => (expected[v] as number) > Number.NEGATIVE_INFINITY);
      const [own, other] = [new Set(ids[r]), new Set(wanted)];
      const different = [...own, ...other].filter((v) => own.has(v) !== other.has(v));
      const mass = different.reduce((sum, v) => sum + Math.exp((exact[v] as number) - total), 0);
      expect(wanted.length, JSON.stringify(rule)).toBeGreaterThan(1);
      expect(mass, `${JSON.stringify(rule)}: ${different.length} tokens differ`).toBeLessThan(1e-5);
    });
  });
});
