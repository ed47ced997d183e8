import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { type Bench, type Case, normOf, sameBits, sameTensors, setOf } from "./conformance-bench.js";
import type { ModelInfo, ParameterRule, Sequence, StepRequest, StepResult, TensorValue, UpdateRule } from "./contract.js";

/** One round of training on fixed tokens: same gradient for same weights. */
async function round(
  bench: Bench,
  info: ModelInfo,
  request: Omit<StepRequest, "set">,
  scale = 1,
): Promise<{ before: TensorValue[]; gradient: TensorValue[]; after: TensorValue[]; result: StepResult }> {
  const before = await bench.read(info);
  await bench.learn([task(info)], [Float64Array.of(-scale, 0.5 * scale, scale, -0.3 * scale)]);
  const gradient = await bench.gradient(info);
  const result = await bench.engine.step({ set: setOf(info.role), ...request });
  return { before, gradient, after: await bench.read(info), result };
}

const task = ({ role }: ModelInfo): Sequence => ({
  context: { ids: Int32Array.of(1, 5, 3), label: "plain" },
  response: Int32Array.of(2, 2, 4, 0),
  weights: { role },
  temperature: 0.9,
});

function close(bench: Bench, after: readonly TensorValue[], expected: readonly Float64Array[], rate: number): void {
  after.forEach(({ name, data }, i) => {
    for (const [j, x] of data.entries()) {
      const allowed = bench.tolerance.update * Math.max(Math.abs(expected[i][j]), rate, 1e-3);
      if (!(Math.abs(x - expected[i][j]) <= allowed)) expect.fail(`${name} entry ${j} is ${x} and by hand ${expected[i][j]}`);
    }
  });
}

/** AdamW by hand, over all tensors; keeps its moments between calls. */
class HandAdamW {
  private steps = 0;
  private readonly m = new Map<string, Float64Array>();
  private readonly v = new Map<string, Float64Array>();

  constructor(
    private readonly rule: Required<Extract<UpdateRule, { rule: "adamw" }>>,
    private readonly groups: readonly ParameterRule[] = [],
  ) {}

  next(weights: readonly TensorValue[], gradient: readonly TensorValue[]): Float64Array[] {
    const { beta1, beta2, epsilon } = this.rule;
    this.steps++;
    return weights.map(({ name, data }, i) => {
      const group = this.groups.find(({ match }) => new RegExp(match).test(name));
      const rate = this.rule.rate * (group?.rateScale ?? 1);
      const decay = group?.weightDecay ?? this.rule.weightDecay;
      const m = this.m.get(name) ?? new Float64Array(data.length);
      const v = this.v.get(name) ?? new Float64Array(data.length);
      this.m.set(name, m);
      this.v.set(name, v);
      return data.map((w, j) => {
        const g = gradient[i].data[j];
        m[j] = beta1 * m[j] + (1 - beta1) * g;
        v[j] = beta2 * v[j] + (1 - beta2) * g * g;
        return w * (1 - rate * decay) - (rate * (m[j] / (1 - beta1 ** this.steps))) / (Math.sqrt(v[j] / (1 - beta2 ** this.steps)) + epsilon);
      });
    });
  }
}

const adamw = { rule: "adamw", rate: 0.01, beta1: 0.8, beta2: 0.9, epsilon: 1e-6, weightDecay: 0.1 } as const;
const muon = { rule: "muon", rate: 0.01, beta1: 0.8, beta2: 0.9, epsilon: 1e-6, weightDecay: 0.1 } as const;
/** The rules that an engine has. */
const everyRule = ({ engine }: Bench): readonly UpdateRule[] => [
  { rule: "sgd", rate: 0.1, momentum: 0.5 },
  adamw,
  ...(engine.info.has.has("optimizer.muon") ? [muon] : []),
];

async function inFolder(run: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "conformance-"));
  try {
    await run(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

export const stepCases: readonly Case[] = [
  {
    name: "learning rate 0 leaves weights and log-probs byte-identical",
    needs: ["score", "train", "optimizer.sgd", "optimizer.adamw", "optimizer.clip", "weights.tensors"],
    run: async (bench) => {
      const info = await bench.role();
      const [logp] = await bench.logp([task(info)]);
      for (const rule of [...everyRule(bench), { rule: "sgd", rate: 0, weightDecay: 0.3 } as const]) {
        const { before, after, result } = await round(bench, info, { update: { ...rule, rate: 0 }, maxNorm: 0.5 });
        expect(result.gradNorm).toBeGreaterThan(0);
        sameTensors(after, before);
      }
      sameBits((await bench.logp([task(info)]))[0], logp);
    },
  },
  {
    name: "sgd steps equal hand-computed ones: plain, with decay, and with momentum over three steps",
    needs: ["train", "optimizer.sgd", "weights.tensors"],
    run: async (bench) => {
      const info = await bench.role();
      for (const weightDecay of [0, 0.2]) {
        const { before, gradient, after, result } = await round(bench, info, { update: { rule: "sgd", rate: 0.1, weightDecay } });
        close(
          bench,
          after,
          before.map(({ data }, i) => data.map((w, j) => w - 0.1 * (gradient[i].data[j] + weightDecay * w))),
          0.1,
        );
        expect(result.gradNorm / normOf(gradient)).toBeCloseTo(1, 4);
        expect(result).toMatchObject({ clipped: false });
        expect(result.skipped).toBeUndefined();
      }
      const momentum = (await bench.read(info)).map(({ data }) => new Float64Array(data.length));
      for (let step = 0; step < 3; step++) {
        const { before, gradient, after } = await round(bench, info, { update: { rule: "sgd", rate: 0.05, momentum: 0.6 } });
        for (const [i, m] of momentum.entries()) momentum[i] = m.map((x, j) => 0.6 * x + gradient[i].data[j]);
        close(
          bench,
          after,
          before.map(({ data }, i) => data.map((w, j) => w - 0.05 * momentum[i][j])),
          0.05,
        );
      }
    },
  },
  {
    name: "adamw steps equal hand-computed ones over three steps, with decay and a rule for some parameters",
    needs: ["train", "optimizer.adamw", "optimizer.groups", "weights.tensors"],
    run: async (bench) => {
      for (const groups of [undefined, [{ match: "weight$", rateScale: 0.5, weightDecay: 0 }]]) {
        const info = await bench.role();
        const hand = new HandAdamW(adamw, groups);
        for (let step = 0; step < 3; step++) {
          const { before, gradient, after } = await round(bench, info, { update: adamw, ...(groups ? { groups } : {}) }, step + 1);
          close(bench, after, hand.next(before, gradient), adamw.rate);
        }
      }
    },
  },
  {
    name: "a step forgets the gradient, names the new weights, and moves log-probs along it",
    needs: ["score", "train", "optimizer.sgd", "optimizer.clip", "weights.tensors"],
    run: async (bench) => {
      const info = await bench.role();
      const [{ logp, weights }] = await bench.engine.score([task(info)]);
      expect(weights).toBe(`${info.role}@0`);
      const { gradient, result } = await round(bench, info, { update: { rule: "sgd", rate: 0.001 }, maxNorm: 1 });
      expect(normOf(gradient)).toBeGreaterThan(0);
      expect(normOf(await bench.gradient(info))).toBe(0);
      expect(result.weights).toBe(`${info.role}@1`);
      const [after] = await bench.engine.score([task(info)]);
      expect(after.weights).toBe(result.weights);
      const loss = (x: Float64Array): number => -x[0] + 0.5 * x[1] + x[2] - 0.3 * x[3];
      expect(loss(after.logp)).toBeLessThan(loss(logp));
    },
  },
  {
    name: "clipping scales the whole gradient to the norm, and leaves a shorter one alone",
    needs: ["train", "optimizer.sgd", "optimizer.clip", "weights.tensors"],
    run: async (bench) => {
      const info = await bench.role();
      for (const share of [0.25, 4]) {
        const probe = await round(bench, info, { update: { rule: "sgd", rate: 0 } });
        const maxNorm = share * probe.result.gradNorm;
        const { before, gradient, after, result } = await round(bench, info, { update: { rule: "sgd", rate: 0.2 }, maxNorm });
        const factor = Math.min(1, maxNorm / (normOf(gradient) + 1e-6));
        expect(result.clipped).toBe(share < 1);
        expect(result.gradNorm / normOf(gradient)).toBeCloseTo(1, 4);
        close(
          bench,
          after,
          before.map(({ data }, i) => data.map((w, j) => w - 0.2 * factor * gradient[i].data[j])),
          0.2,
        );
      }
    },
  },
  {
    name: "a gradient that is not finite is left out, counted and named; weights, moments and the next step are as without it",
    needs: ["train", "optimizer.adamw", "optimizer.clip", "weights.tensors"],
    run: async (bench) => {
      const [info, twin] = [await bench.role(), await bench.role()];
      for (const one of [info, twin]) await round(bench, one, { update: adamw });
      for (const bad of [Number.NaN, Number.POSITIVE_INFINITY]) {
        const { before, after, result } = await round(bench, info, { update: adamw, maxNorm: 1 }, bad);
        sameTensors(after, before);
        expect(info.tensors.map(({ name }) => name)).toContain(result.skipped?.parameter);
        expect(result.skipped?.count).toBeGreaterThanOrEqual(1);
        expect(result.weights).toBe(`${info.role}@1`);
        expect(normOf(await bench.gradient(info))).toBe(0);
      }
      const [next, expected] = [await round(bench, info, { update: adamw }), await round(bench, twin, { update: adamw })];
      sameTensors(next.after, expected.after);
      expect(next.result.skipped).toBeUndefined();
    },
  },
  {
    name: "parameter sets have gradients and optimizer state of their own",
    needs: ["train", "optimizer.adamw", "weights.tensors"],
    run: async (bench) => {
      const [info, other, lone] = [await bench.role(), await bench.role(), await bench.role()];
      const still = await bench.read(other);
      await round(bench, info, { update: adamw });
      await round(bench, info, { update: adamw }, 3);
      expect(normOf(await bench.gradient(other))).toBe(0);
      sameTensors(await bench.read(other), still);
      sameTensors((await round(bench, other, { update: adamw })).after, (await round(bench, lone, { update: adamw })).after);
    },
  },
  {
    name: "optimizer state can be forgotten: the next step is a first one, and the weights keep their name",
    needs: ["train", "optimizer.sgd", "optimizer.adamw", "optimizer.reset", "save", "weights.tensors"],
    run: (bench) =>
      inFolder(async (folder) => {
        for (const update of everyRule(bench)) {
          const info = await bench.role();
          for (let step = 0; step < 2; step++) await round(bench, info, { update });
          await bench.engine.weights.save({ role: info.role }, join(folder, update.rule));
          await bench.engine.weights.resetOptimizer(setOf(info.role));
          const bare = await bench.role({ source: { from: "folder", path: join(folder, update.rule) } });
          const [next, first] = [await round(bench, info, { update }), await round(bench, bare, { update })];
          sameTensors(next.after, first.after);
          expect(next.result.weights).toBe(`${info.role}@3`);
        }
      }),
  },
  {
    name: "optimizer state goes through a file byte-exactly: the next step is the same",
    needs: ["train", "optimizer.sgd", "optimizer.adamw", "save", "weights.tensors"],
    run: (bench) =>
      inFolder(async (folder) => {
        for (const update of everyRule(bench)) {
          const info = await bench.role();
          for (let step = 0; step < 2; step++) await round(bench, info, { update });
          await bench.engine.weights.save({ role: info.role }, join(folder, update.rule));
          await bench.engine.weights.saveOptimizer(setOf(info.role), join(folder, `${update.rule}.safetensors`));
          const expected = await round(bench, info, { update });
          const source = { from: "folder", path: join(folder, update.rule) } as const;
          const [back, bare] = [await bench.role({ source }), await bench.role({ source })];
          await bench.engine.weights.loadOptimizer(setOf(back.role), join(folder, `${update.rule}.safetensors`));
          sameTensors((await round(bench, back, { update })).after, expected.after);
          expect((await round(bench, bare, { update })).after).not.toEqual(expected.after);
        }
      }),
  },
];
