/** `touchstone sample`, `eval` and `profile` on a server, which is `touchstone serve` in another process: what comes is what the engine here gives. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type Running, startTouchstone } from "../../test/support/touchstone.js";
import { TouchstoneError } from "../core/errors.js";
import { runProgram } from "./program.js";

const starter = "starters/chain-1M";
const folder = mkdtempSync(join(tmpdir(), "touchstone-remote-"));
let server: Running;
beforeAll(async () => {
  server = await startTouchstone(["serve", starter, "--port", "0", "--token", "word", "--threads", "1"]);
  vi.stubEnv("SERVE_KEY", "word");
});
afterAll(async () => {
  vi.unstubAllEnvs();
  expect(await server.end()).toBe(0);
  rmSync(folder, { recursive: true, force: true });
});

/** What a command prints on stdout, in this process. */
async function printed(...args: string[]): Promise<string> {
  let out = "";
  const write = vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    out += text;
    return true;
  });
  try {
    await runProgram(args);
  } finally {
    write.mockRestore();
  }
  return out;
}

const remote = (): string[] => ["--engine", "openai", "--base-url", `${server.address}/v1`, "--served-model", "chain-1M", "--key-env", "SERVE_KEY"];
const here = ["--threads", "1"];
const task = ["--task", "chain", "--verifier-workers", "0"];

interface Rollout {
  readonly ids: number[];
  readonly logprobs: number[];
  readonly text: string;
  readonly stop: string;
  readonly verdict: unknown;
}
const rollouts = async (...args: string[]): Promise<Rollout[]> =>
  (await printed("sample", starter, ...task, ...args, "--json"))
    .trim()
    .split("\n")
    .map((line) => {
      const { ids, logprobs, text, stop, verdict } = JSON.parse(line) as Rollout;
      const { elapsedMs: _, ...judged } = verdict as { readonly elapsedMs?: number };
      return { ids, logprobs, text, stop, verdict: judged };
    });

describe("a server", () => {
  it("gives the greedy tokens, log-probs and verdicts of the engine here", async () => {
    const asked = ["--n-problems", "12", "--greedy"];
    const [mine, its] = [await rollouts(...asked, ...here), await rollouts(...asked, ...remote())];
    expect(mine).toHaveLength(12);
    expect(mine.some(({ ids }) => ids.length > 10)).toBe(true);
    const numbers = (list: readonly Rollout[]) => list.map(({ logprobs: _, ...rest }) => rest);
    expect(numbers(its)).toEqual(numbers(mine));
    its.forEach(({ logprobs }, i) => {
      expect(logprobs).toHaveLength(mine[i]?.ids.length ?? 0);
      // How rows are packed beside each other moves the last bits.
      for (const [t, logp] of logprobs.entries()) expect(Math.abs(logp - (mine[i]?.logprobs[t] as number))).toBeLessThan(1e-5);
    });
  });

  it("is measured as the engine here is", async () => {
    const value = async (...args: string[]) =>
      JSON.parse(await printed("eval", starter, ...task, "--n-problems", "40", "--greedy", ...args, "--json")) as {
        readonly model: string;
        readonly metrics: { readonly "pass@1": { readonly value: number } };
        readonly tokens: object;
      };
    const [mine, its] = [await value(...here), await value(...remote())];
    expect(its.metrics["pass@1"]).toEqual(mine.metrics["pass@1"]);
    expect(its.tokens).toEqual(mine.tokens);
    expect(its.model).toBe(`chain-1M at ${server.address}/v1`);
  });

  it("draws at a temperature, with restricted draws and stop strings, as often right as the engine here", async () => {
    const right = async (...args: string[]) => {
      const drawn = await rollouts("--n-problems", "30", "--n", "4", "--temperature", "0.8", "--top-p", "0.95", ...args);
      expect(drawn).toHaveLength(120);
      return drawn.filter(({ verdict }) => (verdict as { readonly kind: string }).kind === "accept").length / drawn.length;
    };
    const [mine, its] = [await right(...here), await right(...remote())];
    // Problems are the same, draws are not: four standard deviations of a difference of two shares of 120.
    expect(Math.abs(mine - its)).toBeLessThan(4 * Math.sqrt((2 * 0.25) / 120));
    const stopped = await rollouts("--n-problems", "3", "--greedy", "--stop", "\n", ...remote());
    for (const { text, stop } of stopped) expect([text.indexOf("\n"), stop]).toEqual([text.length - 1, "stop"]);
  });

  it("profiles problems", async () => {
    const out = join(folder, "profile");
    await printed("profile", ...task, "--n-problems", "4", "--model", starter, "--k", "4", ...remote(), "--out", out);
    expect(readFileSync(out, "utf8").trim().split("\n").length).toBeGreaterThanOrEqual(4);
  });

  it.each<[string, (flags: string[]) => string[], string]>([
    ["another key", (flags) => [...flags.slice(0, -1), "OTHER_KEY"], "this server wants its token"],
    ["a key that is not there", (flags) => [...flags.slice(0, -1), "NO_KEY"], "there is no environment variable NO_KEY"],
    ["another model", (flags) => flags.map((flag) => (flag === "chain-1M" ? "chain" : flag)), "did you mean chain-1M?"],
    ["no address", (flags) => flags.filter((flag) => flag !== "--base-url" && !flag.startsWith("http")), "--base-url is missing"],
    ["threads", (flags) => [...flags, "--threads", "2"], "the engine is a server"],
    ["a server's flag without a server", () => ["--retries", "2"], "give --engine openai too"],
    [
      "a port where nothing listens",
      (flags) => [...flags.map((flag) => (flag.startsWith("http") ? "http://127.0.0.1:9/v1" : flag)), "--retries", "0"],
      "see that the server runs",
    ],
  ])("with %s is refused in a sentence", async (_, change, says) => {
    vi.stubEnv("OTHER_KEY", "other");
    const error = await runProgram(["eval", starter, ...task, "--n-problems", "2", ...change(remote())]).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(TouchstoneError);
    expect((error as Error).message).toContain(says);
    expect((error as Error).message).not.toContain("word");
  });
});
