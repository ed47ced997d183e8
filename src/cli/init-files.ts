/** The files of `touchstone init`. */
import { randomKey, Stream } from "../core/random.js";

export interface InitFile {
  readonly file: string;
  readonly text: string;
  /** For the list that is printed; absent: not worth a line. */
  readonly about?: string;
}

export interface InitNames {
  readonly name: string;
  /** What package.json says of touchstone-rl. */
  readonly dependency: string;
  /** What to do in the folder, in order. */
  readonly commands: readonly string[];
}

export function initFiles(names: InitNames): InitFile[] {
  const { problems, examples } = digits();
  return [
    { file: "task.ts", text: task(names), about: "the task: where its problems are, and how an answer is checked" },
    { file: "problems.jsonl", text: lines(problems), about: `${problems.length} problems with their answers` },
    { file: "examples.jsonl", text: lines(examples), about: `${examples.length} example answers to other problems, for a policy that starts from nothing` },
    { file: "config.yaml", text: config(), about: "options of a training run" },
    { file: "task.test.mjs", text: test, about: "a test of the task" },
    { file: "README.md", text: readme(names), about: "what to do, and how to make it yours" },
    {
      file: "package.json",
      text: json({ name: names.name, private: true, type: "module", scripts: { test: "node --test" }, dependencies: { "touchstone-rl": names.dependency } }),
    },
    {
      file: "tsconfig.json",
      text: json({
        compilerOptions: { target: "es2022", lib: ["es2022", "dom"], module: "nodenext", strict: true, noEmit: true, skipLibCheck: true, types: [] },
        include: ["*.ts"],
      }),
    },
    { file: ".gitignore", text: "node_modules/\npolicy/\nruns/\n" },
  ];
}

const json = (value: object): string => `${JSON.stringify(value, undefined, 2)}\n`;
const lines = (rows: readonly object[]): string => rows.map((row) => `${JSON.stringify(row)}\n`).join("");

/** Share of the examples that are in ascending order. The others are what reinforcement has to unlearn. */
const right = 0.4;

/** Different prompts of four digits, not all equal; no prompt is in both lists. */
function digits(): { readonly problems: readonly object[]; readonly examples: readonly object[] } {
  const random = new Stream(randomKey({ seed: 0, purpose: "init" }));
  const prompts = new Set<string>();
  while (prompts.size < 1500) {
    const prompt = String(random.int(10_000)).padStart(4, "0");
    if (new Set(prompt).size > 1) prompts.add(prompt);
  }
  const rows = [...prompts].map((prompt) => ({ prompt, answer: [...prompt].sort().join("") }));
  return {
    problems: rows.slice(0, 500),
    examples: rows.slice(500).map(({ prompt, answer }) => ({ prompt, response: random.next() < right ? answer : [...answer].reverse().join("") })),
  };
}

const task = ({ name }: InitNames): string => `import { defineTask, jsonlRows, z } from "touchstone-rl";

/** Four digits, to be put in ascending order: \`4071\` asks for \`0147\`. */
export default defineTask({
  name: "${name}",
  rows: () => jsonlRows(new URL("problems.jsonl", import.meta.url), z.string()),
  verify: ({ response, reference }) => response === reference,
  maxTokens: 8,
});
`;

const config = (): string => `# Every option: docs/configuration.md of touchstone-rl. As resolved: --dry-run. Paths begin at this folder.
model: policy
task: ./task.ts
out: runs/first
steps: 40
problems: 16
group: 8
lr: 3e-4
eval:
  every: 20
`;

const test = `// Run by \`node --test\`: needs touchstone-rl and nothing else.
import assert from "node:assert/strict";
import { test } from "node:test";
import { judge, loadTask } from "touchstone-rl";

const task = await loadTask(new URL("task.ts", import.meta.url));
const problems = task.problems("train", task.size("train"), 0);
const held = task.problems("eval", task.size("eval"), 0);
const kind = async (problem, response) => (await judge(task.verifier, problem, response)).kind;

test("the answer of every problem is accepted", async () => {
  for (const problem of [...problems, ...held]) assert.equal(await kind(problem, problem.reference.answer), "accept", JSON.stringify(problem.prompt));
});

test("other texts are rejected", async () => {
  const [problem] = problems;
  const { answer } = problem.reference;
  for (const text of ["", " ", answer.slice(1), answer + answer, [...answer].reverse().join(""), \`\${answer}.\`]) {
    assert.equal(await kind(problem, text), "reject", JSON.stringify(text));
  }
});

test("no problem is both trained on and held out", () => {
  assert.ok(held.length > 0);
  const keys = new Set(problems.map(({ key }) => key));
  assert.deepEqual(held.filter(({ key }) => keys.has(key)), []);
});
`;

const readme = ({ name, commands }: InitNames): string => `# ${name}

A task for Touchstone: four digits are to be put in ascending order, and a program checks the answer. In this folder:

${commands.map((command) => `    ${command}`).join("\n")}

1. tests the task.
2. makes a small policy in \`policy\`: it learns from \`examples.jsonl\` what an answer looks like. Three in five examples are in
   descending order, so the policy is right about four times in ten.
3. reinforces what the task accepts; the run is in \`runs/first\`. For another run give \`--out\` another folder.
4. shows answers to held-out problems.

## Make it yours

- \`problems.jsonl\`: one JSON object a line with \`prompt\` (a text, or a list of messages) and \`answer\`. One in ten is held out for
  evaluation, chosen by a hash of its prompt.
- \`task.ts\`: \`verify\` gets \`response\` and \`reference\` and says true or false, or gives a verdict (\`partial(0.5)\`,
  \`reject("format")\`) from touchstone-rl. \`z.string()\` is what an answer is; \`z.int()\` or \`z.array(z.int())\` are others.
  Instead of \`rows\`, \`draw: (random) => ({ prompt, answer })\` makes problems without end. Change \`maxTokens\` to what your answers need.
- \`examples.jsonl\`: needed only for a policy that starts from nothing, whose alphabet is the characters in it. To go on from
  another policy, set \`model\` in \`config.yaml\` to its folder; tokenizers of published models are not read yet.
- \`task.test.mjs\`: say there what must be accepted and what must not. A policy finds every gap.
`;
