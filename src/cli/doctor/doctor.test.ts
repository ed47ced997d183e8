import { describe, expect, it } from "vitest";
import { repository } from "../../../test/paths.js";
import { run } from "../../../test/run.js";
import { command } from "../../../test/support/touchstone.js";
import { colours } from "../output.js";
import { stored } from "./check.js";
import { fits, stepSeconds } from "./fit.js";
import { cpuQuota, inspectMachine, vectorsOf } from "./machine.js";
import { probe } from "./probe.js";
import { type Findings, report } from "./report.js";

const doctor = (args: string[], env: NodeJS.ProcessEnv = {}) =>
  run(process.execPath, [...command, "doctor", ...args], { cwd: repository, env: { ...process.env, ...env } });
const plain = colours({});

describe("touchstone doctor", () => {
  it("measures this machine, finds all twenty numbers right, and says so to programs and people", async () => {
    const { code, out, err } = await doctor(["--json"]);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    const findings = JSON.parse(out) as Findings;
    expect(findings).toMatchObject({ ok: true, problems: [], check: { agree: 20, of: 20 } });
    expect(findings.machine.versions).toEqual({ touchstone: "0.1.0", node: process.versions.node, onnxruntime: "1.30.0" });
    expect(findings.providers).toContain("cpu");
    const { gemmOneThread, gemmAllThreads, copy, emptyRunMs } = findings.rates as NonNullable<Findings["rates"]>;
    // No processor that exists is outside of these.
    for (const [value, least, most] of [
      [gemmOneThread, 0.5, 1e4],
      [gemmAllThreads, 0.5, 1e6],
      [copy, 0.05, 1e3],
      [emptyRunMs, 1e-4, 100],
    ]) {
      expect(value).toBeGreaterThan(least);
      expect(value).toBeLessThan(most);
    }
    const page = report(findings, plain);
    expect(page).toMatch(/^versions +touchstone 0\.1\.0, Node \d+\.\d+\.\d+, ONNX Runtime 1\.30\.0$/m);
    expect(page).toMatch(/^products +\d+ GFLOP\/s with 1 thread/m);
    expect(page).toMatch(/^SmolLM2 135M +135M +(yes|no), \d\.\d GB/m);
    expect(page.split("\n").at(-1)).toBe("self-check: 20 of 20 stored numbers agree (within 0.0001)");
  });

  it("reports what it can and fails when ONNX Runtime crashes its process", async () => {
    const crash = "if (process.argv[1]?.includes('probe-process')) process.kill(process.pid, 'SIGSEGV')";
    const { code, out } = await doctor(["--quick"], { NODE_OPTIONS: `--import "data:text/javascript,${encodeURIComponent(crash)}"` });
    expect(code).toBe(1);
    expect(out).toMatch(/^providers +ONNX Runtime does not run here$/m);
    expect(out).toMatch(/^problem +doctor: the process that tries ONNX Runtime ended \(signal SIGSEGV\); /m);
    expect(out).toMatch(/^SmolLM2 135M /m);
    expect(out).not.toMatch(/^products|self-check:/m);
  });
});

describe("the report", () => {
  const numbers = stored.logp.map((value, i) => ({ name: `log-prob of token ${i + 1}`, stored: value, found: i === 2 ? value + 0.5 : value, agrees: i !== 2 }));
  const memory = { total: 8e9, available: 4e9, limited: true };
  const findings: Findings = {
    ok: false,
    machine: { ...inspectMachine(), cores: 4, quota: 1.5, memory },
    providers: null,
    rates: null,
    fits: fits(),
    adapters: false,
    check: { agree: 5, of: 6, numbers },
    problems: ["engine onnx: it is gone; look for it"],
  };

  it("names limits, problems, and each number that is off", () => {
    const page = report(findings, plain);
    expect(page).toContain("cores      4; a control group grants 1.5\n");
    expect(page).toContain("memory     8.0 GB, by its control group; 4.0 GB available\n");
    expect(page).toContain("problem  engine onnx: it is gone; look for it\n");
    expect(page).toContain("self-check: 5 of 6 stored numbers agree (within 0.0001)\n  log-prob of token 3: -5.1366394, stored -5.6366394\n");
    expect(page).toContain("ONNX Runtime does not run here");
  });

  it("says for each size whether it has room", () => {
    const page = report(findings, plain);
    expect(page).toMatch(/^2 layers of 64 +99k +yes, 0\.\d GB +yes, 0\.\d GB +yes, 0\.\d GB$/m);
    expect(page).toMatch(/^Llama 3\.1 8B +8\.0B +no, \d+\.\d GB +no, \d+\.\d GB +no, \d+\.\d GB$/m);
  });
});

describe("the estimates of what fits", () => {
  it("count the weights of published models", () => {
    const counted = Object.fromEntries(fits().map(({ model, parameters }) => [model, parameters]));
    expect(counted["SmolLM2 135M"]).toBe(134_515_008);
    expect(counted["SmolLM2 360M"]).toBe(361_821_120);
    expect(counted["Llama 3.2 1B"]).toBe(1_235_814_400);
    expect(counted["Llama 3.1 8B"]).toBe(8_030_261_248);
  });

  it("need more for full training than for adapters, and at least its weights for each", () => {
    for (const { model, parameters, full, lora, sample } of fits()) {
      expect(full, model).toBeGreaterThan(16 * parameters);
      expect(full, model).toBeGreaterThan(lora);
      expect(Math.min(lora, sample), model).toBeGreaterThan(4 * parameters);
    }
  });

  it("take 6 FLOPs a weight and token at half of the rate", () => {
    expect(stepSeconds(1e6, 100)).toBeCloseTo((6e6 * 1024) / 50e9, 12);
  });
});

describe("the machine", () => {
  it("reads vector instructions from cpuinfo of either kind", () => {
    expect(vectorsOf("model name\t: X\nflags\t\t: fpu sse2 avx2 avx512f fma\nbugs\t: avx2\n")).toEqual(["avx2", "fma", "avx512f"]);
    expect(vectorsOf("Features\t: fp asimd evtstrm\n")).toEqual(["asimd"]);
    expect(vectorsOf("")).toEqual([]);
  });

  it("reads the quota of control groups of either version", () => {
    expect(cpuQuota(["150000 100000\n", "", ""])).toBe(1.5);
    expect(cpuQuota(["max 100000\n", "", ""])).toBeNull();
    expect(cpuQuota(["", "50000\n", "100000\n"])).toBe(0.5);
    expect(cpuQuota(["", "-1\n", "100000\n"])).toBeNull();
    expect(cpuQuota(["", "", ""])).toBeNull();
  });
});

describe("the probe", () => {
  it("says what it is at, and brings a fault of its process over", async () => {
    const said: string[] = [];
    const task = { threads: 1, rates: true, copyBytes: -4 };
    const hear = (what: string): number => said.push(what);
    await expect(probe(task, hear, hear)).rejects.toThrow(/Invalid typed array length/);
    expect(said).toEqual(["ONNX Runtime to load", "products with one thread", "empty runs", "copies"]);
  });
});
