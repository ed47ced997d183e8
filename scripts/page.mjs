// Bundles the page of `touchstone view` into a folder: app.js, app.css, index.html. No dependency of it is needed when the package runs.
import { copyFileSync, mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { root } from "./ready.mjs";

export async function buildPage(folder) {
  const { build } = await import("esbuild");
  const source = join(root, "src/view/web");
  mkdirSync(folder, { recursive: true });
  await build({
    entryPoints: { app: join(source, "main.tsx") },
    outdir: folder,
    bundle: true,
    minify: true,
    format: "iife",
    target: ["es2022"],
    jsx: "automatic",
    jsxImportSource: "preact",
    legalComments: "inline",
    tsconfig: join(source, "tsconfig.json"),
    logLevel: "warning",
  });
  await build({ entryPoints: { app: join(source, "style.css") }, outdir: folder, minify: true, logLevel: "warning" });
  copyFileSync(join(source, "index.html"), join(folder, "index.html"));
}

if (resolve(process.argv[1]) === fileURLToPath(import.meta.url)) await buildPage(resolve(process.argv[2] ?? join(root, "dist/view/page")));
