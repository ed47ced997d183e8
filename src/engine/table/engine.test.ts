import { mkdtemp, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Json } from "../../core/json.js";
import { type Context, plainContext } from "../../core/problem.js";
import type { Sequence } from "../contract.js";
import type { TableConfigInput } from "./config.js";
import { TableEngine } from "./engine.js";
import { biasName, weightName } from "./model.js";

const set = "role:policy";

async function load(config: TableConfigInput, seed = 1, valueHead = false): Promise<TableEngine> {
  const engine = new TableEngine();
  await engine.weights.load({ role: "policy", trainable: true, valueHead, source: { from: "config", config: config as unknown as Json, seed } });
  return engine;
}

const under = (context: Context, response: readonly number[], temperature = 1): Sequence => ({
  context,
  response: Int32Array.from(response),
  weights: { role: "policy" },
  temperature,
});

async function firstLogp(engine: TableEngine, contexts: readonly (readonly number[])[]): Promise<number[]> {
  const scores = await engine.score(contexts.map((ids) => under(plainContext(ids), [0])));
  return scores.map(({ logp }) => logp[0]);
}

describe("states of a softmax table", () => {
  it("of order 0 are one, of order 1 the last token, of order 2 the last two, with short histories apart", async () => {
    const histories = [[1], [2], [1, 2], [2, 2], [0, 2, 2], [1, 1, 2]];
    const classes = async (config: TableConfigInput): Promise<number[]> => {
      const logp = await firstLogp(await load(config), histories);
      return logp.map((x) => logp.indexOf(x));
    };
    expect(await classes({ kind: "table", vocabulary: 3, order: 0, init: 1 })).toEqual([0, 0, 0, 0, 0, 0]);
    expect(await classes({ kind: "table", vocabulary: 3, order: 1, init: 1 })).toEqual([0, 1, 1, 1, 1, 1]);
    expect(await classes({ kind: "table", vocabulary: 3, order: 2, init: 1 })).toEqual([0, 1, 2, 3, 3, 2]);
    expect(await classes({ kind: "table", vocabulary: 3, order: 1, positions: 2, init: 1 })).toEqual([0, 1, 2, 2, 2, 2]);
  });

  it("hash into buckets: few rows, the same row for the same state", async () => {
    const engine = await load({ kind: "table", vocabulary: 50, order: 4, buckets: 64, init: 1 });
    expect((await engine.weights.info("policy")).tensors).toEqual([{ name: weightName, shape: [64, 50] }]);
    const contexts = Array.from({ length: 40 }, (_, i) => [7, i, (i * i) % 50, 3, 2]);
    const logp = await firstLogp(engine, contexts);
    expect(new Set(logp).size).toBeGreaterThan(20);
    expect((await firstLogp(engine, [[9, ...contexts[5].slice(1)]]))[0]).toBe(logp[5]);
  });

  it("begin uniform with init 0", async () => {
    const engine = await load({ kind: "table", vocabulary: 4, init: 0 });
    expect((await firstLogp(engine, [[2]]))[0]).toBeCloseTo(-Math.log(4), 15);
  });
});

describe("a linear softmax over one-hot vectors", () => {
  it("adds one row of weights a token of its window, and a bias", async () => {
    const engine = await load({ kind: "linear", vocabulary: 2, features: "onehot-window", window: 2 });
    // Rows: last token 0 or 1, then the token before it 0 or 1. Columns: logits.
    await engine.weights.write("policy", [
      { name: weightName, shape: [4, 2], data: Float64Array.of(1, 0, 0, 2, 4, 0, 0, 8) },
      { name: biasName, shape: [2], data: Float64Array.of(0.5, 0) },
    ]);
    const margins = [[0], [1], [0, 0], [1, 0], [0, 1], [0, 1, 1]];
    const logp = await firstLogp(engine, margins);
    [1.5, -1.5, 5.5, -6.5, 2.5, -9.5].forEach((margin, i) => void expect(logp[i]).toBeCloseTo(-Math.log1p(Math.exp(-margin)), 12));
  });
});

describe("a linear softmax over input rows", () => {
  const observation = (numbers: readonly number[]): Context => ({
    ...plainContext([0]),
    rows: { positions: Int32Array.of(0), rows: Float32Array.from(numbers), mode: "replace" },
  });

  it("has logits bias + Wᵀx and the gradients of this formula, by hand", async () => {
    const engine = await load({ kind: "linear", vocabulary: 2, features: "rows", width: 3 }, 1, true);
    await engine.weights.write("policy", [
      { name: weightName, shape: [3, 2], data: Float64Array.of(1, 0, 0, 2, -1, 1) },
      { name: biasName, shape: [2], data: Float64Array.of(0.5, 0) },
      { name: "value_head.weight", shape: [1, 3], data: Float64Array.of(1, 2, 3) },
      { name: "value_head.bias", shape: [1], data: Float64Array.of(-1) },
    ]);
    const sequence = under(observation([0.5, 1, -2]), [1]);
    // Logits: 0.5 + 0.5 + 2 = 3 and 2 − 2 = 0.
    const p = 1 / (1 + Math.exp(3));
    const { handle, scores } = await engine.forward([sequence], { values: true });
    expect(scores[0].logp[0]).toBeCloseTo(Math.log(p), 14);
    expect(Array.from(scores[0].values!)).toEqual([0.5 + 2 - 6 - 1, -1]);
    await engine.backward(handle, [{ dLogp: Float64Array.of(2), dValue: Float64Array.of(3, 5) }], set);
    const [weight, bias, head, headBias] = await engine.weights.readGradient(set, [weightName, biasName, "value_head.weight", "value_head.bias"]);
    const d = 2 * (1 - p);
    [-0.5 * d, 0.5 * d, -d, d, 2 * d, -2 * d].forEach((x, i) => void expect(weight.data[i]).toBeCloseTo(x, 14));
    [-d, d].forEach((x, i) => void expect(bias.data[i]).toBeCloseTo(x, 14));
    expect(Array.from(head.data)).toEqual([1.5, 3, -6]);
    expect(Array.from(headBias.data)).toEqual([8]);
    const again = await engine.forward([sequence], { values: true });
    const { inputs } = await engine.backward(again.handle, [{ dLogp: Float64Array.of(2), dValue: Float64Array.of(3, 5) }], "inputs");
    // The row of the response token sees the value after it.
    [-d + 3, 2 * d + 6, 2 * d + 9, 5, 10, 15].forEach((x, i) => void expect(inputs![0][i]).toBeCloseTo(x, 6));
  });

  it("learns a rule of its observations", async () => {
    const engine = await load({ kind: "linear", vocabulary: 2, features: "rows", width: 2 });
    const data = Array.from({ length: 16 }, (_, i) => under(observation([Math.sin(i), Math.cos(i)]), [Math.sin(i) + 0.3 > 0 ? 1 : 0]));
    for (let step = 0; step < 200; step++) {
      const { handle } = await engine.forward(data);
      await engine.backward(
        handle,
        data.map(() => ({ dLogp: Float64Array.of(-1 / 16) })),
        set,
      );
      await engine.step({ set, update: { rule: "adamw", rate: 0.2 } });
    }
    for (const { logp, weights } of await engine.score(data)) {
      expect(Math.exp(logp[0])).toBeGreaterThan(0.5);
      expect(weights).toBe("policy@200");
    }
  });
});

describe("configurations that are wrong", () => {
  it.each([
    [{ kind: "tabel", vocabulary: 3 }, "model", "kind"],
    [{ kind: "table", vocabulary: 1 }, "model", "vocabulary"],
    [{ kind: "table", vocabulary: 3, ordre: 2 }, "model", "ordre"],
    [{ kind: "linear", vocabulary: 3, features: "rows" }, "model", "width"],
    [{ kind: "linear", vocabulary: 3, features: "onehot-window", width: 3 }, "model", "width"],
    [{ kind: "table", vocabulary: 100, order: 6 }, "memory", "buckets"],
  ])("%j is refused", async (config, code, word) => {
    const engine = new TableEngine();
    await expect(engine.weights.load({ role: "policy", trainable: true, source: { from: "config", config, seed: 1 } })).rejects.toMatchObject({
      code,
      message: expect.stringContaining(word),
    });
    await expect(engine.weights.info("policy")).rejects.toMatchObject({ code: "argument" });
  });
});

describe("identities of weights", () => {
  it("count steps, and writes beside them; a snapshot keeps its own", async () => {
    const engine = await load({ kind: "table", vocabulary: 3 });
    const step = async (): Promise<string> => (await engine.step({ set, update: { rule: "sgd", rate: 0.1 } })).weights;
    expect(await step()).toBe("policy@1");
    await engine.weights.snapshot("policy", "one");
    await engine.weights.write("policy", await engine.weights.read({ role: "policy" }, [weightName]));
    expect(await step()).toBe("policy@2+1");
    const [now, then] = await engine.score([under(plainContext([0]), [1]), { ...under(plainContext([0]), [1]), weights: { role: "policy", at: "one" } }]);
    expect([now.weights, then.weights]).toEqual(["policy@2+1", "policy@1"]);
    await engine.weights.restore("policy", "one");
    expect(await step()).toBe("policy@2");
  });
});

describe("folders and files", () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "table-"));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  it("give a resumed role the name of the weights that it had", async () => {
    const engine = await load({ kind: "table", vocabulary: 3 });
    for (let i = 0; i < 3; i++) await engine.step({ set, update: { rule: "adamw", rate: 0.1 } });
    await engine.weights.save({ role: "policy" }, join(folder, "resumed"));
    await engine.weights.saveOptimizer(set, join(folder, "optimizer.safetensors"));
    const later = new TableEngine();
    await later.weights.load({ role: "policy", trainable: true, source: { from: "folder", path: join(folder, "resumed") } });
    await later.weights.loadOptimizer(set, join(folder, "optimizer.safetensors"));
    expect((await later.score([under(plainContext([0]), [1])]))[0].weights).toBe("policy@3");
  });

  it("that are damaged are refused in one sentence, and nothing is loaded", async () => {
    const engine = await load({ kind: "table", vocabulary: 5 });
    const save = async (name: string): Promise<string> => {
      await engine.weights.save({ role: "policy" }, join(folder, name));
      return join(folder, name);
    };
    const damaged: [string, (path: string) => Promise<unknown>, string][] = [
      ["truncated", (path) => truncate(join(path, "model.safetensors"), 200), "model.safetensors"],
      ["no config", (path) => rm(join(path, "config.json")), "config.json"],
      ["no JSON", (path) => writeFile(join(path, "config.json"), "{"), "config.json"],
      ["another shape", (path) => writeFile(join(path, "config.json"), JSON.stringify({ kind: "table", vocabulary: 4 })), weightName],
      [
        "a tensor missing",
        (path) => writeFile(join(path, "config.json"), JSON.stringify({ kind: "linear", vocabulary: 6, features: "onehot-window" })),
        weightName,
      ],
    ];
    for (const [name, damage, word] of damaged) {
      const path = await save(name.replaceAll(" ", "-"));
      await damage(path);
      const source = { from: "folder", path } as const;
      await expect(engine.weights.load({ role: "copy", trainable: false, source }), name).rejects.toMatchObject({
        code: "model",
        message: expect.stringContaining(word),
      });
      await expect(engine.weights.info("copy")).rejects.toMatchObject({ code: "argument" });
    }
  });

  it("with a number that is not finite are refused by tensor", async () => {
    const engine = await load({ kind: "table", vocabulary: 5 });
    const path = join(folder, "nan");
    await engine.weights.save({ role: "policy" }, path);
    const file = join(path, "model.safetensors");
    const bytes = await readFile(file);
    bytes.writeDoubleLE(Number.NaN, bytes.length - 8);
    await writeFile(file, bytes);
    await expect(engine.weights.load({ role: "copy", trainable: false, source: { from: "folder", path } })).rejects.toMatchObject({
      code: "model",
      message: expect.stringMatching(/logits\.weight holds NaN/),
    });
  });
});
