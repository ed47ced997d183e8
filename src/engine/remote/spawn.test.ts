import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath, pathToFileURL } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { blocking, loaded } from "../../../test/remote/bigram-engine.js";
import { EngineError } from "../../core/errors.js";
import { plainContext } from "../../core/problem.js";
import type { Sequence } from "../contract.js";
import type { RemoteEngine } from "./client.js";
import { allocatorSettings, type SpawnOptions, spawnEngine, spawnPool } from "./spawn.js";

const entry = new URL("../../../test/remote/host.ts", import.meta.url);
const open: RemoteEngine[] = [];

afterEach(async () => {
  await Promise.all(open.splice(0).map((engine) => engine.close()));
});

async function start(options: Partial<SpawnOptions> = {}): Promise<RemoteEngine> {
  const engine = await spawnEngine({ entry, ...options });
  open.push(engine);
  return engine;
}

const sequence = (label = "plain"): Sequence => ({
  context: plainContext([1], label),
  response: Int32Array.of(2, 3),
  weights: { role: "policy" },
  temperature: 1,
});

/** Whether a process runs; one that has ended and whose new parent has not asked for it yet does not. */
function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return process.platform !== "linux" || !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch {
    return false;
  }
}

/** Resolves with the milliseconds until the process is gone. */
async function goneAfter(pid: number): Promise<number> {
  const since = performance.now();
  while (alive(pid)) await new Promise((resolve) => setTimeout(resolve, 10));
  return performance.now() - since;
}

describe("an engine process", () => {
  it("runs apart, with the allocator told to keep its memory, and hands on what it prints", async () => {
    const lines: string[] = [];
    const engine = await start({ onLine: (line) => lines.push(line) });
    expect(engine.pid).not.toBe(process.pid);
    await loaded(engine);
    expect(await engine.score([sequence()])).toHaveLength(1);
    await engine.close();
    expect(lines).toEqual([expect.stringMatching(/^allocator keeps \d+$/)]);
    expect(alive(engine.pid)).toBe(false);
  });

  it("killed in the middle of a call fails all pending calls within two seconds, and another can be started", async () => {
    const engine = await loaded(await start());
    const calls = [engine.score([sequence(blocking)]), engine.usage(), engine.weights.info("policy")];
    const outcomes = Promise.allSettled(calls);
    await new Promise((resolve) => setTimeout(resolve, 200)); // by now the engine's thread is inside the call
    const sent = performance.now();
    process.kill(engine.pid, "SIGKILL");
    for (const outcome of await outcomes) {
      const { reason } = outcome as PromiseRejectedResult;
      expect(reason).toBeInstanceOf(EngineError);
      expect((reason as EngineError).message).toMatch(
        /process \d+ ended \(killed by SIGKILL, which the system sends when out of memory; it printed "allocator.*"\) during score, usage, weights\.info/,
      );
      expect((reason as EngineError).data).toMatchObject({ pid: engine.pid, signal: "SIGKILL", lines: [expect.stringContaining("allocator")] });
    }
    // The bound is part of what is promised; it is not a measurement.
    expect(performance.now() - sent).toBeLessThan(2000);
    await expect(engine.usage()).rejects.toThrow("SIGKILL");
    expect(await (await loaded(await start())).score([sequence()])).toHaveLength(1);
  });

  it("is gone a second after its parent was killed, even while it computes, and its socket with it and what lies beside it", async () => {
    const tsx = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href;
    const parent = spawn(process.execPath, ["--import", tsx, fileURLToPath(new URL("../../../test/remote/parent.ts", import.meta.url))]);
    const lines = createInterface({ input: parent.stdout })[Symbol.asyncIterator]();
    const pid = Number((await lines.next()).value);
    const socket = (await lines.next()).value as string;
    expect(alive(pid) && existsSync(socket)).toBe(true);
    writeFileSync(join(dirname(socket), "gradient-0"), "a pool's");
    parent.kill("SIGKILL");
    expect(await goneAfter(pid)).toBeLessThan(1000);
    expect(existsSync(dirname(socket))).toBe(false);
  });

  it("leaves the folder of a socket that was named by hand alone", async () => {
    const folder = mkdtempSync(join(tmpdir(), "touchstone-test-"));
    writeFileSync(join(folder, "mine"), "a user's");
    const socket = join(folder, "s");
    const tsx = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href;
    const main = fileURLToPath(new URL("../../cli/main.ts", import.meta.url));
    const holder = spawn(process.execPath, ["--import", tsx, main, "engine", "--listen", socket, "--json"]);
    const { pid } = JSON.parse((await createInterface({ input: holder.stdout })[Symbol.asyncIterator]().next()).value as string) as { pid: number };
    holder.kill("SIGKILL");
    expect(await goneAfter(pid)).toBeLessThan(1000);
    expect(readdirSync(folder)).toEqual(["mine"]);
    rmSync(folder, { recursive: true });
  });

  it("removes its socket when it is closed, and when it is killed", async () => {
    for (const end of [(engine: RemoteEngine) => engine.close(), (engine: RemoteEngine) => process.kill(engine.pid, "SIGKILL")]) {
      const engine = await start();
      expect(Buffer.byteLength(engine.address)).toBeLessThan(108);
      expect(existsSync(engine.address)).toBe(true);
      await end(engine);
      await expect(engine.usage()).rejects.toThrow(EngineError);
      expect(existsSync(dirname(engine.address))).toBe(false);
    }
  });
});

describe("an engine process that cannot start", () => {
  it("hands on the reason with its class", async () => {
    await expect(start({ args: ["refuse"] })).rejects.toThrow("onnxruntime-node: it is not installed; install it");
  });

  it("shows exit code and last lines", async () => {
    await expect(start({ args: ["exit"] })).rejects.toThrow(/ended before it was ready \(exit code 3; it printed ".*no such model"\)/);
  });

  it("is killed at the deadline", async () => {
    await expect(start({ args: ["hang"], deadlineMs: 1500 })).rejects.toThrow("not ready within 1500 ms");
  });

  it("is named when its module does not exist", async () => {
    await expect(start({ entry: new URL("./missing.mjs", import.meta.url) })).rejects.toThrow(/missing\.mjs/);
  });
});

describe("several engine processes", () => {
  it("start together as one engine", async () => {
    const pool = await loaded(await spawnPool({ entry, workers: 2 }));
    expect(pool.info.fingerprint.workers).toBe(2);
    expect(await pool.score([sequence(), sequence()])).toHaveLength(2);
    await pool.close();
    await expect(pool.score([sequence()])).rejects.toThrow("closed by this side");
  });

  it("fail together with the error of the one that cannot start", async () => {
    await expect(spawnPool({ entry, workers: 2, args: ["refuse"] })).rejects.toThrow("onnxruntime-node: it is not installed");
  });
});

describe("allocator settings", () => {
  it("are those measured on machines with room, and smaller on small ones", () => {
    expect(allocatorSettings(24 * 2 ** 30, 1)).toEqual({
      MALLOC_TOP_PAD_: "268435456",
      MALLOC_MMAP_THRESHOLD_: "17179869184",
      MALLOC_TRIM_THRESHOLD_: "34359738368",
    });
    expect(allocatorSettings(4 * 2 ** 30, 2)).toMatchObject({ MALLOC_TOP_PAD_: String(2 ** 25), MALLOC_TRIM_THRESHOLD_: String(2 ** 29) });
  });
});
