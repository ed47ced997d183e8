/**
 * Python for tests that hold our files to other programs: found, filled from the package index by `uv`, and kept in the cache
 * folder. Nothing is installed unless TOUCHSTONE_PYTHON=install says so (as .ci/run does): it is gigabytes.
 */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { cacheFolder } from "../../src/core/cache.js";
import { repository } from "../paths.js";
import { type Ran, run } from "../run.js";

export interface Environment {
  /** Names its folder in the cache. */
  readonly name: string;
  /** A file of pinned packages, from the repository's root. */
  readonly requirements: string;
  /** Versions of Python that will do, the best one first. */
  readonly versions: readonly string[];
  /** Packages that others ask for, and that are not needed. */
  readonly without?: readonly string[];
}

/** transformers, PEFT and gguf: what model folders, adapters and GGUF files are held to. */
export const checks: Environment = {
  name: "checks",
  requirements: "test/python/requirements.txt",
  versions: ["3.11", "3.12", "3.10", "3.13"],
  without: ["triton"],
};

/** Math-Verify with SymPy: what the math verifier is measured and audited beside; 115 MB. */
export const mathVerify: Environment = { name: "math", requirements: "bench/peers/requirements-math.txt", versions: ["3.11", "3.12", "3.10", "3.13"] };

/** SkyRL's Tinker server with its JAX backend, of either dialect; 1 GB each. Its own stubs stand in for torch and PEFT (test/python/stubs). */
export const skyrl = (version: "0.3" | "0.4"): Environment => ({
  name: `skyrl-${version}`,
  requirements: `test/python/requirements-skyrl-${version}.txt`,
  versions: ["3.12", "3.13"],
  without: ["torch", "peft", "datasets", "hf-transfer"],
});

/** TRL on the CPU: what our server's example for it runs on; 5 GB, most of them shared with `checks`. */
export const trl: Environment = {
  name: "trl",
  requirements: "test/python/requirements-trl.txt",
  versions: ["3.11", "3.12", "3.10", "3.13"],
  without: ["triton"],
};

const uv = "uv==0.13.9";
const minutes = 60_000;

/**
 * The interpreter of an environment, or undefined after one printed line where it is not here and cannot or must not be
 * installed. Once the package index has answered, whatever fails is an error. Use: `describe.skipIf(!python)(...)`.
 */
export async function pythonOf(environment: Environment): Promise<string | undefined> {
  const requirements = readFileSync(join(repository, environment.requirements), "utf8");
  const base = await basePython(environment.versions);
  const skip = (reason: string): undefined => console.log(`skipped: the tests with Python (${environment.name}): ${reason}`) as undefined;
  if (base === undefined) return skip(`there is no Python ${environment.versions.join(" or ")} with venv and pip`);
  const key = createHash("sha256")
    .update(JSON.stringify([requirements, base.version, environment.without ?? []]))
    .digest("hex");
  const home = join(cacheFolder(), "python");
  const folder = join(home, `${environment.name}-${key.slice(0, 12)}`);
  if (existsSync(folder)) return interpreter(folder);
  if (process.env.TOUCHSTONE_PYTHON !== "install") return skip(`${folder} is not there; TOUCHSTONE_PYTHON=install fills it (gigabytes)`);
  await mkdir(home, { recursive: true });
  const beside = await mkdtemp(join(home, "filling-"));
  try {
    done(await run(base.path, ["-m", "venv", beside]), "venv");
    const python = interpreter(beside);
    const reached = await run(python, ["-m", "pip", "install", "--quiet", "--retries", "1", uv], { deadlineMs: 5 * minutes });
    if (reached.code !== 0 && unreachable.test(reached.err)) return skip(`the package index does not answer (${lastLine(reached)})`);
    done(reached, `pip install ${uv}`);
    console.log(`installing ${environment.requirements} into ${folder}`);
    done(await fill(python, environment, home), `uv pip install -r ${environment.requirements}`);
    // Started as `bin/python`, an environment works wherever its folder lies.
    await rename(beside, folder).catch((error: NodeJS.ErrnoException) => {
      if (!existsSync(folder)) throw error;
    });
  } finally {
    await rm(beside, { recursive: true, force: true });
  }
  return interpreter(folder);
}

/** Downloads are kept beside the environments, which share their files by hard links. */
function fill(python: string, { requirements, without = [] }: Environment, home: string): Promise<Ran> {
  const index = process.env.UV_DEFAULT_INDEX ?? process.env.PIP_INDEX_URL;
  const env = { ...process.env, UV_CACHE_DIR: join(home, "uv"), UV_HTTP_TIMEOUT: "300", ...(index === undefined ? {} : { UV_DEFAULT_INDEX: index }) };
  const args = ["-m", "uv", "pip", "install", "--quiet", "--python", python, "-r", join(repository, requirements), "--overrides", "-"];
  return run(python, args, { env, input: without.map((name) => `${name}; python_version < "3"\n`).join(""), deadlineMs: 30 * minutes });
}

const unreachable = /connection|timed? ?out|name resolution|getaddrinfo|network is unreachable|max retries|from versions: none/i;
const interpreter = (folder: string): string => join(folder, process.platform === "win32" ? "Scripts/python.exe" : "bin/python");
const lastLine = ({ err }: Ran): string => err.trim().split("\n").at(-1) ?? "";

function done(ran: Ran, what: string): void {
  if (ran.code !== 0) throw new Error(`${what} ended with code ${ran.code}: ${ran.err.trim().split("\n").slice(-8).join("\n")}`);
}

/** The first Python of these versions that makes environments: on the path, else of pyenv, whose shims may name a version that is not set. */
async function basePython(versions: readonly string[]): Promise<{ readonly path: string; readonly version: string } | undefined> {
  const pyenv = join(process.env.PYENV_ROOT ?? join(homedir(), ".pyenv"), "versions");
  const managed = existsSync(pyenv) ? readdirSync(pyenv) : [];
  const ask = "import ensurepip, venv, sys; print('%d.%d' % sys.version_info[:2])";
  for (const version of versions) {
    const own = managed.filter((name) => name.startsWith(`${version}.`)).map((name) => join(pyenv, name, "bin", "python"));
    for (const path of [...own, `python${version}`, "python3", "python"]) {
      const answer = await run(path, ["-c", ask]).catch(() => undefined);
      if (answer?.code === 0 && answer.out.trim() === version) return { path, version };
    }
  }
  return undefined;
}
