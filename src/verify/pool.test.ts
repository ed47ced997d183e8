import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";
import { withoutElapsed } from "../../test/support/verdicts.js";
import type { Problem } from "../core/problem.js";
import { namedVerifier } from "./catalogue.js";
import { startPool } from "./pool.js";
import type { VerifierSource } from "./source.js";
import { loadVerifier } from "./source.js";

const problem = (answer: string): Problem => ({ key: answer, prompt: [{ role: "user", content: "?" }], reference: { state: "gold", answer, version: 0 } });

/** A verifier of a module of its own: "loop" never ends, "die" ends the thread, all else is right when it is the reference. */
function moduleSource(): { module: string; name: string; options: object & Record<string, never> } {
  const path = join(mkdtempSync(join(tmpdir(), "touchstone-pool-")), "verifier.mjs");
  writeFileSync(
    path,
    `export const make = () => ({ name: "m", version: "1", options: {}, deterministic: true, checkReference: () => undefined,
      verify: ({ reference, response }) => {
        if (response === "loop") for (;;);
        if (response === "die") process.reallyExit(3);
        if (response === "leave") process.exit(3);
        return response === reference ? { kind: "accept" } : { kind: "reject", reason: "wrong" };
      } });`,
  );
  return { module: pathToFileURL(path).href, name: "make", options: {} };
}

describe("a pool of verifiers", () => {
  it("gives the same verdicts with 0, 1, 2 and 5 workers", async () => {
    const { verifier, source } = await namedVerifier("number");
    const responses = Array.from({ length: 60 }, (_, i) => `so it is ${i % 7}`);
    const all = await Promise.all(
      [0, 1, 2, 5].map(async (workers) => {
        const pool = await startPool({ verifier, source, workers });
        const verdicts = await Promise.all(responses.map((response, i) => pool.judge(problem(String(i % 3)), response, false)));
        await pool.close();
        return verdicts.map(withoutElapsed);
      }),
    );
    expect(all[0]?.filter(({ kind }) => kind === "accept").length).toBeGreaterThan(5);
    for (const other of all.slice(1)) expect(other).toEqual(all[0]);
  });

  it("stops a verifier that never ends, leaves the response unscored, and keeps its size", async () => {
    const source = moduleSource();
    const pool = await startPool({ verifier: await loadVerifier(source), source, workers: 1, deadlineMs: 400 });
    const [stuck, fine] = await Promise.all([pool.judge(problem("1"), "loop", false), pool.judge(problem("1"), "1", false)]);
    expect(stuck).toMatchObject({ kind: "unscored", reason: "starved" });
    expect(fine.kind).toBe("accept");
    expect(pool.starved).toBe(1);
    await pool.close();
  });

  it("has the next thread ready when it ends one, and the same size ever after", async () => {
    const source = moduleSource();
    const pool = await startPool({ verifier: await loadVerifier(source), source, workers: 1, deadlineMs: 300 });
    const problems = ["loop", "1", "loop", "1", "2"];
    const verdicts = await Promise.all(problems.map((response) => pool.judge(problem("1"), response, false)));
    expect(verdicts.map(({ kind }) => kind)).toEqual(["unscored", "accept", "unscored", "accept", "reject"]);
    expect(pool.starved).toBe(2);
    await pool.close();
  });

  it("tries a response once more when its worker is lost, and then leaves it unscored", async () => {
    const source = moduleSource();
    const pool = await startPool({ verifier: await loadVerifier(source), source, workers: 2 });
    const [lost, fine] = await Promise.all([pool.judge(problem("1"), "die", false), pool.judge(problem("1"), "2", false)]);
    expect(lost).toMatchObject({ kind: "unscored", reason: "worker-lost", evidence: { message: "its thread was ended, as by process.exit(3)" } });
    expect(fine.kind).toBe("reject");
    await pool.close();
  });

  it("takes an end that the verifier asks for as its fault, with its line", async () => {
    const source = moduleSource();
    const pool = await startPool({ verifier: await loadVerifier(source), source, workers: 1 });
    expect(await pool.judge(problem("1"), "leave", false)).toMatchObject({
      kind: "unscored",
      reason: "verifier-failed",
      evidence: { message: "it calls process.exit(3)", at: expect.stringMatching(/verifier\.mjs:5$/) },
    });
    await pool.close();
  });

  it("gives up in this thread on a verifier that awaits for ever", async () => {
    const { verifier } = await namedVerifier("exact");
    const pool = await startPool({ verifier: { ...verifier, verify: () => new Promise(() => undefined) }, workers: 0, deadlineMs: 20 });
    expect(await pool.judge(problem("1"), "1", false)).toMatchObject({ kind: "unscored", reason: "starved" });
  });

  it("stops in this thread a verifier that never comes back", async () => {
    const { verifier } = await namedVerifier("exact");
    const loop = (): never => {
      for (;;);
    };
    const pool = await startPool({ verifier: { ...verifier, verify: loop }, deadlineMs: 50 });
    const verdicts = await Promise.all([pool.judge(problem("1"), "1", false), pool.judge(problem("1"), "2", false)]);
    expect(verdicts).toMatchObject([{ reason: "starved" }, { reason: "starved" }]);
    expect(pool.starved).toBe(2);
  });

  it("has one worker where it is not told how many and a module has the verifier", async () => {
    const source = moduleSource();
    const pool = await startPool({ verifier: await loadVerifier(source), source, deadlineMs: 400 });
    expect(await pool.judge(problem("1"), "loop", false)).toMatchObject({ kind: "unscored", reason: "starved" });
    await pool.close();
  });

  it("cuts a reason that is a whole text", async () => {
    const { verifier } = await namedVerifier("exact");
    const pool = await startPool({ verifier: { ...verifier, verify: () => ({ kind: "reject", reason: "x".repeat(1e6) }) } });
    expect(await pool.judge(problem("1"), "1", false)).toMatchObject({ reason: `${"x".repeat(120)}…` });
  });

  it("refuses workers for a verifier that is a function of the program, and a module that makes another verifier", async () => {
    const { verifier, source: found } = await namedVerifier("number");
    const source = found as VerifierSource;
    await expect(startPool({ verifier, workers: 2 })).rejects.toThrow("verifier_workers: it is 2, and the verifier number is a function of this program");
    await expect(startPool({ verifier, source: { ...source, options: { percent: "refuse" } }, workers: 1 })).rejects.toThrow(/it made number:\w+ instead of/);
    await expect(startPool({ verifier, source: { ...source, name: "none" }, workers: 1 })).rejects.toThrow("its export none makes no verifier");
    await expect(namedVerifier("nmber")).rejects.toThrow('there is no verifier "nmber"; did you mean "number"?');
  });
});
