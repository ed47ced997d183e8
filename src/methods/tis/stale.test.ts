/** TIS with a sampler four steps behind at three times the learning rate, against the exact gradient of the expected reward, on a softmax table. */
import { beforeAll, describe, expect, it } from "vitest";
import { batch, group, row } from "../../../test/support/batch.js";
import { lossAt, made } from "../../../test/support/method.js";
import { options, successor, tablePolicy, tokenizer } from "../../../test/support/tabular.js";
import { plainContext } from "../../core/problem.js";
import type { Trajectory } from "../../core/trajectory.js";
import { accept, reject } from "../../core/verdict.js";
import type { Sequence } from "../../engine/contract.js";
import { TableEngine } from "../../engine/table/engine.js";
import { enumerate } from "../../engine/table/enumerate.js";
import { RunReader } from "../../train/store/reader.js";
import { train } from "../../train/train.js";
import type { Method } from "../contract.js";
import { reinforce } from "../reinforce/reinforce.js";
import { compose } from "../resolve.js";
import { tis } from "./tis.js";

const lag = 4;
const usualRate = 0.3;
const maxTokens = 2;
const methods = { without: made(reinforce), with: compose(made(reinforce), made(tis)) };
const problems = successor().problems("train", 12, 0);

/** Every answer to every problem that the stale policy can give, as a batch, with the probability of each, and its log-probs under both policies. */
async function allAnswers(stale: TableEngine, present: TableEngine): Promise<{ rows: Trajectory[]; probabilities: number[] }> {
  const all: Trajectory[] = [];
  const probabilities: number[] = [];
  for (const { key, prompt, reference } of problems) {
    const context = plainContext(tokenizer.render(prompt, { addGenerationPrompt: true }));
    const outcomes = await enumerate(stale, { context, weights: { role: "policy" }, temperature: 1, maxTokens, stopIds: tokenizer.eosIds });
    const sequences = outcomes.map(({ ids }): Sequence => ({ context, response: ids, weights: { role: "policy" }, temperature: 1 }));
    const [sampler, trainer] = [await stale.score(sequences), await present.score(sequences)];
    outcomes.forEach(({ ids, probability }, i) => {
      const right = tokenizer.decode(ids) === reference.answer;
      const [behaviour, old] = [[...(sampler[i]?.logp ?? [])], [...(trainer[i]?.logp ?? [])]];
      all.push({
        ...row(key, i, { old, behaviour, verdict: right ? accept() : reject("wrong") }),
        sampledUnder: context,
        trainedUnder: context,
        response: ids,
      });
      probabilities.push(probability);
    });
  }
  return { rows: all, probabilities };
}

/** The gradient with respect to the table of the present policy, of a loss with these derivatives. */
async function gradientOf(present: TableEngine, rows: readonly Trajectory[], dLogp: readonly (readonly number[])[]): Promise<Float64Array> {
  await present.weights.zeroGradient("role:policy");
  const sequences = rows.map(({ trainedUnder: context, response }): Sequence => ({ context, response, weights: { role: "policy" }, temperature: 1 }));
  const { handle } = await present.forward(sequences);
  await present.backward(
    handle,
    dLogp.map((d) => ({ dLogp: Float64Array.from(d) })),
    "role:policy",
  );
  const [gradient] = await present.weights.readGradient("role:policy", ["logits.weight"]);
  return Float64Array.from(gradient?.data ?? []);
}

const norm = (x: Float64Array): number => Math.sqrt(x.reduce((sum, each) => sum + each * each, 0));

describe("a batch that is four steps behind, at three times the learning rate", () => {
  let run: string;
  beforeAll(async () => {
    const settings = options(await tablePolicy({ order: 3 }), {
      method: "reinforce+tis",
      overlap: lag,
      lr: 3 * usualRate,
      steps: 16,
      max_tokens: maxTokens,
      problems: 8,
      group: 16,
      checkpoint: { every: 1, keep_last: 100 },
    });
    await train(settings);
    run = settings.out;
  });

  const policyAfter = async (step: number): Promise<TableEngine> => {
    const engine = new TableEngine();
    const path = `${RunReader.open(run).checkpoints.pathOf(step)}/policy`;
    await engine.weights.load({ role: "policy", source: { from: "folder", path }, trainable: true });
    return engine;
  };

  it("has weights that differ from 1", () => {
    const metrics = [...RunReader.open(run).events()].flatMap(({ kind, data }) => (kind === "step" ? [data.metrics as { [name: string]: number }] : []));
    expect(metrics.map((step) => step.lag)).toEqual([0, 1, 2, 3, ...new Array<number>(12).fill(lag)]);
    for (const step of metrics.slice(lag)) expect(Math.abs((step["tis.weight"] as number) - 1)).toBeGreaterThan(0.01);
  });

  /** How far the expectation of a method's gradient is from the exact one, in parts of the latter's length. */
  async function off(step: number, behind: number): Promise<{ without: number; with: number }> {
    const [stale, present] = [await policyAfter(step - 1 - behind), await policyAfter(step - 1)];
    const { rows, probabilities } = await allAnswers(stale, present);
    const now = rows.map(({ old }) => [...(old?.values ?? [])]);
    const exact = await gradientOf(
      present,
      rows,
      rows.map(({ verdict }, i) => (now[i] as number[]).map((_, __, all) => (verdict.kind === "accept" ? -Math.exp(all.reduce((a, b) => a + b, 0)) : 0))),
    );
    // A loss is a mean over its rows: times their number and the probability of each, it is its expectation.
    const expected = async (method: Method): Promise<number> => {
      const { d } = await lossAt(method, batch(group("all", rows)), now);
      const weighed = d.map((tokens, i) => tokens.map((x) => x * rows.length * (probabilities[i] as number)));
      return norm((await gradientOf(present, rows, weighed)).map((x, i) => x - (exact[i] as number))) / norm(exact);
    };
    return { without: await expected(methods.without), with: await expected(methods.with) };
  }

  it.each([6, 10, 14])("has a mean gradient nearer the exact one with TIS than without, at step %d", async (step) => {
    const { without, with: corrected } = await off(step, lag);
    expect(corrected).toBeLessThan(0.9 * without);
  });

  it("would have the exact one with and without, were it of the present weights", async () => {
    const { without, with: corrected } = await off(10, 0);
    expect(without).toBeLessThan(1e-9);
    expect(corrected).toBeLessThan(1e-9);
  });
});
