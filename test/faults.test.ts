/** docs/faults.md tells the truth: every test that it names exists, and every fault has a test or a word on what is missing. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { repository } from "./paths.js";

interface Fault {
  readonly reported: string;
  readonly tests: readonly { readonly file: string; readonly title: string }[];
  readonly rest: string;
}

const unescaped = (cell: string): string => cell.trim().replaceAll("\\|", "|");

/** The rows of all tables; throws for one that is not of four columns. */
function faultsIn(markdown: string): Fault[] {
  return markdown
    .split("\n")
    .filter((line) => line.startsWith("| ") && !/^\| (reported|---) /.test(line))
    .map((line) => {
      const cells = line.slice(1, -1).split(/(?<!\\)\|/);
      if (cells.length !== 4) throw new Error(`no row of four columns: ${line}`);
      const [reported, , named, rest] = cells.map(unescaped);
      const parts = named === "" ? [] : named.split("<br>");
      const tests = parts.map((part) => {
        const [, file, title] = /^`([^`]+)` "([^"]+)"$/.exec(part) ?? [];
        if (file === undefined) throw new Error(`no test by file and title: ${part}`);
        return { file, title };
      });
      return { reported, tests, rest };
    });
}

/** Faults that have neither a test nor a word on what they wait for or why they cannot apply. */
const unanswered = (faults: readonly Fault[]): string[] =>
  faults.filter(({ tests, rest }) => tests.length === 0 && !/^\*\*(waits|cannot)\*\*: \S/.test(rest)).map(({ reported }) => reported);

/** Whether the file has this title as a text, and is one that tests are run from. */
function exists({ file, title }: Fault["tests"][number]): boolean {
  if (!/\.test\.ts$|^src\/engine\/conformance-[a-z]+\.ts$/.test(file) || !existsSync(join(repository, file))) return false;
  const text = readFileSync(join(repository, file), "utf8");
  return text.includes(`"${title}"`) || text.includes(`\`${title}\``);
}

describe("docs/faults.md", () => {
  const faults = faultsIn(readFileSync(join(repository, "docs", "faults.md"), "utf8"));
  const ids = faults.flatMap(({ reported }) => {
    let project = "";
    return reported.split(", ").map((id) => {
      if (!/^[\w-]*#\d+$/.test(id)) throw new Error(`no report of a public tracker: ${id}`);
      project = id.startsWith("#") ? project : id.slice(0, id.indexOf("#"));
      return `${project}${id.slice(id.indexOf("#"))}`;
    });
  });

  it("names each report once, by project and number", () => {
    expect(faults.length).toBeGreaterThanOrEqual(83);
    expect(ids.filter((id, i) => ids.indexOf(id) !== i || id.startsWith("#"))).toEqual([]);
  });

  it("names tests that exist", () => {
    const missing = faults.flatMap(({ reported, tests }) => tests.filter((test) => !exists(test)).map(({ file, title }) => `${reported}: ${file} "${title}"`));
    expect(missing).toEqual([]);
  });

  it("leaves no fault without a test, what it waits for, or why it cannot apply", () => {
    expect(unanswered(faults)).toEqual([]);
  });
});

describe("the check of docs/faults.md", () => {
  it("sees a test that is not there, a file without tests, and a fault without an answer", () => {
    const row = (tests: string, rest: string): Fault => faultsIn(`| verl#1 | it broke | ${tests} | ${rest} |`)[0];
    const named = (file: string, title: string): boolean => exists(row(`\`${file}\` "${title}"`, "").tests[0]);
    expect(named("test/structure.test.ts", "name no folder outside of the repository")).toBe(true);
    expect(named("test/structure.test.ts", "name no folder outside")).toBe(false);
    expect(named("test/imports.ts", "core")).toBe(false);
    expect(named("test/gone.test.ts", "x")).toBe(false);
    expect(unanswered([row("", ""), row("", "perhaps"), row("", "**waits**:")])).toHaveLength(3);
    expect(unanswered([row("", "**waits**: tools are not built"), row("", "**cannot**: there are none"), row('`a.test.ts` "b"', "")])).toEqual([]);
    expect(() => row("see the tests", "")).toThrow("no test by file and title");
    expect(() => faultsIn("| verl#1 | it broke | |")).toThrow("no row of four columns");
  });
});
