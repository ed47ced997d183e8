/** What every source file keeps to: one way of dependencies, its size, and no knowledge of the place where it was written. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { faultsOf, importsOf, slashes, src } from "./imports.js";

const files = readdirSync(src, { recursive: true })
  .map((name) => slashes(String(name)))
  .filter((name) => name.endsWith(".ts"));
const product = files.filter((name) => !name.endsWith(".test.ts"));
const text = (file: string): string => readFileSync(join(src, file), "utf8");

describe("the sources", () => {
  it("depend one way: core on nothing of ours, methods and tasks on no engine", () => {
    expect(files.length).toBeGreaterThan(5);
    expect(product.flatMap((file) => faultsOf(file, importsOf(join(src, file), text(file))))).toEqual([]);
  });

  it("have at most 500 lines a file and folders at most two deep", () => {
    expect(files.filter((file) => text(file).split("\n").length > 501)).toEqual([]);
    expect(files.filter((file) => file.split("/").length > 3)).toEqual([]);
  });

  it("name no folder outside of the repository", () => {
    expect(files.filter((file) => /\.\.\/shared|\/work\/|["'`]\/root\//.test(text(file)))).toEqual([]);
  });
});

describe("the check of the dependencies", () => {
  const check = (file: string, code: string) => faultsOf(file, importsOf(join(src, file), code));

  it("refuses a method that imports an engine, and lets it take types of the contract", () => {
    expect(check("methods/grpo/grpo.ts", `import { TableEngine } from "../../engine/table/engine.js";`)).toEqual([
      "methods/grpo/grpo.ts imports engine/table/engine.ts",
    ]);
    expect(check("methods/grpo/grpo.ts", `import { capabilities } from "../../engine/contract.js";`)).toHaveLength(1);
    expect(check("methods/grpo/grpo.ts", `import type { Engine } from "../../engine/contract.js";`)).toEqual([]);
    expect(check("methods/grpo/grpo.ts", `import { type Engine, type Capability } from "../../engine/contract.js";`)).toEqual([]);
    expect(check("methods/grpo/grpo.ts", `import type { Graph } from "../../engine/onnx/graph.js";`)).toHaveLength(1);
  });

  it("sees several lines, exports and dynamic imports", () => {
    expect(check("core/a.ts", `import {\n  one,\n  two,\n} from "../verify/b.js";`)).toHaveLength(1);
    expect(check("core/a.ts", `export * from "../verify/b.js";`)).toHaveLength(1);
    expect(check("core/a.ts", `const b = await import("../verify/b.js");`)).toHaveLength(1);
    expect(check("core/a.ts", `import "../verify/b.js";`)).toHaveLength(1);
    expect(check("core/a.ts", `import { z } from "zod";\nimport { c } from "./c.js";\n// import { d } from "../verify/d.js";`)).toEqual([]);
  });

  it("refuses a file that reaches out of src and a folder without a place", () => {
    expect(check("core/a.ts", `import { run } from "../../test/run.js";`)).toHaveLength(1);
    expect(check("misc/a.ts", ``)).toHaveLength(1);
  });
});
