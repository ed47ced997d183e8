// Compiles src to dist where dist is missing or older than a source. Beside and then renamed: a reader never sees half of it.
import { chmodSync, copyFileSync, existsSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { buildPage } from "./page.mjs";
import { fail, node, ready, root } from "./ready.mjs";

const dist = join(root, "dist");
/** What is no TypeScript and belongs to the package. */
const copied = ["verify/reward/bridge.py"];

/** Builds when needed. `always`: even when dist looks fresh. */
export async function build({ always = false } = {}) {
  if (!always && fresh()) return;
  const beside = join(root, `.dist-${process.pid}`);
  const aside = join(root, `.dist-old-${process.pid}`);
  const started = Date.now();
  const code = node(["node_modules/typescript/bin/tsc", "-p", "tsconfig.build.json", "--outDir", beside], { stdio: ["ignore", 2, 2] });
  if (code !== 0) {
    rmSync(beside, { recursive: true, force: true });
    fail("The sources do not compile (the faults are above): mend them, then try again");
  }
  for (const name of copied) copyFileSync(join(root, "src", name), join(beside, name));
  try {
    await buildPage(join(beside, "view/page"));
  } catch (error) {
    rmSync(beside, { recursive: true, force: true });
    fail(`The page of touchstone view does not compile: ${error.message}`);
  }
  // Where the package is installed as a link to this folder, its command is this very file.
  chmodSync(join(beside, "cli", "main.js"), 0o755);
  if (existsSync(dist)) renameSync(dist, aside);
  renameSync(beside, dist);
  rmSync(aside, { recursive: true, force: true });
  console.error(`Compiled src to dist in ${((Date.now() - started) / 1000).toFixed(1)} s`);
}

/** Whether the command in dist is younger than all that it is made of. */
function fresh() {
  const stamp = join(dist, "index.js");
  if (!existsSync(stamp)) return false;
  const built = statSync(stamp).mtimeMs;
  const inputs = readdirSync(join(root, "src"), { recursive: true }).map((name) => join(root, "src", name));
  return [...inputs, ...["tsconfig.json", "tsconfig.build.json", "package-lock.json"].map((name) => join(root, name))].every(
    (path) => statSync(path).mtimeMs < built,
  );
}

if (resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
  ready();
  await build({ always: true });
}
