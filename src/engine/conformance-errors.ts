import { expect } from "vitest";
import { TouchstoneError } from "../core/errors.js";
import { type Bench, type Case, sameTensors, setOf } from "./conformance-bench.js";
import type { Capability, ModelInfo, SampleRequest, ScoreWant, Sequence } from "./contract.js";

/** Refused with an error of the class behind `code`, in one line that holds every one of the words. */
async function refused(call: () => Promise<unknown>, code: string, ...words: readonly string[]): Promise<void> {
  const error = await call().then(
    () => expect.fail(`accepted what should be refused as ${code} (${words.join(", ")})`),
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof TouchstoneError)) throw error;
  expect(error.code, error.message).toBe(code);
  expect(error.message).not.toContain("\n");
  expect(error.mend.length, error.message).toBeGreaterThan(0);
  for (const word of words) expect(error.message).toContain(word);
}

/** Calls that need one capability and can be made through the contract. */
function callsFor(bench: Bench, info: ModelInfo): readonly [Capability, () => Promise<unknown>][] {
  const sequence = bench.sequence(info, 2, 2);
  const score = (want: ScoreWant) => () => bench.engine.score([sequence], want);
  const sample = (more: Partial<SampleRequest>) => () => bench.sample([bench.request(info, 0, more)]);
  const { vocabulary: size } = info;
  return [
    ["score.entropy", score({ entropy: true })],
    ["score.temperature", () => bench.engine.score([{ ...sequence, temperature: 2 }])],
    ["score.top-k", score({ topK: 2 })],
    ["score.full", score({ full: true })],
    ["score.hidden", score({ hidden: ["final"] })],
    ["score.values", score({ values: true })],
    ["score.targets", score({ targets: [bench.targets(sequence, 2, size)] })],
    ["sample.top-k", sample({ topK: 2 })],
    ["sample.forced", sample({ forced: Int32Array.of(1) })],
    ["sample.greedy", sample({ greedy: true })],
    ["sample.truncation", sample({ truncation: { topP: 0.5 } })],
    ["sample.stop-strings", sample({ stop: { ids: [], strings: ["x"] } })],
    ["media", sample({ context: { ids: Int32Array.of(1), label: "plain", media: [{ position: 0, type: "image", data: Uint8Array.of(1) }] } })],
    [
      "input-rows",
      sample({ context: { ids: Int32Array.of(1), label: "plain", rows: { positions: Int32Array.of(0), rows: new Float32Array(info.width), mode: "add" } } }),
    ],
    ["weights.perturb", sample({ weights: { role: info.role, perturb: { seed: 1, sigma: 0.1 } } })],
    ["adapters", sample({ weights: { role: info.role, scale: 0.5 } })],
    ["train", () => bench.engine.forward([sequence])],
  ];
}

export const errorCases: readonly Case[] = [
  {
    name: "what the engine lacks is refused by name with the engine's reason, and what it has is not",
    needs: ["sample", "score"],
    run: async (bench) => {
      const info = await bench.role();
      for (const [capability, call] of callsFor(bench, info)) {
        if (!bench.has(capability)) await refused(call, "capability", capability, bench.engine.info.lacks[capability]!);
        else if (capability !== "adapters") await call();
      }
    },
  },
  {
    name: "sequences that cannot be meant are refused in one sentence",
    needs: ["score"],
    run: async (bench) => {
      const info = await bench.role();
      const { vocabulary, role } = info;
      const good = bench.sequence(info, 2, 3);
      const context = (ids: readonly number[]) => ({ ids: Int32Array.from(ids), label: "plain" });
      const score =
        (more: Partial<Sequence>, want: ScoreWant = {}) =>
        () =>
          bench.engine.score([good, { ...good, ...more }], want);
      await refused(score({ context: context([]) }), "argument", "1", "empty");
      await refused(score({ context: context([0, vocabulary]) }), "argument", String(vocabulary));
      await refused(score({ context: context([-1]) }), "argument", "-1");
      await refused(score({ response: Int32Array.of(0, vocabulary + 3) }), "argument", String(vocabulary + 3));
      for (const temperature of [0, -1, Number.NaN, 1e-38, 1e10]) await refused(score({ temperature }), "argument", String(temperature), "greedy");
      await refused(score({ weights: { role: "nobody" } }), "argument", "nobody");
      if (bench.has("snapshots")) await refused(score({ weights: { role, at: "never" } }), "argument", "never");
      if (bench.has("score.top-k")) await refused(score({}, { topK: vocabulary + 1 }), "argument", "topK");
      if (!bench.has("score.targets")) return;
      const targets = (k: number, ids: readonly number[]): ScoreWant => ({ targets: [undefined, { k, ids: Int32Array.from(ids) }] });
      await refused(score({}, { targets: [undefined] }), "argument", "targets");
      await refused(score({}, targets(2, [0, 1, 2, 3, 4])), "argument", "5");
      await refused(score({}, targets(2, [0, 1, 2, 2, 3, 4])), "argument", "2", "twice");
      await refused(score({}, targets(1, [0, 1, vocabulary])), "argument", String(vocabulary));
    },
  },
  {
    name: "sample requests that cannot be meant are refused before anything is drawn",
    needs: ["sample"],
    run: async (bench) => {
      const info = await bench.role();
      const { sampledTokens } = await bench.engine.usage();
      const bad = (more: Partial<SampleRequest>) => () => bench.sample([bench.request(info, 0), bench.request(info, 1, more)]);
      await refused(bad({ context: { ids: new Int32Array(0), label: "plain" } }), "argument", "1", "empty");
      await refused(bad({ temperature: 0 }), "argument", "0", "greedy");
      await refused(bad({ maxTokens: 0 }), "argument", "maxTokens");
      await refused(bad({ stop: { ids: [info.vocabulary] } }), "argument", "stop");
      await refused(bad({ weights: { role: "nobody" } }), "argument", "nobody");
      if (bench.has("sample.forced")) {
        await refused(bad({ forced: Int32Array.of(0, info.vocabulary) }), "argument", "forced");
        await refused(bad({ maxTokens: 2, forced: Int32Array.of(1, 1, 1) }), "argument", "maxTokens");
      }
      expect((await bench.engine.usage()).sampledTokens).toBe(sampledTokens);
    },
  },
  {
    name: "a context and response that are too long for the model are refused with the numbers",
    needs: ["sample", "score"],
    run: async (bench) => {
      const info = await bench.role();
      const most = info.maxTokens;
      await refused(() => bench.sample([bench.request(info, 0, { maxTokens: most })]), "argument", String(most));
      if (most > 100_000) return;
      await refused(() => bench.engine.score([bench.sequence(info, most, 1)]), "argument", String(most));
    },
  },
  {
    name: "a handle works once; derivatives must fit what forward returned; weights must be those of the set",
    needs: ["train"],
    run: async (bench) => {
      const { engine } = bench;
      const [info, other] = [await bench.role(), await bench.role()];
      const frozen = await bench.role({ trainable: false });
      const sequence = bench.sequence(info, 2, 3);
      const set = setOf(info.role);
      const three = { dLogp: new Float64Array(3) };
      const { handle } = await engine.forward([sequence, sequence]);
      await refused(() => engine.backward(handle, [three], set), "argument", "1", "2");
      const fresh = async (): Promise<string> => (await engine.forward([sequence])).handle;
      const backward =
        (handleOf: string, derivatives: object, to = set) =>
        () =>
          engine.backward(handleOf, [derivatives], to);
      await refused(backward(await fresh(), { dLogp: new Float64Array(2) }), "argument", "dLogp", "2", "3");
      await refused(backward(await fresh(), { dEntropy: new Float64Array(3) }), "argument", "dEntropy");
      await refused(backward(await fresh(), three, setOf(other.role)), "argument", info.role, other.role);
      await refused(backward(await fresh(), three, setOf("nobody")), "argument", "nobody");
      const still = await engine.forward([{ ...sequence, weights: { role: frozen.role } }]);
      await refused(backward(still.handle, three, setOf(frozen.role)), "argument", frozen.role);
      const once = await fresh();
      await engine.backward(once, [three], set);
      await refused(backward(once, three), "argument", once);
      await refused(backward("no-such-pass", three), "argument", "no-such-pass");
      const released = await fresh();
      await engine.release(released);
      await refused(backward(released, three), "argument", released);
      if (bench.has("weights.tensors")) expect((await bench.gradient(info)).every(({ data }) => data.every((x) => x === 0))).toBe(true);
    },
  },
  {
    name: "steps and writes that cannot be meant are refused, and nothing is changed",
    needs: ["train", "weights.tensors", "optimizer.adamw"],
    run: async (bench) => {
      const { engine } = bench;
      const info = await bench.role();
      const before = await bench.read(info);
      const set = setOf(info.role);
      const update = { rule: "adamw", rate: 0.1 } as const;
      await refused(() => engine.step({ set, update: { ...update, rate: Number.NaN } }), "argument", "rate");
      await refused(() => engine.step({ set, update: { ...update, beta1: 1 } }), "argument", "beta1");
      await refused(() => engine.step({ set, update, maxNorm: 0 }), "argument", "maxNorm");
      await refused(() => engine.step({ set: setOf("nobody"), update }), "argument", "nobody");
      const [first] = before;
      const write = (more: object) => () =>
        engine.weights.write(info.role, [
          { ...first, data: first.data.map((x) => x + 1) },
          { ...first, ...more },
        ]);
      await refused(write({ name: "no.such.tensor" }), "argument", "no.such.tensor");
      await refused(write({ data: first.data.slice(1) }), "argument", first.name);
      await refused(write({ shape: [...first.shape, 1] }), "argument", first.name);
      await refused(write({ data: first.data.map((x, i) => (i === 0 ? Number.NaN : x)) }), "argument", first.name, "NaN");
      await refused(() => engine.weights.read({ role: info.role }, ["no.such.tensor"]), "argument", "no.such.tensor");
      sameTensors(await bench.read(info), before);
    },
  },
  {
    name: "roles and snapshots that are not there are named",
    needs: ["roles", "snapshots"],
    run: async (bench) => {
      const { weights } = bench.engine;
      const info = await bench.role();
      for (const call of [
        () => weights.info("nobody"),
        () => weights.unload("nobody"),
        () => weights.snapshot("nobody", "x"),
        () => weights.write("nobody", []),
      ]) {
        await refused(call, "argument", "nobody");
      }
      await refused(() => weights.restore(info.role, "never"), "argument", "never");
      await refused(() => weights.dropSnapshot(info.role, "never"), "argument", "never");
      await refused(() => bench.role({ source: { from: "role", role: "nobody" } }), "argument", "nobody");
      await refused(() => bench.role({ source: { from: "folder", path: "/no/such/folder" } }), "model", "/no/such/folder");
    },
  },
];
