/** What every version of SkyRL is held to, as tests: the engine's conformance, numbers equal to the embedded engine's, learning, kills of either side. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { saveAlphabet } from "../../src/core/alphabet.js";
import { plainContext } from "../../src/core/problem.js";
import type { Tokenizer } from "../../src/core/tokenizer.js";
import { conformance } from "../../src/engine/conformance.js";
import type { Engine, Sequence } from "../../src/engine/contract.js";
import { OnnxEngine } from "../../src/engine/onnx/engine.js";
import { SafetensorsFile } from "../../src/engine/safetensors.js";
import { connectTinker } from "../../src/engine/tinker/start.js";
import { RunReader } from "../../src/train/store/reader.js";
import { resume, type TrainOptions, train } from "../../src/train/train.js";
import { repository } from "../paths.js";
import { pythonOf, skyrl } from "../python/environment.js";
import { Skyrl, tinyQwen, tinyVocabulary } from "../python/skyrl.js";
import { run } from "../run.js";
import even from "./even-task.js";

const task = join(repository, "test/support/even-task.ts");
const policy = { role: "policy" } as const;
const rank = 4;

type Metrics = { readonly [name: string]: number };
const stepsOf = (folder: string): Metrics[] =>
  [...RunReader.open(folder).events()].flatMap(({ kind, data }) => (kind === "step" ? [data.metrics as Metrics] : []));
const mean = (some: readonly Metrics[]): number => some.reduce((sum, { reward }) => sum + (reward as number), 0) / some.length;

/** Registers the tests of a version; `kills`: how often a client is killed. */
export async function skyrlSuite(version: "0.3" | "0.4", kills = 3): Promise<void> {
  const python = await pythonOf(skyrl(version));
  describe.skipIf(!python)(`SkyRL ${version}`, () => {
    const scratch = mkdtempSync(join(tmpdir(), "skyrl-runs-"));
    let server: Skyrl;
    let model: string;

    beforeAll(async () => {
      model = await tinyQwen();
      await saveAlphabet(even().tokenizer as Tokenizer, model);
      // Killed clients leave their models until their sessions end.
      server = await Skyrl.start({ python: python as string, model, slots: 24, kernels: version });
    });
    afterAll(async () => {
      await server?.stop();
    });

    const source = () => ({ from: "folder", path: model }) as const;
    // One budget for all draws of the suite, so that the server compiles for one.
    const connect = () => connectTinker({ baseUrl: server.url, rank, roundTokens: 64 });
    // float32, drawn and trained by different programs of the server.
    conformance(`tinker (SkyRL ${version})`, async () => ({
      engine: await connect(),
      source: source(),
      tolerance: { logp: 1e-4, gradient: 1e-3, update: 1e-3 },
    }));

    it("gives the embedded engine's log-probs and gradients on the same weights", async () => {
      const engine = await connect();
      const own = await OnnxEngine.create({ threads: 1 });
      try {
        await engine.weights.load({ role: "policy", source: source(), trainable: true });
        const sequences = [3, 5, 2, 6].map((context, i): Sequence => {
          const ids = Int32Array.from({ length: context + 8 }, (_, t) => (7 * i + 5 * t + i * t) % tinyVocabulary);
          return { context: plainContext(ids.slice(0, context)), response: ids.slice(context), weights: policy, temperature: 1 };
        });
        const derivatives = sequences.map(({ response }, i) => ({ dLogp: Float64Array.from(response, (_, t) => Math.sin(i + 2 * t) / 8) }));
        const pass = async (on: Engine): Promise<readonly Float64Array[]> => {
          const { handle, scores } = await on.forward(sequences);
          await on.backward(handle, derivatives, "role:policy");
          return scores.map(({ logp }) => logp);
        };
        // A first step, since a new adapter has a gradient in one half alone.
        await pass(engine);
        await engine.step({ set: "role:policy", update: { rule: "adamw", rate: 0.02, beta1: 0.9, beta2: 0.95, epsilon: 1e-8 } });
        const before = join(scratch, "before");
        const after = join(scratch, "after");
        await engine.weights.save(policy, before);
        await own.weights.load({ role: "policy", source: source(), trainable: true, adapter: { from: "folder", path: before } });
        const [theirs, ours] = [await pass(engine), await pass(own)];
        const worst = Math.max(...theirs.flatMap((logp, i) => [...logp].map((x, t) => Math.abs(x - (ours[i][t] as number)))));
        // Without memory and with a large epsilon a step is the gradient itself, made smaller.
        const update = { rule: "adamw", rate: 1, beta1: 0, beta2: 0, epsilon: 1e4 } as const;
        await engine.step({ set: "role:policy", update });
        await own.step({ set: "role:policy", update });
        await engine.weights.save(policy, after);
        await own.weights.save(policy, join(scratch, "own"));
        const { cosine, ratio } = await changesOf(before, after, join(scratch, "own"));
        const told = `log-probs within ${worst.toExponential(1)}, change of weights of a step with cosine ${cosine.toFixed(6)} and ${ratio.toFixed(5)} times as long`;
        console.log(`SkyRL ${version} against the embedded engine: ${told}`);
        expect(worst).toBeLessThan(1e-3);
        expect(cosine).toBeGreaterThanOrEqual(0.999);
        expect(Math.abs(ratio - 1)).toBeLessThan(1e-3);
      } finally {
        await own.close();
        await engine.close();
      }
    });

    const options = (name: string, more: Partial<TrainOptions> = {}): TrainOptions => ({
      model,
      out: join(scratch, name),
      task,
      engine: { name: "tinker", base_url: server.url },
      lora: { rank },
      steps: 6,
      problems: 4,
      group: 4,
      lr: 0.02,
      seed: 3,
      checkpoint: { every: 2, keep_last: 100 },
      verifier_workers: 0,
      ...more,
    });

    let trained = "";
    it("teaches a policy in 20 GRPO steps of 16 x 8: 0.1 more reward in the last five than in the first five", async () => {
      const settings = options("grpo", { steps: 20, problems: 16, group: 8, lr: 0.002, checkpoint: { every: 20 } });
      const { model: last } = await train(settings);
      trained = last;
      const steps = stepsOf(settings.out);
      const gain = mean(steps.slice(-5)) - mean(steps.slice(0, 5));
      console.log(`SkyRL ${version}: reward ${mean(steps.slice(0, 5)).toFixed(3)} in the first five steps, ${mean(steps.slice(-5)).toFixed(3)} in the last`);
      expect(gain).toBeGreaterThanOrEqual(0.1);
      // A batch whose answers are all right has no pass that could tell.
      const gaps = steps.flatMap(({ gap_mean }) => gap_mean ?? []);
      expect(gaps.length).toBeGreaterThanOrEqual(5);
      expect(Math.max(...gaps)).toBeLessThan(1e-4);
    });

    /** The numbers of a run that nothing happened to, within what a batch of another make-up leaves. */
    const alike = (folder: string, whole: readonly Metrics[]): void => {
      const steps = stepsOf(folder);
      expect(steps).toHaveLength(whole.length);
      steps.forEach((metrics, i) => {
        expect(metrics.reward, `reward of step ${i + 1}`).toBeCloseTo(whole[i].reward as number, 6);
        expect(Math.abs((metrics.grad_norm as number) / (whole[i].grad_norm as number) - 1), `gradient of step ${i + 1}`).toBeLessThan(1e-3);
      });
    };
    let whole: Metrics[] = [];

    it("whose client is killed at any moment goes on from its checkpoint with the same numbers", async () => {
      await train(options("whole"));
      whole = stepsOf(join(scratch, "whole"));
      const out = join(scratch, "killed");
      const words = [
        "--model",
        model,
        "--task",
        task,
        "--engine",
        "tinker",
        "--base-url",
        server.url,
        "--lora",
        String(rank),
        "--steps",
        "6",
        "--problems",
        "4",
        "--group",
        "4",
      ];
      const begin = [
        "train",
        ...words,
        "--lr",
        "0.02",
        "--seed",
        "3",
        "--checkpoint-every",
        "2",
        "--verifier-workers",
        "0",
        "--set",
        "checkpoint.keep_last=100",
        "--out",
        out,
      ];
      let killed = 0;
      for (let tries = 0; killed < kills && tries < 4 * kills; tries++) {
        const begun = lastCheckpoint(out) !== undefined;
        const child = client(begun ? ["train", "--resume", out] : begin);
        let told = "";
        child.stderr?.on("data", (piece: Buffer) => (told += piece.toString()));
        const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
        // From the moment on that it trains, at one that differs each time.
        await Promise.race([said(child, begun ? /training/ : /training: 1\//), ended]);
        await Promise.race([sleep(137 * (tries + 1)), ended]);
        if (child.exitCode !== null) {
          expect(child.exitCode, told).toBe(0);
          break;
        }
        child.kill("SIGKILL");
        await ended;
        killed++;
      }
      const result = await resume(out);
      expect(result).toMatchObject({ reason: "done", steps: 6 });
      expect(killed).toBeGreaterThan(0);
      console.log(`SkyRL ${version}: the client was killed ${killed} times`);
      alike(out, whole);
    });

    it("that is killed in the middle of a step is waited for, and makes no step twice", async () => {
      const messages: string[] = [];
      let back: Promise<void> | undefined;
      let done = 0;
      await train(
        options("server-killed", {
          onProgress: (progress) => {
            if (progress.kind === "message") messages.push(progress.text);
            if (progress.kind === "step") done = progress.step;
            if (progress.kind === "await" && progress.what === "updates" && done === 3)
              back ??= server
                .kill()
                .then(() => sleep(1_500))
                .then(() => server.start());
          },
        }),
      );
      await back;
      const told = messages.join("\n");
      expect(told).toMatch(/does not answer \(.*\): waiting up to 900 s for it/);
      expect(told).toMatch(/answers again/);
      expect(told).toMatch(/the model of policy was loaded anew from tinker:.*, and 1 of its steps were made again/);
      alike(join(scratch, "server-killed"), whole);
    });

    it.skipIf(version === "0.3")("is read by the official Python SDK: the same log-probs of what was trained", async () => {
      const ids = Int32Array.from([2, 5, 6, 7, 3, 5, 7, 9, 11, 5, 5, 0]);
      const engine = await connect();
      try {
        await engine.weights.load({ role: "policy", source: { from: "folder", path: trained }, trainable: false });
        const [{ logp }] = await engine.score([{ context: plainContext(ids.slice(0, 1)), response: ids.slice(1), weights: policy, temperature: 1 }]);
        const code = join(repository, "test/python/sdk.py");
        const env = { ...process.env, TINKER_API_KEY: "tml-test", TINKER_BASE_URL: server.url };
        const { code: exit, out, err } = await run(python as string, [code, join(trained, "tinker.json"), JSON.stringify([...ids])], { env });
        expect(err.slice(-2000) || "nothing", `exit code ${exit}`).toEqual(exit === 0 ? expect.anything() : "nothing");
        const told = JSON.parse(out.trim().split("\n").at(-1) as string) as (number | null)[];
        expect(told.slice(-logp.length)).toHaveLength(logp.length);
        logp.forEach((x, t) => expect(told.slice(-logp.length)[t]).toBeCloseTo(x, 4));
      } finally {
        await engine.close();
      }
    });
  });
}

const client = (args: readonly string[]): ChildProcess =>
  spawn(process.execPath, ["--import", "tsx", "src/cli/main.ts", ...args], { cwd: repository, stdio: ["ignore", "ignore", "pipe"] });

/** Resolves once a process has written this to its errors. */
const said = (child: ChildProcess, pattern: RegExp): Promise<void> =>
  new Promise((resolve) => {
    let text = "";
    child.stderr?.on("data", (piece: Buffer) => {
      text += piece.toString();
      if (pattern.test(text)) resolve();
    });
  });

function lastCheckpoint(folder: string): number | undefined {
  try {
    return RunReader.open(folder).checkpoints.steps().at(-1);
  } catch {
    return undefined;
  }
}

/**
 * The changes of an adapter, from `before` to two others: the cosine between them, and the first's length over the second's.
 * A server may have one A for q, k and v, and one for gate and up, which it writes down several times: its gradient is then the sum of theirs.
 */
async function changesOf(before: string, one: string, other: string): Promise<{ readonly cosine: number; readonly ratio: number }> {
  const files = await Promise.all([before, one, other].map((folder) => SafetensorsFile.open(join(folder, "adapter_model.safetensors"))));
  const tied = new Map<string, { readonly theirs: Float64Array; readonly ours: Float64Array }>();
  for (const name of files[0].entries.keys()) {
    const [start, theirs, ours] = await Promise.all(files.map((file) => file.readFloat64(name)));
    const changed = (to: ArrayLike<number>): Float64Array => Float64Array.from(to, (x, i) => x - (start[i] as number));
    const same = tied.get(Array.from(start).join());
    // A new B is zero wherever it lies: only an A tells what it belongs to.
    if (name.includes("lora_A") && same) changed(ours).forEach((x, i) => (same.ours[i] += x));
    else tied.set(name.includes("lora_A") ? Array.from(start).join() : name, { theirs: changed(theirs), ours: changed(ours) });
  }
  await Promise.all(files.map((file) => file.close()));
  let [ab, aa, bb] = [0, 0, 0];
  for (const { theirs, ours } of tied.values()) {
    theirs.forEach((x, i) => {
      const y = ours[i] as number;
      [ab, aa, bb] = [ab + x * y, aa + x * x, bb + y * y];
    });
  }
  return { cosine: ab / Math.sqrt(aa * bb), ratio: Math.sqrt(aa / bb) };
}
