import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { repository } from "../../test/paths.js";
import { run } from "../../test/run.js";
import { scratch } from "../../test/support/tabular.js";
import { command } from "../../test/support/touchstone.js";

const folder = scratch();
const audit = (...args: string[]) => run(process.execPath, [...command, "audit", ...args], { cwd: repository });
interface Printed {
  readonly clean: boolean;
  readonly files: { readonly html: string; readonly json: string };
  readonly self_validation: { readonly accepted: number; readonly n: number };
  readonly cells: readonly { readonly category: string; readonly reject: number; readonly error: number; readonly n: number }[];
}
async function report(name: string, ...args: string[]): Promise<Printed & { readonly code: number | null }> {
  const { out, code } = await audit(name, "--golds", "3", "--json", "--out", join(folder, name.replace(/\W/g, "")), ...args);
  return { code, ...(JSON.parse(out) as Printed) };
}

describe("touchstone audit", () => {
  it("finds nothing against math, and writes a page with charts that stands alone", async () => {
    const { code, clean, files, self_validation } = await report("math", "--frame", "So it is \\boxed{{}}.");
    expect([code, clean, self_validation]).toMatchObject([0, true, { n: 3, accepted: 3 }]);
    const html = readFileSync(files.html, "utf8");
    expect(html.match(/<svg/g)).toHaveLength(3);
    expect(html.match(/(?:src|href)="(?!#)[^"]*"/g)).toBe(null);
    expect(html).toContain("<h1>Audit of math</h1>");
    expect(JSON.parse(readFileSync(files.json, "utf8"))).toMatchObject({ clean: true, golds: 3 });
  });

  it("fails a reward of one's own that takes the answer anywhere, in words too", async () => {
    const file = join(folder, "lax.ts");
    writeFileSync(file, "export default (problem: { reference: string }, response: string): boolean => response.includes(problem.reference);\n");
    const { out, code } = await audit(file, "--golds", "12", "--out", join(folder, "lax"));
    expect(code).toBe(1);
    expect(out).toMatch(/^ {2}unfinished thinking +\d+ of \d+$/m);
    expect(out).toMatch(/^ {2}denial +\d+ of \d+$/m);
    expect(out).toContain("It fails; the report is ");
  });

  it("asks programs and servers, and counts their failures apart", async () => {
    const program = join(folder, "grade.mjs");
    writeFileSync(
      program,
      `import { createInterface } from "node:readline";
for await (const line of createInterface({ input: process.stdin })) {
  const { id, items } = JSON.parse(line);
  console.log(JSON.stringify({ id, results: items.map(({ problem, response }) => (response.includes("\\u00a0") ? { unscored: "odd-blank" } : response === problem.reference)) }));
}
`,
    );
    const asked = await report(`command:node ${program}`, "--contract", "identity,whitespace", "--allow", "1");
    expect([asked.code, asked.self_validation.accepted]).toEqual([0, 3]);
    expect(asked.cells.find(({ category }) => category === "whitespace")).toMatchObject({ error: 6 });
    const server = createServer(async (request, response) => {
      let body = "";
      for await (const piece of request) body += String(piece);
      const { items } = JSON.parse(body) as { items: { problem: { reference: string }; response: string }[] };
      response.end(JSON.stringify({ results: items.map((item) => item.response.trim() === item.problem.reference) }));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      const served = await report(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, "--allow", "1");
      expect([served.code, served.self_validation.accepted]).toEqual([0, 3]);
      expect(served.cells.find(({ category }) => category === "punctuation")).toMatchObject({ error: 0, reject: 21 });
    } finally {
      server.close();
    }
  });

  it.each<[string[], string]>([
    [["math", "--contract", "identity,comma"], 'there is no category "comma"'],
    [["math", "--frame", "the answer"], 'option --frame: "the answer" has no {}'],
  ])("refuses %j before anything is judged", async (args, says) => {
    const { err, code } = await audit(...args, "--out", join(folder, "none"));
    expect([code, err]).toEqual([2, expect.stringContaining(says)]);
    expect(existsSync(join(folder, "none"))).toBe(false);
  });
});
