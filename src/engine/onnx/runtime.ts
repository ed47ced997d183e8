/**
 * Finds ONNX Runtime. It is an optional dependency because its postinstall fetches GPU libraries from a host of its own, and npm silently leaves
 * out an optional package whose postinstall failed (offline, behind a proxy). Where it is absent, the pinned version is installed without
 * scripts into the cache folder, once: what a CPU needs is inside the package.
 */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { cacheFolder } from "../../core/cache.js";
import { EngineError } from "../../core/errors.js";

export type Runtime = typeof import("onnxruntime-node");

const packageName = "onnxruntime-node";
/** The version of package.json, which a test compares. */
export const runtimeVersion = "1.30.0";

const place = "engine onnx";
const binaries = ["linux-x64", "linux-arm64", "darwin-arm64", "win32-x64", "win32-arm64"];
/** An installation that is older than this was interrupted. */
const abandonedMs = 3_600_000;

let loaded: Promise<Runtime> | undefined;

/** ONNX Runtime: from node_modules, else from the cache folder, else installed there first (said on stderr). Throws `EngineError` where it has no binary or npm cannot be reached. */
export function loadRuntime(): Promise<Runtime> {
  loaded ??= load().catch((error: unknown) => {
    loaded = undefined;
    throw error;
  });
  return loaded;
}

async function load(): Promise<Runtime> {
  const reason = unsupported({ platform: process.platform, arch: process.arch, glibc: hasGlibc() });
  if (reason) throw new EngineError({ place, ...reason });
  const location = await locateRuntime();
  // Version 1.30 reports usage to its maker and leaves logs behind, unless this is set before it is loaded.
  process.env.ORT_DISABLE_TELEMETRY = "1";
  try {
    const module = (await import(location)) as Runtime & { default?: Runtime };
    return module.InferenceSession ? module : (module.default as Runtime);
  } catch (error) {
    throw new EngineError(
      {
        place,
        cause: `${packageName} ${runtimeVersion} is there but does not load (${firstLine(error)})`,
        mend: `remove ${location === packageName ? "node_modules" : runtimeFolder()} and try again`,
      },
      { cause: error },
    );
  }
}

/** What to import: the package's name, or the URL of its entry in the cache folder, where it is installed first if need be. */
async function locateRuntime(): Promise<string> {
  if (resolvable(import.meta.url)) return packageName;
  const folder = runtimeFolder();
  if (!existsSync(folder)) await install(folder);
  const entry = resolvable(join(folder, "package.json"));
  if (entry) return pathToFileURL(entry).href;
  throw new EngineError({ place, cause: `${folder} is damaged`, mend: "remove it and try again" });
}

function resolvable(from: string): string | undefined {
  try {
    return createRequire(from).resolve(packageName);
  } catch {
    return undefined;
  }
}

/** The folder of the installation that the cache holds, whether there or not. Its existence means that it is whole. */
export function runtimeFolder(): string {
  return join(cacheFolder(), `${packageName}-${runtimeVersion}-${process.platform}-${process.arch}`);
}

/** Why ONNX Runtime cannot run on such a machine, and what does; undefined where it can. */
export function unsupported(machine: { platform: string; arch: string; glibc: boolean }): { cause: string; mend: string } | undefined {
  const instead = `use another machine or container, or name a remote engine`;
  if (machine.platform === "darwin" && machine.arch === "x64") return { cause: `${packageName} has no binary for Macs with an Intel processor`, mend: instead };
  if (machine.platform === "linux" && !machine.glibc) {
    return {
      cause: `${packageName} has no binary for Linux with musl (Alpine)`,
      mend: "use a distribution or container with glibc such as Debian, or name a remote engine",
    };
  }
  const target = `${machine.platform}-${machine.arch}`;
  if (!binaries.includes(target)) return { cause: `${packageName} has no binary for ${target} (it has ${binaries.join(", ")})`, mend: instead };
  return undefined;
}

function hasGlibc(): boolean {
  if (process.platform !== "linux") return false;
  const report = process.report.getReport() as unknown as { header: { glibcVersionRuntime?: string } };
  return report.header.glibcVersionRuntime !== undefined;
}

/** Installs beside the folder and renames, so that it is there whole or not at all; of two processes that install at once the first wins. */
async function install(folder: string): Promise<void> {
  process.stderr.write(`touchstone: installing ${packageName} ${runtimeVersion} into ${folder} (once, 114 MB to fetch)\n`);
  const beside = `${folder}-installing-${process.pid}-${randomBytes(4).toString("hex")}`;
  try {
    await mkdir(beside, { recursive: true });
    await removeAbandoned(folder);
    await writeFile(join(beside, "package.json"), JSON.stringify({ private: true, dependencies: { [packageName]: runtimeVersion } }));
    await npmInstall(beside);
    await rename(beside, folder).catch((error: unknown) => {
      if (!existsSync(folder)) throw error;
    });
  } catch (error) {
    if (error instanceof EngineError) throw error;
    throw new EngineError(
      { place, cause: `cannot write ${folder} (${firstLine(error)})`, mend: "name a folder that can be written in TOUCHSTONE_CACHE" },
      { cause: error },
    );
  } finally {
    await rm(beside, { recursive: true, force: true }).catch(() => {});
  }
}

async function removeAbandoned(folder: string): Promise<void> {
  const parent = cacheFolder();
  for (const name of await readdir(parent)) {
    const path = join(parent, name);
    if (!path.startsWith(`${folder}-installing-`)) continue;
    const age = await stat(path).then(
      (found) => Date.now() - found.mtimeMs,
      () => 0,
    );
    if (age > abandonedMs) await rm(path, { recursive: true, force: true });
  }
}

/** In the folder as npm finds it: `--prefix` would also move npm's global configuration, and with it certificates and proxies. */
function npmInstall(folder: string): Promise<void> {
  const args = ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error", "--fetch-retries=1"];
  const cli = process.env.npm_execpath;
  const own = cli?.endsWith("npm-cli.js") && existsSync(cli);
  const [command, all] = own ? [process.execPath, [cli as string, ...args]] : ["npm", args];
  return new Promise((resolve, reject) => {
    const child = spawn(command, all, { cwd: folder, env: npmEnvironment(), stdio: ["ignore", "ignore", "pipe"], shell: !own && process.platform === "win32" });
    let said = "";
    child.stderr.on("data", (data: Buffer) => {
      said += data.toString();
    });
    const refuse = (why: string): void =>
      reject(
        new EngineError({
          place,
          cause: `${packageName} is not installed and npm could not fetch it (${why})`,
          mend: `run touchstone again where npm reaches its registry, or run npm install --ignore-scripts ${packageName}@${runtimeVersion} in the project yourself`,
        }),
      );
    child.on("error", (error: NodeJS.ErrnoException) => refuse(error.code === "ENOENT" ? "there is no npm on the path" : firstLine(error)));
    child.on("close", (code) => (code === 0 ? resolve() : refuse(npmReason(said) ?? `exit code ${code}`)));
  });
}

/** Without what an outer `npm install -g` or `npx` says about its own call; settings such as registry and proxy stay. */
function npmEnvironment(): NodeJS.ProcessEnv {
  const ofTheCall = /^npm_config_(global|location|local_prefix|prefix|dry_run|omit|include|workspaces?|package|save.*)$/i;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !ofTheCall.test(name)));
}

/** The line of npm's errors that names the cause. */
function npmReason(said: string): string | undefined {
  const lines = said.split("\n").map((line) => line.replace(/^npm (error|ERR!)\s*/, "").trim());
  return lines.find((line) => line.length > 0 && !/^(code|errno|syscall|type)\b/.test(line));
}

function firstLine(error: unknown): string {
  return String(error instanceof Error ? error.message : error).split("\n")[0];
}
