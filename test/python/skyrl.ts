/** A real server of the Tinker protocol for tests: SkyRL with its JAX backend on the CPU, and a tiny Qwen3 model for it. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { cacheFolder } from "../../src/core/cache.js";
import { OnnxEngine } from "../../src/engine/onnx/engine.js";
import { randomModel } from "../../src/engine/onnx/test-engine.js";
import { repository } from "../paths.js";

/** Of the tiny model: more than the symbols of any alphabet that is used with it. */
export const tinyVocabulary = 32;

/** A folder of a random Qwen3 model of two layers, with the tokenizer that the server wants and never uses. */
export async function tinyQwen(): Promise<string> {
  const folder = join(mkdtempSync(join(tmpdir(), "qwen-")), "tiny-qwen3");
  const engine = await OnnxEngine.create({ threads: 1 });
  try {
    const shape = { layers: 2, width: 64, heads: 4, kvHeads: 2, mlp: 128, vocabulary: tinyVocabulary, family: "qwen3" } as const;
    await engine.weights.load({ role: "policy", source: randomModel(shape, 11), trainable: false });
    await engine.weights.save({ role: "policy" }, folder);
    // A short model, so that what fills it is short too.
    const file = join(folder, "config.json");
    writeFileSync(file, JSON.stringify({ ...(JSON.parse(readFileSync(file, "utf8")) as object), max_position_embeddings: 64 }));
  } finally {
    await engine.close();
  }
  const vocab = Object.fromEntries(Array.from({ length: tinyVocabulary }, (_, id) => [`t${id}`, id]));
  const tokenizer = { version: "1.0", added_tokens: [], pre_tokenizer: { type: "WhitespaceSplit" }, model: { type: "WordLevel", vocab, unk_token: "t0" } };
  writeFileSync(join(folder, "tokenizer.json"), JSON.stringify(tokenizer));
  writeFileSync(join(folder, "tokenizer_config.json"), JSON.stringify({ tokenizer_class: "PreTrainedTokenizerFast", eos_token: "t0" }));
  return folder;
}

export interface SkyrlOptions {
  /** Interpreter of an environment with SkyRL. */
  readonly python: string;
  /** Folder of the model. */
  readonly model: string;
  /** Models at one time, the base's slot among them. Default 8. */
  readonly slots?: number;
  /** Sequences that go through a pass together: with one, all batches have one shape. Default 1. */
  readonly together?: number;
  /** Sequences that are drawn together, whatever was asked for. Default 16. */
  readonly drawn?: number;
  /** Names the folder of compiled kernels, which other runs find again. */
  readonly kernels: string;
}

/** A running server; `kill` and `start` again keep address, database and checkpoints. */
export class Skyrl {
  /** What the server wrote, both streams. */
  log = "";
  private child: ChildProcess | undefined;
  private readonly home = mkdtempSync(join(tmpdir(), "skyrl-"));

  private constructor(
    private readonly options: SkyrlOptions,
    readonly port: number,
  ) {}

  /** Starts a server and waits until it answers; its engine may still be compiling. */
  static async start(options: SkyrlOptions): Promise<Skyrl> {
    const server = new Skyrl(options, await freePort());
    await server.start();
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Names of the checkpoints' folders lie below. */
  get checkpoints(): string {
    return join(this.home, "checkpoints");
  }

  async start(): Promise<void> {
    const { python, model, slots = 8, together = 1, drawn = 16, kernels } = this.options;
    const bin = dirname(python);
    const backend = { max_lora_adapters: slots, max_lora_rank: 8, train_micro_batch_size: together, sample_max_num_sequences: drawn };
    const cache = join(cacheFolder(), "python", `kernels-${kernels}`);
    mkdirSync(cache, { recursive: true });
    const args = [
      ...["run", "--active", "--no-project", "-m", "skyrl.tinker.api", "--base-model", model, "--backend", "jax"],
      ...["--backend-config", JSON.stringify(backend), "--host", "127.0.0.1", "--port", String(this.port)],
      ...["--database-url", `sqlite:///${join(this.home, "server.db")}`, "--checkpoints-base", this.checkpoints],
    ];
    const child = spawn(join(bin, "uv"), args, {
      cwd: this.home,
      // A group of its own, so that server and engine end together.
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
      env: {
        ...process.env,
        VIRTUAL_ENV: dirname(bin),
        PATH: `${bin}${delimiter}${process.env.PATH}`,
        PYTHONPATH: join(repository, "test", "python", "stubs"),
        UV_OFFLINE: "1",
        HF_HUB_OFFLINE: "1",
        JAX_PLATFORMS: "cpu",
        // Compiled sooner, run slower: of a tiny model the first is all of the time.
        XLA_FLAGS: "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true",
        JAX_COMPILATION_CACHE_DIR: cache,
        JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS: "0",
        JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES: "-1",
      },
    });
    this.child = child;
    for (const stream of [child.stdout, child.stderr]) stream?.on("data", (piece: Buffer) => (this.log = (this.log + piece.toString()).slice(-200_000)));
    process.once("exit", this.atExit);
    for (let tries = 0; ; tries++) {
      if (child.exitCode !== null) throw new Error(`the server ended with code ${child.exitCode}: ${this.tail()}`);
      const answer = await fetch(`${this.url}/api/v1/healthz`).catch(() => undefined);
      if (answer?.ok) return;
      if (tries === 600) throw new Error(`the server does not answer: ${this.tail()}`);
      await sleep(200);
    }
  }

  /** Ends server and engine as a power failure would. */
  async kill(): Promise<void> {
    await this.end("SIGKILL");
  }

  async stop(): Promise<void> {
    await this.end("SIGTERM");
  }

  private async end(signal: NodeJS.Signals): Promise<void> {
    const { child } = this;
    this.child = undefined;
    process.off("exit", this.atExit);
    if (child?.pid === undefined || child.exitCode !== null) return;
    const closed = new Promise((resolve) => child.once("exit", resolve));
    this.signal(child.pid, signal);
    const late = setTimeout(() => this.signal(child.pid as number, "SIGKILL"), 10_000);
    await closed;
    clearTimeout(late);
    // The engine's process ends after its parent.
    this.signal(child.pid, "SIGKILL");
  }

  private signal(group: number, signal: NodeJS.Signals): void {
    try {
      process.kill(-group, signal);
    } catch {
      // It has ended meanwhile.
    }
  }

  private readonly atExit = (): void => {
    if (this.child?.pid !== undefined) this.signal(this.child.pid, "SIGKILL");
  };

  private tail(): string {
    return this.log.trim().split("\n").slice(-12).join("\n");
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}
