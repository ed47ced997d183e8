/** A project of a user: an empty folder in which this package is installed as npm would, compiled from the sources as they are. */
import { copyFileSync, mkdirSync, mkdtempSync, realpathSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { repository } from "../paths.js";
import { type Ran, run } from "../run.js";

export interface Project {
  readonly folder: string;
  /** Runs the command `touchstone` in the project's folder. */
  touchstone(...args: string[]): Promise<Ran>;
  /** Type-checks with the compiler of the repository; arguments as of tsc. */
  tsc(...args: string[]): Promise<Ran>;
  /** Runs a TypeScript file of the project. */
  tsx(...args: string[]): Promise<Ran>;
}

const modules = join(repository, "node_modules");
const compiler = join(modules, "typescript", "bin", "tsc");
const link = process.platform === "win32" ? "junction" : "dir";

/** Compiles and links; seconds. Remove `folder` when done. */
export async function installedProject(): Promise<Project> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "touchstone-project-")));
  const installed = join(folder, "node_modules", "touchstone-rl");
  mkdirSync(installed, { recursive: true });
  copyFileSync(join(repository, "package.json"), join(installed, "package.json"));
  symlinkSync(modules, join(installed, "node_modules"), link);
  const built = await run(process.execPath, [compiler, "-p", "tsconfig.build.json", "--outDir", join(installed, "dist")], { cwd: repository });
  if (built.code !== 0) throw new Error(`the sources do not compile:\n${built.out}`);
  const node = (...args: string[]): Promise<Ran> => run(process.execPath, args, { cwd: folder, deadlineMs: 300_000 });
  return {
    folder,
    touchstone: (...args) => node(join(installed, "dist", "cli", "main.js"), ...args),
    tsc: (...args) => node(compiler, ...args),
    tsx: (...args) => node("--import", join(modules, "tsx", "dist", "esm", "index.mjs"), ...args),
  };
}
