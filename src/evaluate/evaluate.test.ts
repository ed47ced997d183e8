import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { alphabetTokenizer } from "../core/alphabet.js";
import type { Json } from "../core/json.js";
import type { Problem } from "../core/problem.js";
import { accept } from "../core/verdict.js";
import { TableEngine } from "../engine/table/engine.js";
import { enumerate, expectation } from "../engine/table/enumerate.js";
import { exact } from "../verify/exact/exact.js";
import { startPool } from "../verify/pool.js";
import { verifierOf } from "../verify/simple.js";
import { type EvaluateOptions, evaluate, type Progress } from "./evaluate.js";
import { estimateOf, metricsOf } from "./metrics.js";
import { rejudged } from "./rejudge.js";
import { readStore, type StoreConditions, writeStore } from "./store.js";

const tokenizer = alphabetTokenizer(["a", "b", "c"]);
const weights = { role: "policy" };
const verifier = exact();

/** A policy over the last token alone: the response's first token depends on nothing but the table. */
async function engineOf(init = 1): Promise<TableEngine> {
  const engine = new TableEngine();
  const config = { kind: "table", vocabulary: tokenizer.size, order: 1, init, maxTokens: 64 } as unknown as Json;
  await engine.weights.load({ role: "policy", trainable: false, source: { from: "config", config, seed: 3 } });
  return engine;
}

const problemsOf = (count: number, answer: Json = "a"): Problem[] =>
  Array.from({ length: count }, (_, i) => ({ key: `p${i}`, prompt: [{ role: "user", content: "abc" }], reference: { state: "gold", answer, version: 0 } }));

const options = (more: Partial<EvaluateOptions> = {}): EvaluateOptions => ({
  weights,
  problems: problemsOf(20),
  verifier,
  tokenizer,
  maxTokens: 4,
  seed: 7,
  n: 4,
  ...more,
});

describe("an evaluation", () => {
  it("may be judged elsewhere, by a pool of workers say", async () => {
    const pool = await startPool({ verifier, workers: 0 });
    const engine = await engineOf();
    const here = await evaluate(engine, options());
    const there = await evaluate(engine, options({ judge: (problem, response, truncated) => pool.judge(problem, response, truncated) }));
    await pool.close();
    expect(there.metrics).toEqual(here.metrics);
  });

  it("gives every problem n samples in order, with text, sums of log-probs and verdicts of these tokens", async () => {
    const engine = await engineOf();
    const { samples, metrics, weights: identity } = await evaluate(engine, options());
    expect(samples.map(({ problem, member }) => `${problem}/${member}`)).toEqual(
      problemsOf(20).flatMap(({ key }) => [0, 1, 2, 3].map((member) => `${key}/${member}`)),
    );
    expect(identity).toBe("policy@0");
    const context = { ids: tokenizer.render([{ role: "user", content: "abc" }], { addGenerationPrompt: true }), label: "plain" };
    const scores = await engine.score(samples.map(({ ids }) => ({ context, response: ids, weights, temperature: 1 })));
    samples.forEach(({ logp, rawLogp, ids, text, verdict, stop }, i) => {
      expect(logp).toBeCloseTo(
        scores[i].logp.reduce((a, b) => a + b, 0),
        12,
      );
      expect(rawLogp).toBe(logp);
      expect(text).toBe(tokenizer.decode(ids));
      expect(verdict.kind).toBe(text === "a" && stop === "eos" ? "accept" : "reject");
    });
    expect(metrics.verdicts.accept).toBeGreaterThan(0);
    expect(metrics.verdicts.accept).toBeLessThan(80);
  });

  it("estimates what the policy's exact probability is", async () => {
    const engine = await engineOf();
    const context = { ids: tokenizer.render([{ role: "user", content: "abc" }], { addGenerationPrompt: true }), label: "plain" };
    const outcomes = await enumerate(engine, { context, weights, temperature: 1, maxTokens: 4, stopIds: tokenizer.eosIds });
    // Several responses read "a": special tokens have no text.
    const probability = expectation(outcomes, ({ ids, stop }) => (stop === "eos" && tokenizer.decode(ids) === "a" ? 1 : 0));
    const { metrics } = await evaluate(engine, options({ problems: problemsOf(300), n: 8, k: [1, 4] }));
    const pass = estimateOf(metrics, "pass", 1)!;
    const deviation = Math.sqrt((probability * (1 - probability)) / 2400);
    expect(Math.abs(pass.value! - probability)).toBeLessThan(4 * deviation);
    expect(estimateOf(metrics, "pass", 4)!.value).toBeCloseTo(1 - (1 - probability) ** 4, 1);
  });

  it("draws a sample as a function of seed, purpose, problem and member alone", async () => {
    const engine = await engineOf();
    const texts = async (more: Partial<EvaluateOptions>): Promise<Map<string, string>> => {
      const { samples } = await evaluate(engine, options(more));
      return new Map(samples.map(({ problem, member, ids }) => [`${problem}/${member}`, ids.join()]));
    };
    const all = await texts({});
    const fewer = await texts({ problems: problemsOf(20).slice(5, 9).reverse(), n: 2 });
    for (const [key, ids] of fewer) expect(all.get(key)).toBe(ids);
    const differing = async (more: Partial<EvaluateOptions>) => [...(await texts(more))].filter(([key, ids]) => all.get(key) !== ids).length;
    expect(await differing({})).toBe(0);
    expect(await differing({ seed: 8 })).toBeGreaterThan(20);
    expect(await differing({ purpose: "best" })).toBeGreaterThan(20);
  });

  it("decodes greedily the same response for all, and refuses to do it twice", async () => {
    const engine = await engineOf();
    const { samples } = await evaluate(engine, options({ greedy: true, n: 1 }));
    expect(new Set(samples.map(({ text }) => text)).size).toBe(1);
    await expect(evaluate(engine, options({ greedy: true, n: 2 }))).rejects.toThrow("n is 2 with greedy decoding");
  });

  it("leaves what the verifier cannot judge unscored, counts it, and says why", async () => {
    const engine = await engineOf();
    const flaky = verifierOf("flaky", ({ problem }) => {
      if (problem.key === "p3") throw new Error("the judge is away");
      return accept();
    });
    const { metrics, warnings } = await evaluate(engine, options({ verifier: flaky }));
    expect(metrics).toMatchObject({ samples: 80, scored: 76, unscored: 4, reasons: { "verifier-failed": 4 } });
    expect(estimateOf(metrics, "avg")).toMatchObject({ value: 1, problems: 19, leftOut: 1 });
    expect(warnings[0]).toContain("4 of 80 samples are unscored and left out (the first: verifier-failed");
    expect(warnings[0]).toContain("the judge is away");
  });

  it("says that nothing was accepted, and what was cut off", async () => {
    const { warnings } = await evaluate(await engineOf(0), options({ problems: problemsOf(20, "cccccc"), maxTokens: 2 }));
    expect(warnings.some((line) => line.startsWith("no sample was accepted (most often: "))).toBe(true);
    expect(warnings.some((line) => /of 80 responses were cut off/.test(line))).toBe(true);
  });

  it("tells its progress, sample by sample, up to the whole", async () => {
    const seen: Progress[] = [];
    const { metrics } = await evaluate(await engineOf(), options({ onProgress: (progress) => void seen.push(progress) }));
    expect(seen.map(({ done }) => done)).toEqual(Array.from({ length: 80 }, (_, i) => i + 1));
    expect(seen.at(-1)).toMatchObject({ total: 80, scored: 80, accepted: metrics.verdicts.accept, tokens: metrics.tokens.total });
  });

  it("stops when it is aborted, and passes on what a listener throws", async () => {
    const engine = await engineOf();
    const controller = new AbortController();
    await expect(evaluate(engine, options({ signal: controller.signal, onProgress: () => controller.abort(new Error("enough")) }))).rejects.toThrow("enough");
    const boom = () => {
      throw new Error("listener");
    };
    await expect(evaluate(engine, options({ onProgress: boom }))).rejects.toThrow("listener");
  });

  it.each([
    [{ problems: [] }, "there are no problems"],
    [{ problems: [...problemsOf(2), ...problemsOf(1)] }, 'two problems have the key "p0"'],
    [{ n: 2, k: [4] }, "k is 4 and only 2 samples a problem are drawn"],
    [{ n: 0 }, "n is 0"],
    [{ seed: 0.5 }, "the seed is 0.5"],
    [{ maxTokens: 62 }, "the prompt of problem p0 has 5 tokens, and with 62 for the response exceeds the model's 64"],
    [{ tokenizer: alphabetTokenizer(["a", "b", "c", "d"]) }, "the tokenizer has 9 tokens and the model 8"],
    [{ temperature: 0 }, "temperature 0 is not from 0.000001 to 1000000"],
  ] as const)("refuses %j before it samples", async (more, message) => {
    const engine = await engineOf();
    await expect(evaluate(engine, options(more as Partial<EvaluateOptions>))).rejects.toThrow(message);
    expect((await engine.usage()).sampledTokens).toBe(0);
  });
});

describe("a sample store", () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "touchstone-samples-"));
  });
  afterAll(() => rm(folder, { recursive: true }));

  const conditions: StoreConditions = {
    model: "model",
    weights: "policy@0",
    tokenizer: tokenizer.id,
    verifier,
    decoder: { n: 4, temperature: 1, greedy: false, maxTokens: 4 },
    seed: 7,
    purpose: "evaluation",
    engine: {},
  };
  const secret: Problem = { ...problemsOf(1)[0]!, privileged: { solution: "aaa" }, tags: { level: 2 } };

  it("gives back what was written, so that other numbers need no sampling", async () => {
    const engine = await engineOf();
    const problems = [secret, ...problemsOf(20).slice(1)];
    const { samples, metrics } = await evaluate(engine, options({ problems }));
    await writeStore(join(folder, "one"), conditions, problems, samples);
    const store = await readStore(join(folder, "one"));
    expect(store.samples).toEqual(samples);
    expect(store.problems).toHaveLength(20);
    expect(store.problems[0]).toEqual({ ...problemsOf(1)[0], tags: { level: 2 } });
    expect(store.meta).toMatchObject({ problems: 20, samples: 80, weights: "policy@0", decoder: { n: 4 } });
    expect(metricsOf(store.samples, { k: [1, 4], seed: 7 })).toEqual(metrics);
    expect(estimateOf(metricsOf(store.samples, { k: [3], seed: 7 }), "pass", 3)!.value).toBeGreaterThan(estimateOf(metrics, "pass", 1)!.value!);
  });

  it("gives another verifier's numbers, as an evaluation with it would have", async () => {
    const engine = await engineOf();
    const loose = verifierOf("starts", ({ response, reference }) => response.startsWith(String(reference)));
    const direct = await evaluate(engine, options({ verifier: loose }));
    const samples = await rejudged(await readStore(join(folder, "one")), loose);
    expect(samples).toEqual(direct.samples);
    expect(metricsOf(samples, { k: [1, 4], seed: 7 })).toEqual(direct.metrics);
  });

  it("has the same bytes for the same evaluation, and leaves nothing beside", async () => {
    const engine = await engineOf();
    const slow = verifierOf("timed", () => ({ kind: "accept", elapsedMs: Math.random() }));
    for (const name of ["two", "three"]) {
      const { samples } = await evaluate(engine, options({ verifier: slow }));
      await writeStore(join(folder, name), conditions, problemsOf(20), samples);
    }
    for (const file of ["meta.json", "problems.jsonl", "samples.jsonl"]) {
      expect(await readFile(join(folder, "two", file))).toEqual(await readFile(join(folder, "three", file)));
    }
    expect((await readdir(folder)).filter((name) => name.includes("part"))).toEqual([]);
  });

  it("is written once", async () => {
    await expect(writeStore(join(folder, "one"), conditions, problemsOf(1), [])).rejects.toThrow("it exists; give the name of a new folder");
  });

  it("is refused when a byte changed, a file is missing, or it is none", async () => {
    await writeStore(join(folder, "broken"), conditions, problemsOf(1), []);
    await writeFile(join(folder, "broken", "samples.jsonl"), "{}\n");
    await expect(readStore(join(folder, "broken"))).rejects.toThrow("samples.jsonl: its bytes are not those that were written");
    await rm(join(folder, "broken", "samples.jsonl"));
    await expect(readStore(join(folder, "broken"))).rejects.toThrow("it cannot be read (ENOENT)");
    await expect(readStore(folder)).rejects.toThrow("it is no folder of samples");
    await writeFile(join(folder, "broken", "meta.json"), '{"format": "touchstone-samples", "version": 2}');
    await expect(readStore(join(folder, "broken"))).rejects.toThrow("meta.json: version");
  });
});
