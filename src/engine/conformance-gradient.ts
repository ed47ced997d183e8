import { expect } from "vitest";
import type { InputRows } from "../core/problem.js";
import { type Bench, type Case, normOf, relativeDistance, sameBits, sameTensors, setOf } from "./conformance-bench.js";
import { centralDifference, checkGradient, type Kind, LinearLoss } from "./conformance-differences.js";
import type { Capability, ModelInfo, Sequence, TensorValue } from "./contract.js";

const needsOf: { readonly [kind in Kind]: Capability } = {
  dLogp: "train",
  dEntropy: "train.entropy",
  dTargetLogp: "train.targets",
  dTargetTail: "train.targets",
  dValue: "train.values",
};
const kinds = Object.keys(needsOf) as Kind[];

async function gradientOf(
  bench: Bench,
  info: ModelInfo,
  calls: readonly { sequences: readonly Sequence[]; coefficients: readonly Float64Array[] }[],
): Promise<TensorValue[]> {
  await bench.engine.weights.zeroGradient(setOf(info.role));
  for (const { sequences, coefficients } of calls) await bench.learn(sequences, coefficients);
  return bench.gradient(info);
}

/** −0 as 0, which for a gradient is the same. */
const unsigned = (tensors: readonly TensorValue[]): TensorValue[] => tensors.map((tensor) => ({ ...tensor, data: tensor.data.map((x) => x + 0) }));

export const gradientCases: readonly Case[] = [
  {
    name: "forward returns what score returns",
    needs: ["score", "train"],
    run: async (bench) => {
      const info = await bench.role();
      const sequences = bench.mixed(info);
      const loss = new LinearLoss(
        bench,
        info,
        sequences,
        kinds.filter((kind) => bench.has(needsOf[kind])),
      );
      const { handle, scores } = await loss.forward();
      await bench.engine.release(handle);
      const scored = await bench.engine.score(sequences, loss.want);
      scores.forEach((one, s) => {
        expect(one.weights).toBe(scored[s].weights);
        for (const name of ["logp", "entropy", "values", "targetLogp", "targetTail"] as const) {
          expect(one[name] === undefined).toBe(scored[s][name] === undefined);
          if (one[name]) bench.close(one[name], scored[s][name]!);
        }
      });
    },
  },
  ...kinds.map(
    (kind): Case => ({
      name: `the gradient of ${kind} equals central differences, for unequal lengths and temperatures`,
      needs: [needsOf[kind], "weights.tensors"],
      run: async (bench) => {
        const info = await bench.role();
        await checkGradient(new LinearLoss(bench, info, bench.mixed(info), [kind]), "all");
      },
    }),
  ),
  {
    name: "the gradient of all derivatives together equals central differences in every tensor",
    needs: ["train", "weights.tensors"],
    run: async (bench) => {
      const info = await bench.role();
      await checkGradient(
        new LinearLoss(
          bench,
          info,
          bench.mixed(info),
          kinds.filter((kind) => bench.has(needsOf[kind])),
        ),
        "tensor",
      );
    },
  },
  {
    name: "gradients add up: over calls, splits and orders",
    needs: ["train", "weights.tensors"],
    run: async (bench) => {
      const info = await bench.role();
      const sequences = [...bench.mixed(info), bench.sequence(info, 4, 12), bench.sequence(info, 2, 4, 0.5)];
      const coefficients = sequences.map(({ response }) => bench.numbers(response.length));
      const part = (indices: readonly number[]) => ({ sequences: indices.map((i) => sequences[i]), coefficients: indices.map((i) => coefficients[i]) });
      const whole = await gradientOf(bench, info, [part([0, 1, 2, 3, 4, 5])]);
      expect(normOf(whole)).toBeGreaterThan(0);
      const others = [
        [[5, 4, 3, 2, 1, 0]],
        [
          [0, 1, 2],
          [3, 4, 5],
        ],
        [[3], [0, 5, 1], [4, 2]],
        [[0], [1], [2], [3], [4], [5]],
      ];
      for (const calls of others) {
        const gradient = await gradientOf(bench, info, calls.map(part));
        expect(relativeDistance(gradient, whole), `split ${JSON.stringify(calls)}`).toBeLessThanOrEqual(Math.min(1e-5, bench.tolerance.gradient));
      }
      sameTensors(await gradientOf(bench, info, [part([0, 1, 2, 3, 4, 5])]), whole);
    },
  },
  {
    name: "the engine sums: a sequence that comes twice has twice the gradient",
    needs: ["train", "weights.tensors"],
    run: async (bench) => {
      const info = await bench.role();
      const sequence = bench.sequence(info, 3, 5);
      const weight = bench.numbers(5);
      const one = await gradientOf(bench, info, [{ sequences: [sequence], coefficients: [weight] }]);
      const two = await gradientOf(bench, info, [{ sequences: [sequence, sequence], coefficients: [weight, weight] }]);
      const doubled = one.map((tensor) => ({ ...tensor, data: tensor.data.map((x) => 2 * x) }));
      expect(relativeDistance(two, doubled)).toBeLessThanOrEqual(Math.min(1e-5, bench.tolerance.gradient));
    },
  },
  {
    name: "derivatives that are zero or absent give exactly 0, and add nothing to what is there",
    needs: ["train", "weights.tensors"],
    run: async (bench) => {
      const info = await bench.role();
      const zero = (await bench.gradient(info)).map((tensor) => ({ ...tensor, data: new Float64Array(tensor.data.length) }));
      sameTensors(await bench.gradient(info), zero);
      const sequences = bench.mixed(info);
      const zeros = sequences.map(({ response }) => new Float64Array(response.length));
      sameTensors(unsigned(await gradientOf(bench, info, [{ sequences, coefficients: zeros }])), zero);
      const { handle } = await bench.engine.forward(sequences);
      await bench.engine.backward(
        handle,
        sequences.map(() => ({})),
        setOf(info.role),
      );
      sameTensors(unsigned(await bench.gradient(info)), zero);
      const some = sequences.map(({ response }) => bench.numbers(response.length));
      const before = await gradientOf(bench, info, [{ sequences, coefficients: some }]);
      await bench.learn(sequences, zeros);
      sameTensors(unsigned(await bench.gradient(info)), unsigned(before));
    },
  },
  {
    name: "an end token that was sampled is trained: a step along its log-prob raises it",
    needs: ["sample", "score", "train", "optimizer.sgd", "optimizer.clip"],
    run: async (bench) => {
      const info = await bench.role();
      const stop = { ids: Array.from({ length: Math.ceil(info.vocabulary / 2) }, (_, i) => i) };
      const requests = Array.from({ length: 12 }, (_, i) => bench.request(info, i, { stop }));
      const answers = await bench.sample(requests);
      const ended = answers.find((answer) => answer.stop === "eos")!;
      const sequence: Sequence = { ...requests[ended.index], response: ended.ids };
      const last = ended.ids.length - 1;
      const [before] = await bench.logp([sequence]);
      await bench.learn([sequence], [Float64Array.from(ended.ids, (_, t) => (t === last ? -1 : 0))]);
      const { gradNorm } = await bench.engine.step({ set: setOf(info.role), update: { rule: "sgd", rate: 0.01 }, maxNorm: 1 });
      expect(gradNorm).toBeGreaterThan(0);
      const [after] = await bench.logp([sequence]);
      expect(after[last]).toBeGreaterThan(before[last]);
    },
  },
  {
    name: "the gradient of the inputs equals central differences through input rows",
    needs: ["train", "train.inputs", "input-rows"],
    run: async (bench) => {
      const info = await bench.role();
      const plain = bench.sequence(info, 4, 5, 0.8);
      // Powers of 2 near the size of an embedding, so that sums are exact in float32.
      const [{ hidden }] = bench.has("score.hidden") ? await bench.engine.score([plain], { hidden: [0] }) : [{ hidden: undefined }];
      const size = hidden ? 2 ** Math.round(Math.log2(Math.hypot(...hidden["0"]) / Math.sqrt(hidden["0"].length))) : 1;
      const h = size * 2 ** Math.round(Math.log2(bench.step));
      const positions = Int32Array.of(0, 2, 3);
      for (const mode of ["add", "replace"] as const) {
        const rows = Float32Array.from({ length: 3 * info.width }, () => (bench.stream.int(64) / 32 - 1) * size);
        const under = (given: Float32Array): Sequence => ({
          ...plain,
          context: { ...plain.context, rows: { positions, rows: given, mode } satisfies InputRows },
        });
        const loss = new LinearLoss(bench, info, [under(rows), bench.sequence(info, 1, 2)], ["dLogp"]);
        const { inputs } = await bench.engine.backward((await loss.forward()).handle, loss.derivatives, "inputs");
        expect(inputs!.map(({ length }) => length)).toEqual([9 * info.width, 3 * info.width]);
        const most = inputs![0].reduce((a, x) => Math.max(a, Math.abs(x)), 0);
        expect(most).toBeGreaterThan(0);
        for (const row of [0, 1, 2]) {
          for (const column of [0, bench.stream.int(info.width), bench.stream.int(info.width)]) {
            const entry = row * info.width + column;
            const found = await centralDifference((x) => loss.evaluate([under(rows.map((r, i) => (i === entry ? r + x : r))), loss.sequences[1]]), h);
            const expected = inputs![0][positions[row] * info.width + column];
            expect(Math.abs(found - expected), `${mode}, row ${row}, unit ${column}: ${expected} where differences give ${found}`).toBeLessThanOrEqual(
              Math.max(bench.tolerance.gradient, 1e-5) * most,
            );
          }
        }
      }
    },
  },
  {
    name: "the gradient of the inputs leaves that of the weights alone",
    needs: ["train", "train.inputs", "weights.tensors"],
    run: async (bench) => {
      const info = await bench.role();
      const sequences = bench.mixed(info);
      const coefficients = sequences.map(({ response }) => bench.numbers(response.length));
      const before = await gradientOf(bench, info, [{ sequences, coefficients }]);
      const { handle } = await bench.engine.forward(sequences);
      const { inputs } = await bench.engine.backward(
        handle,
        coefficients.map((dLogp) => ({ dLogp })),
        "inputs",
      );
      expect(inputs!.map(({ length }) => length)).toEqual(sequences.map(({ context, response }) => (context.ids.length + response.length) * info.width));
      sameTensors(await bench.gradient(info), before);
    },
  },
  {
    name: "trained and scored tokens are counted",
    needs: ["score", "train"],
    run: async (bench) => {
      const info = await bench.role();
      const sequences = bench.mixed(info);
      const tokens = sequences.reduce((sum, { response }) => sum + response.length, 0);
      const most = sequences.reduce((sum, { context }) => sum + context.ids.length, tokens);
      const start = await bench.engine.usage();
      await bench.logp(sequences);
      const scored = await bench.engine.usage();
      await bench.learn(
        sequences,
        sequences.map(({ response }) => bench.numbers(response.length)),
      );
      const trained = await bench.engine.usage();
      for (const counted of [scored.scoredTokens - start.scoredTokens, trained.trainedTokens - scored.trainedTokens]) {
        expect(counted).toBeGreaterThanOrEqual(tokens);
        expect(counted).toBeLessThanOrEqual(most);
      }
      expect(scored.slots - start.slots).toBeGreaterThanOrEqual(tokens);
      expect(trained.busyMs).toBeGreaterThanOrEqual(start.busyMs);
    },
  },
  {
    name: "a backward pass after the weights moved is refused, or is that of the forward pass",
    needs: ["train", "optimizer.sgd", "weights.tensors"],
    run: async (bench) => {
      const [info, twin] = [await bench.role(), await bench.role()];
      const run = (role: string): Sequence => ({
        context: { ids: Int32Array.of(1, 2), label: "plain" },
        response: Int32Array.of(3, 1, 2),
        weights: { role },
        temperature: 1,
      });
      const derivatives = [{ dLogp: Float64Array.of(1, -2, 0.5) }];
      const early = await bench.engine.forward([run(info.role)]);
      await bench.learn([run(info.role)], [Float64Array.of(3, 3, 3)]);
      await bench.engine.step({ set: setOf(info.role), update: { rule: "sgd", rate: 0.5 } });
      const outcome = await bench.engine.backward(early.handle, derivatives, setOf(info.role)).then(
        () => "done",
        (error: { code?: string }) => error.code,
      );
      expect(["done", "argument"]).toContain(outcome);
      if (outcome !== "done") return;
      await bench.engine.backward((await bench.engine.forward([run(twin.role)])).handle, derivatives, setOf(twin.role));
      const [late, fresh] = [await bench.gradient(info), await bench.gradient(twin)];
      for (const [i, { data }] of fresh.entries()) sameBits(late[i].data, data);
    },
  },
];
