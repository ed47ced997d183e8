import { beforeAll, describe, expect, it } from "vitest";
import { options, tablePolicy } from "../../test/support/tabular.js";
import { TableEngine } from "../engine/table/engine.js";
import { logSoftmax } from "../engine/values.js";
import { z } from "../index.js";
import { anyMethod } from "../methods/catalogue.js";
import { defineMethod } from "../methods/define.js";
import { RunReader } from "./store/reader.js";
import { type TrainOptions, train } from "./train.js";

let model: string;
beforeAll(async () => {
  model = await tablePolicy({ init: 1 });
});

/** A method whose answers come from the two most likely tokens of each place. */
const restricting = (needs: boolean) =>
  defineMethod({
    name: "restricting",
    options: z.strictObject({}),
    make: () => ({
      ...(needs && { needs: [{ for: "answers from the most likely tokens", oneOf: [{ capabilities: ["sample.truncation" as const] }] }] }),
      slots: { prepare: { run: (request) => ({ ...request, truncation: { topK: 2 } }) } },
    }),
  });

const run = (more: object = {}): TrainOptions => options(model, { steps: 1, problems: 2, group: 4, ...more } as never);

describe("training's answers", () => {
  it("are not drawn from a part of the distribution, by the configuration or by a method", async () => {
    await expect(train(run({ top_p: 0.9 }))).rejects.toThrow(
      "train, option top_p: training's answers are drawn from the whole distribution, since log-probs of a restricted draw would bias the ratio; leave it out, or restrict the draws of evaluation with eval.top_p",
    );
    await expect(train(run({ methods: [anyMethod(restricting(false))], method: "restricting" }))).rejects.toThrow(
      "rollout of step 1: method restricting trains on answers that were drawn with topK, whose log-probs are not the policy's; draw them from the whole distribution, or let the method need the capability sample.truncation",
    );
  });

  it("are where a method's specification asks for it: behaviour's log-probs are then of what was drawn from, the ratio's of the whole", async () => {
    const asked = run({ methods: [anyMethod(restricting(true))], method: "restricting", lr: 0 });
    await train(asked);
    const reader = RunReader.open(asked.out);
    const engine = new TableEngine();
    await engine.weights.load({ role: "policy", source: { from: "folder", path: model }, trainable: false });
    const rows = (await Promise.all(Array.from({ length: 8 }, (_, i) => reader.rollout(i)))).map(({ trajectory }) => trajectory);
    expect(rows.length).toBe(8);
    for (const { sampledUnder, response, behaviour, old } of rows) {
      expect(behaviour.conditions.truncation).toEqual({ topK: 2 });
      expect(old?.conditions.truncation).toBeUndefined();
      const [{ full, logp }] = await engine.score([{ context: sampledUnder, response, weights: { role: "policy" }, temperature: 1 }], { full: true });
      const vocabulary = full!.length / response.length;
      response.forEach((id, t) => {
        const two = Array.from(full!.slice(t * vocabulary, (t + 1) * vocabulary))
          .sort((a, b) => b - a)
          .slice(0, 2);
        expect(old?.values[t]).toBeCloseTo(logp[t], 12);
        expect(behaviour.values[t]).toBeCloseTo(logSoftmax(two)[two.indexOf(full![t * vocabulary + id])], 12);
      });
    }
  });
});

describe("a run's evaluation", () => {
  const scores = async (more: object): Promise<unknown> => {
    const asked = run({ eval: { every: 1, problems: 10, samples: 4, ...more }, lr: 0 });
    await train(asked);
    return [...RunReader.open(asked.out).events()].filter(({ kind }) => kind === "evaluation").map(({ data }) => [data.scores, data.entropy]);
  };

  it("may be: rules that leave one token measure what greedy decoding does", async () => {
    const greedy = await scores({ greedy: true, samples: 1 });
    expect(await scores({ top_k: 1, samples: 1 })).toEqual(greedy);
    expect(await scores({ top_p: 1e-9, samples: 1 })).toEqual(greedy);
    expect(await scores({ samples: 1 })).not.toEqual(greedy);
    expect(await scores({ top_k: 10_000, top_p: 1, min_p: 0 })).toEqual(await scores({}));
  });

  it("is refused beside greedy, and out of range", async () => {
    await expect(scores({ greedy: true, top_p: 0.9 })).rejects.toThrow(
      "train, option eval.greedy: the most likely token is the same whatever top_k, top_p or min_p leave; leave out one or the other",
    );
    await expect(scores({ top_p: 0 })).rejects.toThrow("train, option eval.top_p: got 0; give a number above 0 and at most 1");
  });
});
