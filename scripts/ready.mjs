// Installs what is missing before anything else runs. No dependencies: on a fresh clone there are none yet.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = dirname(dirname(fileURLToPath(import.meta.url)));

const oldestNode = [20, 19];

/** Ends with one sentence on a Node that is too old, and runs `npm ci` where node_modules is missing or differs from the lock file. */
export function ready() {
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major < oldestNode[0] || (major === oldestNode[0] && minor < oldestNode[1])) {
    fail(`Node ${process.versions.node} is too old: Touchstone needs Node ${oldestNode.join(".")} or later`);
  }
  // The postinstall of onnxruntime-node looks here first; it would fetch GPU libraries from a host that is not the npm registry.
  process.env.ONNXRUNTIME_NODE_INSTALL = "skip";
  if (installed()) return;
  console.error("Installing the packages of package-lock.json (once, about half a minute) ...");
  const result = npm(["ci", "--include=dev", "--include=optional", "--no-audit", "--no-fund"]);
  if (result !== 0) fail("npm ci failed (its message is above): mend that, or run it by hand, then try again");
}

/** Whether node_modules holds every package of the lock file in its version; packages for other platforms may be missing. */
function installed() {
  const there = join(root, "node_modules/.package-lock.json");
  if (!existsSync(there)) return false;
  try {
    const wanted = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")).packages;
    const found = JSON.parse(readFileSync(there, "utf8")).packages;
    return Object.entries(wanted).every(([path, { version, optional }]) => path === "" || (found[path] ? found[path].version === version : optional === true));
  } catch {
    return false;
  }
}

/** Runs the npm that runs us, or the one on the path; its output goes to stderr, so that ours stays readable by programs. */
function npm(args) {
  const cli = process.env.npm_execpath;
  const own = cli?.endsWith("npm-cli.js") && existsSync(cli);
  const [command, rest] = own ? [process.execPath, [cli, ...args]] : ["npm", args];
  return spawnSync(command, rest, { cwd: root, stdio: ["ignore", 2, 2], shell: !own && process.platform === "win32" }).status ?? 1;
}

/** Runs a Node program with this terminal; returns its exit code. */
export function node(args, options = {}) {
  const result = spawnSync(process.execPath, args, { cwd: root, stdio: "inherit", ...options });
  if (result.error) fail(result.error.message);
  return result.status ?? 1;
}

export function fail(sentence) {
  console.error(sentence);
  process.exit(1);
}
