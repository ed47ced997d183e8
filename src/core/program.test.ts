import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { programFiles, programHash } from "./program.js";

const folder = mkdtempSync(join(tmpdir(), "program-"));
function file(name: string, text: string): string {
  const path = join(folder, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  return path;
}

it("has the file, and what it imports by relative paths in every form, over several steps and in a circle", () => {
  const task = file(
    "a/task.ts",
    `import { x } from "./x";
     import type { y } from "../lib/y.js";
     export * from './all/index.ts';
     const z = require("./z");
     const late = () => import("./late.mjs");
     const table = new URL("./table.txt", import.meta.url);
     import fs from "node:fs"; import "some-package"; import "./missing.js";`,
  );
  file("a/x.ts", 'import "../lib/deep.js";');
  file("lib/y.ts", 'import "../a/task.js";');
  file("lib/deep.ts", "");
  file("a/all/index.ts", "");
  file("a/z.json", "1");
  file("a/late.mjs", "");
  file("a/table.txt", "1");
  file("a/other.ts", "");
  expect(Object.keys(programFiles(task))).toEqual(["../lib/deep.ts", "../lib/y.ts", "all/index.ts", "late.mjs", "table.txt", "task.ts", "x.ts", "z.json"]);
  const before = programHash(task);
  file("a/other.ts", "changed");
  expect(programHash(task)).toBe(before);
  file("lib/deep.ts", "changed");
  expect(programHash(task)).not.toBe(before);
});

it("follows Python's imports of files beside it, and of packages beside it", () => {
  const reward = file("p/reward.py", "import re, rules\nfrom pack.inner import check\nfrom .near import one\nfrom . import last\nimport numpy as np\n");
  file("p/rules.py", "");
  file("p/pack/inner.py", "from .. import rules\nfrom ..rules import x\n");
  file("p/near.py", "");
  file("p/last.py", "");
  expect(Object.keys(programFiles(reward))).toEqual(["last.py", "near.py", "pack/inner.py", "reward.py", "rules.py"]);
});

it("leaves our own sources to their version", () => {
  const task = file(
    "own.ts",
    `import { expect } from "${join(import.meta.dirname, "json.js")}";\nimport "./../../../../../..${join(import.meta.dirname, "errors.js")}";\n`,
  );
  expect(Object.keys(programFiles(task))).toEqual(["own.ts"]);
});
