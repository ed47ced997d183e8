/**
 * The sources as JavaScript for the commands that tests start: a process of the compiled program is ready in a third of the time that
 * one takes which compiles as it loads. A folder of its own for each run of the tests, as deep as `src`, removed at the end.
 */
import { copyFileSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { build } from "esbuild";
import { repository } from "../paths.js";

export default async function setup(): Promise<() => void> {
  const folder = join(repository, `.dist-tests-${process.pid}`);
  const source = join(repository, "src");
  const names = readdirSync(source, { recursive: true, encoding: "utf8" }).filter((name) => !name.startsWith(join("view", "web")));
  const programs = names.filter((name) => name.endsWith(".ts") && !/\.(?:test|d)\.ts$/.test(name));
  await build({
    entryPoints: programs.map((name) => join(source, name)),
    outbase: source,
    outdir: folder,
    format: "esm",
    target: "node20",
    logLevel: "warning",
  });
  for (const name of names.filter((each) => each.endsWith(".py"))) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    copyFileSync(join(source, name), join(folder, name));
  }
  process.env.TOUCHSTONE_COMPILED = folder;
  return () => {
    rmSync(folder, { recursive: true, force: true });
    delete process.env.TOUCHSTONE_COMPILED;
  };
}
