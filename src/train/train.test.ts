import { describe, expect, it } from "vitest";
import { options, tablePolicy } from "../../test/support/tabular.js";
import { RunReader } from "./store/reader.js";
import { train } from "./train.js";

const rewards = (folder: string): number[] =>
  [...RunReader.open(folder).events()].flatMap(({ kind, data }) => (kind === "step" ? [(data.metrics as { reward: number }).reward] : []));

describe("training on a table", () => {
  it("GRPO raises the reward of a small task from chance to nearly always, on held-out problems too", async () => {
    const result = await train(
      options(await tablePolicy(), { steps: 60, problems: 12, group: 16, lr: 0.2, checkpoint: { every: 0 }, eval: { every: 30, problems: 4, samples: 50 } }),
    );
    const curve = rewards(result.folder);
    expect(result).toMatchObject({ reason: "done", steps: 60 });
    expect(curve[0]).toBeLessThan(0.1);
    expect(curve.at(-1)).toBeGreaterThan(0.9);
    const scores = [...RunReader.open(result.folder).events()].flatMap(({ kind, data }) => (kind === "evaluation" ? [data.score as number] : []));
    expect(scores).toHaveLength(3);
    expect(scores[2]).toBeGreaterThan((scores[0] as number) + 0.5);
    expect(result.evaluation["eval.score"]).toBe(scores[2]);
  });
});
