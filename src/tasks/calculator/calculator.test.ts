import { describe, expect, it } from "vitest";
import { played } from "../../../test/support/worked.js";
import { accept } from "../../core/verdict.js";
import { calculator, givesUp } from "./calculator.js";

describe("the task calculator", () => {
  it("is solved by its worked conversations: a call an operation, then the answer", async () => {
    const task = calculator();
    for (const { problem, episode, verdict } of await played(task, 60)) {
      const { operations } = problem.tags as { readonly operations: number };
      expect(verdict).toEqual(accept());
      expect(episode.turns.map(({ action }) => action.replaceAll(/\d+/g, "n"))).toEqual([
        ...Array.from({ length: operations }, () => expect.stringMatching(/^calc\(n[+*-]n\)$/)),
        "#n",
      ]);
      expect(episode.ids.length).toBe(9 * operations + 3);
    }
    expect(task.maxTokens).toBe(66);
  });

  it("gives up at products in the habit, which leaves a start that reinforcement can use", async () => {
    const all = await played(calculator(givesUp), 2000);
    // Right to the end with probability (1 - 0.65/3)^n for n = 3, 4, 5 and, with slips, a little less; some are right by chance.
    const share = all.filter(({ verdict }) => verdict.kind === "accept").length / all.length;
    expect(share).toBeGreaterThan(0.3);
    expect(share).toBeLessThan(0.45);
    const atProducts = { called: 0, answered: 0 };
    for (const { problem, episode } of all) {
      const asked = [...(problem.prompt[0]?.content ?? "").matchAll(/[+*-]/g)].map(([operator]) => operator);
      episode.turns.forEach(({ action }, t) => {
        if (asked[t] === "*") atProducts[action.startsWith("#") ? "answered" : "called"]++;
        else if (t < asked.length) expect(action).toMatch(/^calc\(/);
      });
    }
    const count = atProducts.called + atProducts.answered;
    expect(Math.abs(atProducts.answered / count - 0.65)).toBeLessThan(4 * Math.sqrt((0.65 * 0.35) / count));
  });

  it("answers what is no operation by a question mark", async () => {
    const task = calculator();
    const step = task.environment?.step({ calls: 0 }, "calc(3+4*2)", [0, 0, 0, 0]);
    expect(await step).toMatchObject({ observation: [{ role: "tool", content: "?" }], info: { failed: 1 }, done: false });
    expect(await task.environment?.step({ calls: 0 }, "calc(8*4)", [0, 0, 0, 0])).toMatchObject({ observation: [{ content: "10" }] });
  });

  it("refuses options that cannot be meant", () => {
    expect(() => calculator({ min_operations: 5, max_operations: 4 })).toThrow("task calculator, option max_operations: got 4; give at least min_operations");
  });
});
