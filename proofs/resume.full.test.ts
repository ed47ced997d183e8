/** Exact resume of `touchstone train` with the onnx engine, in its shortest form; `npm run proofs resume` has all of it. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { KilledRuns } from "./lib/killed-runs.js";

const folder = mkdtempSync(join(tmpdir(), "touchstone-killed-"));
let runs: KilledRuns;
beforeAll(async () => {
  runs = await KilledRuns.create(folder);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("a run on the onnx engine", () => {
  it("is trained: every optimizer step is made, and weights change", () => {
    expect(runs.updates).toBe(48);
    expect(runs.whole["checkpoints/00000008/policy/model.safetensors"]).not.toBe(runs.whole["checkpoints/00000000/policy/model.safetensors"]);
  });

  it("that is killed with kill -9 and resumed ends with the bytes of one that was left alone", async () => {
    const { hit, differing } = await runs.kill({ phase: "step", step: 6 }, 0.5);
    expect(hit).toHaveLength(1);
    expect(differing).toEqual([]);
  });

  it("has the same final weights, and all other bytes too, with 1, 2 and 5 verifier workers", async () => {
    const { weights, optimizers, differing } = await runs.withWorkers([1, 2, 5]);
    expect(weights).toHaveLength(1);
    expect(optimizers).toHaveLength(1);
    expect(differing).toEqual([]);
  });
});
