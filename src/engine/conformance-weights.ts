import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { type Bench, type Case, sameBits, sameTensors, setOf } from "./conformance-bench.js";
import type { ModelInfo, TensorValue } from "./contract.js";

/** Other weights: every number a little larger. */
async function disturb(bench: Bench, info: ModelInfo): Promise<void> {
  const tensors = await bench.read(info);
  await bench.engine.weights.write(
    info.role,
    tensors.map((tensor): TensorValue => ({ ...tensor, data: tensor.data.map((x, i) => x + (i % 3) / 16) })),
  );
}

export const weightsCases: readonly Case[] = [
  {
    name: "a model tells its size and its tensors",
    needs: ["weights.tensors"],
    run: async (bench) => {
      const info = await bench.role();
      expect(await bench.engine.weights.info(info.role)).toEqual(info);
      const tensors = await bench.read(info);
      expect(tensors.map(({ name, shape }) => ({ name, shape }))).toEqual(info.tensors.map(({ name, shape }) => ({ name, shape })));
      for (const { shape, data } of tensors) expect(data).toHaveLength(shape.reduce((a, b) => a * b, 1));
      expect(tensors.reduce((sum, { data }) => sum + data.length, 0)).toBe(info.parameters);
      expect(info).toMatchObject({ trainable: true });
      expect(info.vocabulary).toBeGreaterThanOrEqual(8);
    },
  },
  {
    name: "what is written is read, what is not written stays, and log-probs follow",
    needs: ["score", "weights.tensors"],
    run: async (bench) => {
      const info = await bench.role();
      const sequence = bench.sequence(info, 2, 6);
      const [logp] = await bench.logp([sequence]);
      const before = await bench.read(info);
      const [first] = before;
      const data = first.data.map((x, i) => x + ((i % 5) - 2) / 8);
      await bench.engine.weights.write(info.role, [{ ...first, data }]);
      const after = await bench.read(info);
      // An engine in float32 rounds what it is given.
      bench.close(after[0].data, data, 1e-7 * data.reduce((most, x) => Math.max(most, Math.abs(x)), 1));
      sameTensors(after.slice(1), before.slice(1));
      expect((await bench.logp([sequence]))[0]).not.toEqual(logp);
      await bench.engine.weights.write(info.role, [first]);
      sameTensors(await bench.read(info), before);
      sameBits((await bench.logp([sequence]))[0], logp);
    },
  },
  {
    name: "arrays that were read or written belong to the caller",
    needs: ["weights.tensors"],
    run: async (bench) => {
      const info = await bench.role();
      const before = await bench.read(info);
      const written = before.map((tensor) => ({ ...tensor, data: tensor.data.slice() }));
      await bench.engine.weights.write(info.role, written);
      for (const { data } of [...written, ...(await bench.read(info))]) data.fill(7);
      sameTensors(await bench.read(info), before);
    },
  },
  {
    name: "roles are independent, and a copy is a copy",
    needs: ["score", "roles", "weights.tensors"],
    run: async (bench) => {
      const info = await bench.role();
      const other = await bench.role();
      await disturb(bench, other);
      const copy = await bench.role({ source: { from: "role", role: other.role }, trainable: false });
      expect(copy).toMatchObject({ trainable: false, vocabulary: info.vocabulary, width: info.width });
      const sequence = bench.sequence(info, 2, 5);
      const under = (role: string) => ({ ...sequence, weights: { role } });
      const [one, two, three] = await bench.logp([under(info.role), under(other.role), under(copy.role)]);
      sameBits(three, two);
      expect(one).not.toEqual(two);
      await disturb(bench, other);
      const [oneLater, twoLater, threeLater] = await bench.logp([under(info.role), under(other.role), under(copy.role)]);
      sameBits(oneLater, one);
      sameBits(threeLater, three);
      expect(twoLater).not.toEqual(two);
      await bench.engine.weights.unload(other.role);
      sameBits((await bench.logp([under(copy.role)]))[0], three);
      await bench.engine.weights.load({ role: other.role, source: bench.subject.source, trainable: true });
    },
  },
  {
    name: "the same source gives the same weights",
    needs: ["roles", "weights.tensors"],
    run: async (bench) => {
      sameTensors(await bench.read(await bench.role()), await bench.read(await bench.role()));
    },
  },
  {
    name: "snapshots keep weights under a name: to score and sample under, to read, to restore, to drop",
    needs: ["score", "sample", "snapshots", "weights.tensors"],
    run: async (bench) => {
      const { weights } = bench.engine;
      const info = await bench.role();
      const sequence = bench.sequence(info, 2, 5);
      const request = bench.request(info, 1, { maxTokens: 8, temperature: 1.5 });
      const [logp] = await bench.logp([sequence]);
      const [answer] = await bench.sample([request]);
      const tensors = await bench.read(info);
      await weights.snapshot(info.role, "old");
      await disturb(bench, info);
      const at = { role: info.role, at: "old" };
      const [now, then] = await bench.logp([sequence, { ...sequence, weights: at }]);
      sameBits(then, logp);
      expect(now).not.toEqual(logp);
      const [sampled] = await bench.sample([{ ...request, weights: at }]);
      expect(Array.from(sampled.ids)).toEqual(Array.from(answer.ids));
      sameBits(sampled.logp, answer.logp);
      sameTensors(
        await weights.read(
          at,
          info.tensors.map(({ name }) => name),
        ),
        tensors,
      );
      await weights.snapshot(info.role, "new");
      await weights.restore(info.role, "old");
      sameTensors(await bench.read(info), tensors);
      await weights.restore(info.role, "new");
      sameBits((await bench.logp([sequence]))[0], now);
      await weights.dropSnapshot(info.role, "old");
      await expect(bench.logp([{ ...sequence, weights: at }])).rejects.toMatchObject({ code: "argument" });
      sameBits((await bench.logp([sequence]))[0], now);
    },
  },
  {
    name: "saved weights come back as a snapshot with their identity, and the role stays as it is",
    needs: ["score", "sample", "save", "snapshots", "weights.tensors"],
    run: async (bench) => {
      const { weights } = bench.engine;
      const folder = join(await mkdtemp(join(tmpdir(), "conformance-")), "model");
      try {
        const info = await bench.role();
        const { role } = info;
        const sequence = bench.sequence(info, 2, 5);
        const [then] = await bench.logp([sequence]);
        await weights.snapshot(role, "kept");
        await weights.save({ role, at: "kept" }, folder);
        await disturb(bench, info);
        const [now] = await bench.logp([sequence]);
        const snapshot = { name: "back", identity: `${role}@7` };
        expect(await weights.load({ role, source: { from: "folder", path: folder }, trainable: true, snapshot })).toEqual(info);
        const at = { role, at: "back" };
        const [still, back, kept] = await bench.logp([sequence, { ...sequence, weights: at }, { ...sequence, weights: { role, at: "kept" } }]);
        sameBits(still, now);
        sameBits(back, then);
        sameBits(kept, then);
        const [answer] = await bench.sample([{ ...bench.request(info, 1, { maxTokens: 4 }), weights: at }]);
        expect(answer.weights).toBe(snapshot.identity);
        const nobody = weights.load({ role: "nobody", source: { from: "folder", path: folder }, trainable: true, snapshot });
        await expect(nobody).rejects.toMatchObject({ code: "argument" });
      } finally {
        await rm(join(folder, ".."), { recursive: true, force: true });
      }
    },
  },
  {
    name: "a step leaves snapshots and copies alone",
    needs: ["score", "train", "snapshots", "roles", "optimizer.sgd", "optimizer.clip"],
    run: async (bench) => {
      const info = await bench.role();
      const copy = await bench.role({ source: { from: "role", role: info.role } });
      await bench.engine.weights.snapshot(info.role, "start");
      const sequence = bench.sequence(info, 2, 5);
      const [start] = await bench.logp([sequence]);
      await bench.learn([sequence], [bench.numbers(5)]);
      await bench.engine.step({ set: setOf(info.role), update: { rule: "sgd", rate: 0.5 }, maxNorm: 1 });
      const [moved, kept, copied] = await bench.logp([
        sequence,
        { ...sequence, weights: { role: info.role, at: "start" } },
        { ...sequence, weights: { role: copy.role } },
      ]);
      expect(moved).not.toEqual(start);
      sameBits(kept, start);
      sameBits(copied, start);
    },
  },
  {
    name: "save and load: a folder with config.json, byte-identical tensors and log-probs, over what was there before",
    needs: ["score", "save", "weights.tensors"],
    run: async (bench) => {
      const root = await mkdtemp(join(tmpdir(), "conformance-"));
      try {
        const folder = join(root, "model");
        const info = await bench.role();
        await bench.engine.weights.save({ role: info.role }, folder);
        await disturb(bench, info);
        await bench.engine.weights.save({ role: info.role }, folder);
        JSON.parse(await readFile(join(folder, "config.json"), "utf8"));
        expect((await stat(join(folder, "model.safetensors"))).size).toBeGreaterThan(0);
        const back = await bench.role({ source: { from: "folder", path: folder } });
        sameTensors(await bench.read(back), await bench.read(info));
        const sequence = bench.sequence(info, 3, 6);
        const [one, two] = await bench.logp([sequence, { ...sequence, weights: { role: back.role } }]);
        sameBits(two, one);
      } finally {
        await rm(root, { recursive: true, force: true });
      }
    },
  },
];
