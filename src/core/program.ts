/**
 * What a program of the user's is made of: its file and, over as many steps as there are, the files beside it that it
 * imports by a relative path. Packages are left out, and so are our own sources: their versions tell them apart.
 */
import { readFileSync, statSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { hashJson, sha256 } from "./json.js";

/** SHA-256 of each file by its path as seen from the folder of the first. */
export type ProgramFiles = { readonly [path: string]: string };

const ours = fileURLToPath(new URL("..", import.meta.url));
const endings = ["", ".ts", ".mts", ".cts", ".js", ".mjs", ".cjs", ".json", "/index.ts", "/index.js"];
/** Imports, re-exports, `require`, and files that are named beside the module. */
const imported = /(?:\bfrom\s*|\bimport\s*\(?\s*|\brequire\s*\(\s*|\bnew\s+URL\s*\(\s*)["'`](\.{1,2}\/[^"'`]+)["'`]/g;
const importedByPython = /^\s*(?:from\s+(\.*[\w.]*)\s+import\s+([\w, ]+)|import\s+([\w., ]+))/gm;
/** A file larger than this is data, whose rows are hashed as problems. */
const largest = 16 * 2 ** 20;

/** The files of a program that can be read; `file` is TypeScript, JavaScript or Python, and anything else stands alone. */
export function programFiles(file: string): ProgramFiles {
  const first = resolve(file);
  const found = new Map<string, string>();
  const waiting = [first];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    const name = relative(dirname(first), path).split(sep).join("/");
    if (found.has(name) || path.startsWith(ours)) continue;
    const bytes = readFileSync(path);
    found.set(name, sha256(bytes));
    if (path.endsWith(".py")) waiting.push(...ofPython(path, bytes.toString("utf8")));
    else if (/\.[cm]?[jt]s$/.test(path)) waiting.push(...ofScript(path, bytes.toString("utf8")));
  }
  return Object.fromEntries([...found].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** One hash over all files of a program. */
export function programHash(file: string): string {
  return hashJson(programFiles(file));
}

function ofScript(path: string, text: string): string[] {
  return [...text.matchAll(imported)].flatMap(([, specifier]) => {
    const whole = resolve(dirname(path), specifier as string);
    // In TypeScript a file may be imported by the name that it has once it is compiled.
    const stems = [whole, whole.replace(/\.([cm]?)js$/, ".$1ts")];
    return firstOf(stems.flatMap((stem) => endings.map((ending) => stem + ending)));
  });
}

function ofPython(path: string, text: string): string[] {
  return [...text.matchAll(importedByPython)].flatMap(([, from, names, modules]) => {
    const list = (words: string): string[] => words.split(",").map((word) => word.trim().split(/\s/)[0] as string);
    const dotted =
      from === undefined ? list(modules as string) : [from, ...list(names as string).map((name) => `${from}${/[^.]$/.test(from) ? "." : ""}${name}`)];
    return dotted.flatMap((module) => {
      const [, dots, rest] = /^(\.*)(.*)$/.exec(module) as RegExpExecArray;
      const stem = join(dirname(path), "../".repeat(Math.max(0, (dots as string).length - 1)), (rest as string).replaceAll(".", "/"));
      return firstOf([`${stem}.py`, join(stem, "__init__.py")]);
    });
  });
}

/** Whether a path names a file that may be a program. */
export function isProgram(path: string): boolean {
  try {
    const found = statSync(path);
    return found.isFile() && found.size <= largest;
  } catch {
    return false;
  }
}

function firstOf(candidates: readonly string[]): string[] {
  const path = candidates.find(isProgram);
  return path === undefined ? [] : [path];
}
