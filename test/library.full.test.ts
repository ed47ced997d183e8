/** The library as a program of one's own uses it: tasks in ten typed lines, checked by the compiler against the published types, and run. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { alphabetTokenizer } from "../src/core/alphabet.js";
import { repository } from "./paths.js";
import { installedProject, type Project } from "./support/project.js";
import { tablePolicy } from "./support/tabular.js";

const drawn = `import { defineTask, train } from "touchstone-rl";

const twice = defineTask({
  name: "twice",
  draw: (random) => {
    const n = random.int(50);
    return { prompt: \`\${n}*2\`, answer: 2 * n };
  },
  verify: ({ response, reference }) => Number(response) === reference,
});
`;
const listed = `import { defineTask, train } from "touchstone-rl";

const twice = defineTask({
  name: "twice",
  rows: [
    { prompt: "1*2", answer: 2 },
    { prompt: "2*2", answer: 4 },
    { prompt: "4*2", answer: 8, split: "train" },
    { prompt: "8*2", answer: 16 },
  ],
  verify: ({ response, reference }) => Number(response) === reference,
});
`;
const fromFile = `import { defineTask, jsonlRows, train, z } from "touchstone-rl";

const twice = defineTask({
  name: "twice",
  rows: () => jsonlRows(new URL("problems.jsonl", import.meta.url), z.int(), { prompt: "question" }),
  verify: ({ response, reference }) => Number(response) === reference,
});
`;
const trained = `const result = await train({ model: "policy", out: process.argv[2], task: twice, steps: 3, problems: 2, group: 4, max_tokens: 3, engine: { name: "table" } });
console.log(result.message, result.steps, typeof result.model);
`;
/** Of the global objects a program needs, only the one for its folder comes from Node: the types of the package need none. */
const globals = "declare const process: { readonly argv: readonly string[] };\n";

const strict = { target: "es2022", module: "nodenext", strict: true, noEmit: true, lib: ["es2022", "dom"] };

let project: Project;
let policy: string;
const write = (name: string, text: string): void => writeFileSync(join(project.folder, name), text);

beforeAll(async () => {
  policy = await tablePolicy({}, 1, alphabetTokenizer([..."0123456789*"]));
  project = await installedProject();
  write("package.json", JSON.stringify({ type: "module" }));
  write("globals.d.ts", globals);
  write("problems.jsonl", [1, 2, 3, 4].map((n) => `${JSON.stringify({ question: `${n}*2`, answer: 2 * n, source: "made" })}\n`).join(""));
  write("tsconfig.json", JSON.stringify({ compilerOptions: { ...strict, types: [] }, include: ["*.ts"] }));
});
afterAll(() => {
  for (const folder of [project.folder, dirname(policy)]) rmSync(folder, { recursive: true, force: true });
});

describe("programs in the documents", () => {
  it("type-check as they stand", async () => {
    const names = ["README.md", ...["data", "environments", "loggers", "methods", "rewards"].map((page) => `docs/${page}.md`)];
    // A piece of a program goes on with `...options` of its reader.
    const pages = names
      .flatMap((page) => [...readFileSync(join(repository, page), "utf8").matchAll(/```ts\n(.*?)```/gs)])
      .filter(([, text]) => !(text as string).includes("...options"));
    expect(pages.length).toBeGreaterThanOrEqual(10);
    const folder = join(project.folder, "pages");
    mkdirSync(folder);
    for (const [i, [, text]] of pages.entries()) writeFileSync(join(folder, `page-${i}.ts`), text as string);
    const compilerOptions = { ...strict, types: ["node"], typeRoots: [join(repository, "node_modules", "@types")] };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts"] }));
    expect(await project.tsc("-p", "pages")).toEqual({ code: 0, out: "", err: "" });
  });
});

describe("a task of one's own", () => {
  const programs = { drawn, listed, fromFile };
  const faults = `import { defineTask, jsonlRows, train, z } from "touchstone-rl";
// @ts-expect-error a number is no text
defineTask({ name: "t", draw: () => ({ prompt: "p", answer: 1 }), verify: ({ reference }) => reference.trim() === "" });
// @ts-expect-error the file's answers are numbers
defineTask({ name: "t", rows: () => jsonlRows("a.jsonl", z.int()), verify: ({ reference }) => reference.trim() === "" });
// @ts-expect-error there is nothing that checks an answer
defineTask({ name: "t", rows: [{ prompt: "p", answer: 1 }] });
// @ts-expect-error a check that gives nothing back
defineTask({ name: "t", rows: [{ prompt: "p", answer: 1 }], verify: ({ response }) => void (response === "1") });
// @ts-expect-error there is no option stepz
await train({ model: "policy", out: "run", task: "chain", stepz: 3 });
`;

  it("is ten lines without a cast, and the compiler knows what its answers are", async () => {
    for (const text of Object.values(programs)) expect(text.trimEnd().split("\n").length - 2).toBeLessThanOrEqual(10);
    for (const [name, text] of Object.entries(programs)) write(`${name}.ts`, text + trained.replace('"policy"', JSON.stringify(policy)));
    write("faults.ts", faults);
    expect(await project.tsc("-p", ".")).toEqual({ code: 0, out: "", err: "" });
    rmSync(join(project.folder, "faults.ts"));
  });

  it.each(Object.keys(programs))("trains: %s", async (name) => {
    const ran = await project.tsx(`${name}.ts`, `run-${name}`);
    expect(ran).toMatchObject({ code: 0, out: expect.stringMatching(/^3 steps are done.* 3 string\n$/) });
  });
});
