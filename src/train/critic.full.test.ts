/** A critic beside the exact value function, on a softmax table whose states are few enough to enumerate all answers. */
import { expect, it } from "vitest";
import { options, successor, tablePolicy, tokenizer } from "../../test/support/tabular.js";
import type { Trajectory } from "../core/trajectory.js";
import { TableEngine } from "../engine/table/engine.js";
import { enumerate } from "../engine/table/enumerate.js";
import { anyMethod } from "../methods/catalogue.js";
import { rowsOf } from "../methods/credit.js";
import { defineMethod } from "../methods/define.js";
import { train } from "./train.js";

const maxTokens = 3;

/** Expected reward after each prefix of each answer, by problem: key to `prompt ids|response ids`. */
async function exactValues(policy: string): Promise<(row: Trajectory, token: number) => number> {
  const engine = new TableEngine();
  await engine.weights.load({ role: "policy", source: { from: "folder", path: policy }, trainable: false });
  const known = new Map<string, Map<string, { mass: number; earned: number }>>();
  for (const problem of successor().problems("train", 12, 0)) {
    const ids = tokenizer.render(problem.prompt, { addGenerationPrompt: true });
    const context = { ids, label: "plain" };
    const outcomes = await enumerate(engine, { context, weights: { role: "policy" }, temperature: 1, maxTokens, stopIds: tokenizer.eosIds });
    const prefixes = new Map<string, { mass: number; earned: number }>();
    for (const { ids: response, probability } of outcomes) {
      const right = tokenizer.decode(response) === problem.reference.answer ? 1 : 0;
      for (let t = 0; t < response.length; t++) {
        const key = [...response.slice(0, t)].join();
        const at = prefixes.get(key) ?? { mass: 0, earned: 0 };
        prefixes.set(key, { mass: at.mass + probability, earned: at.earned + probability * right });
      }
    }
    known.set(problem.key, prefixes);
  }
  await engine.close();
  return (row, token) => {
    const found = known.get(row.problem)?.get([...row.response.slice(0, token)].join());
    if (found === undefined) throw new Error(`${row.key} cannot be drawn`);
    return found.earned / found.mass;
  };
}

/** 1 - Var(R - V) / Var(R) over all tokens. */
function explained(rows: readonly { readonly returns: number; readonly values: readonly number[] }[]): number {
  const variance = (xs: readonly number[]): number => {
    const mean = xs.reduce((a, b) => a + b, 0) / xs.length;
    return xs.reduce((sum, x) => sum + (x - mean) ** 2, 0) / xs.length;
  };
  const tokens = rows.flatMap(({ returns, values }) => values.map((value) => [returns, value] as const));
  return 1 - variance(tokens.map(([r, v]) => r - v)) / variance(tokens.map(([r]) => r));
}

it("explains at least nine tenths of the variance that the exact value function explains", async () => {
  const fresh = await tablePolicy({ order: 3 }); // so that a state after the first token still holds the digit that was asked about
  const { model } = await train(options(fresh, { steps: 22, problems: 8, group: 16, checkpoint: { every: 0 } }));
  const exact = await exactValues(model);
  const seen: { step: number; exact: { returns: number; values: number[] }[]; critic: number }[] = [];
  const watch = anyMethod(
    defineMethod({
      name: "watch",
      make: () => ({
        slots: {
          observe: {
            run: ({ step, batch, rewards, metrics }) => {
              const rows = rowsOf(batch).map((row, i) => ({
                returns: rewards.values[i] as number,
                values: [...row.response.keys()].map((t) => exact(row, t)),
              }));
              seen.push({ step, exact: rows, critic: metrics.value_explained ?? 0 });
              return {};
            },
          },
        },
      }),
    }),
  );
  const values: number[] = [];
  await train(
    options(model, {
      method: [{ name: "ppo", options: { policy: "frozen" } }, "watch"],
      methods: [watch],
      roles: { critic: { lr: 0.1 } },
      lr: 0.1,
      schedule: { kind: "linear" },
      steps: 200,
      problems: 8,
      group: 16,
      checkpoint: { every: 0 },
      onProgress: (progress) => progress.kind === "step" && values.push(progress.metrics.value_explained ?? 0),
    }),
  );
  const last = 30;
  const byCritic = values.slice(-last).reduce((sum, x) => sum + x / last, 0);
  const byExact = seen.slice(-last).reduce((sum, batch) => sum + explained(batch.exact) / last, 0);
  expect(byExact).toBeGreaterThan(0.2);
  expect(byCritic / byExact).toBeGreaterThan(0.9);
  expect(byCritic).toBeLessThan(byExact + 0.02);
}, 60_000);
