import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { cacheFolder } from "../../core/cache.js";
import { loadRuntime, runtimeFolder, runtimeVersion, unsupported } from "./runtime.js";

describe("where ONNX Runtime comes from", () => {
  let folder: string;
  const before = { ...process.env };

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "touchstone-runtime-"));
  });
  afterEach(() => {
    process.env = { ...before };
    rmSync(folder, { recursive: true, force: true });
  });

  it("is node_modules when the package is there", async () => {
    process.env.TOUCHSTONE_CACHE = join(folder, "untouched");
    const runtime = await loadRuntime();
    const tensor = new runtime.Tensor("float32", Float32Array.of(1, 2), [2]);
    expect([...(tensor.data as Float32Array)]).toEqual([1, 2]);
    expect(runtimeFolder()).toContain(folder);
  });

  it("is one version, in package.json and in the code", () => {
    const manifest = JSON.parse(readFileSync(new URL("../../../package.json", import.meta.url), "utf8")) as {
      optionalDependencies: { [name: string]: string };
    };
    expect(manifest.optionalDependencies["onnxruntime-node"]).toBe(runtimeVersion);
  });

  it("is a folder that the user can name, or that the system names", () => {
    expect(cacheFolder({ TOUCHSTONE_CACHE: "/a", XDG_CACHE_HOME: "/b" })).toBe("/a");
    expect(cacheFolder({ XDG_CACHE_HOME: "/b" })).toBe(join("/b", "touchstone"));
    expect(cacheFolder({})).toMatch(/[\\/]\.cache[\\/]touchstone$/);
  });

  it("is nowhere on a machine without a binary, in one sentence that names it", () => {
    expect(unsupported({ platform: "darwin", arch: "x64", glibc: false })?.cause).toContain("Intel");
    expect(unsupported({ platform: "linux", arch: "x64", glibc: false })?.cause).toContain("musl");
    expect(unsupported({ platform: "linux", arch: "riscv64", glibc: true })?.cause).toContain("linux-riscv64");
    for (const [platform, arch] of [
      ["linux", "x64"],
      ["linux", "arm64"],
      ["darwin", "arm64"],
      ["win32", "x64"],
    ] as const) {
      expect(unsupported({ platform, arch, glibc: platform === "linux" })).toBeUndefined();
    }
  });
});
