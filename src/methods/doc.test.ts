import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { repository } from "../../test/paths.js";
import { builtInMethods } from "./catalogue.js";
import { methodsPage } from "./doc.js";

const builtIn = await builtInMethods();

it("docs/methods.md is what the methods say of themselves; `npm run docs` writes it anew", () => {
  expect(readFileSync(join(repository, "docs", "methods.md"), "utf8")).toBe(methodsPage(builtIn));
});

it("every option of every method says what it is for, and has a default or may be left out", () => {
  for (const { name, options } of builtIn) {
    expect(options.safeParse({}).success, name).toBe(true);
    const shape = (options as unknown as { readonly shape: { readonly [option: string]: { readonly description?: string } } }).shape;
    for (const [option, { description }] of Object.entries(shape)) expect(description ?? "", `${name}.${option}`).toMatch(/\w.*\.$/);
  }
});
