/** The trainer, the engines and the commands know no method: whoever adds one touches its folder alone. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { methodNames } from "../src/methods/catalogue.js";
import { fallbackName } from "../src/methods/fallback.js";
import { importsOf, slashes, src } from "./imports.js";

const files = readdirSync(src, { recursive: true })
  .map((name) => slashes(String(name)))
  .filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts"));
const text = (file: string): string => readFileSync(join(src, file), "utf8");
const code = (file: string): string =>
  text(file)
    .replace(/\/\*.*?\*\//gs, "")
    .replace(/^\s*\/\/.*$/gm, "");
const ofMethod = (path: string): string | undefined => /^methods\/([^/]+)\//.exec(path)?.[1];

it("methods are found by their folders", () => {
  expect(methodNames).toContain(fallbackName);
  expect(methodNames).toContain("dapo");
  expect([...methodNames].sort()).toEqual(methodNames);
});

it("no file outside of a method's folder imports from it, but for the fallback and methods that build on another", () => {
  const users = files.filter((file) => importsOf(join(src, file), text(file)).some(({ to }) => ofMethod(to) !== undefined && ofMethod(to) !== ofMethod(file)));
  expect(users.filter((file) => ofMethod(file) === undefined)).toEqual(["methods/fallback.ts"]);
});

it("no file of the trainer, the engines, the evaluation or the commands has a method's name as a text", () => {
  const whole = new RegExp(`["'\`](${methodNames.join("|")})["'\`]`);
  const named = files.filter((file) => /^(core|engine|evaluate|train|compare|cli)\//.test(file) && whole.test(code(file)));
  expect(named).toEqual([]);
  expect(whole.test('"dapo"')).toBe(true);
});
