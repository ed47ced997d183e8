/** What is wrong with a task is told with its place, its cause and the mend, before anything runs. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { DataError } from "../core/errors.js";
import { verifierId } from "../verify/contract.js";
import { number } from "../verify/number/number.js";
import { loadTask } from "./catalogue.js";
import { type Row, type Split, splits } from "./contract.js";
import { defineTask } from "./define.js";
import { jsonlRows } from "./jsonl-rows.js";

const whole = { name: "t", rows: [{ prompt: "p", answer: 1 }], verify: () => true };
const define = (spec: object): unknown => defineTask(spec as never);

describe("a task that is written wrongly", () => {
  it.each<[object, string]>([
    [{ ...whole, name: "" }, "task: it has no name; give a name, one of draw and rows, and one of verify and verifier"],
    [{ ...whole, verfiy: () => true }, 'task t: a task has no part "verfiy"; did you mean "verify"?'],
    [{ ...whole, rows: undefined }, "task t: neither draw nor rows is given; "],
    [{ ...whole, draw: () => whole.rows[0] }, "task t: both draw and rows are given; "],
    [{ ...whole, verify: undefined }, "task t: neither verify nor verifier is given; "],
    [{ ...whole, verifier: number() }, "task t: both verify and verifier are given; "],
    [{ ...whole, rows: undefined, draw: "p" }, 'task t: its draw is the text "p", not a function; write draw: (random) => ({ prompt: …, answer: … })'],
    [{ ...whole, rows: "problems.jsonl" }, 'task t: its rows are the text "problems.jsonl", not a list; give a list of { prompt, answer }'],
    [{ ...whole, verify: true }, "task t: its verify is true, not a function; write verify: ({ response, reference }) => true or false"],
    [
      { ...whole, verify: undefined, verifier: "number" },
      'task t: its verifier is the text "number", not a verifier; give one, such as number(), or write verify',
    ],
    [{ ...whole, maxTokens: 0 }, "task t: its maxTokens is the number 0; give a whole number from 1 on"],
    [{ ...whole, options: z.object({}) }, "task t: its options are no strict zod object; write options: z.strictObject({ … }), so that"],
    [{ ...whole, options: { n: 1 } }, "task t: its options are no strict zod object; "],
  ])("is refused: %o", (spec, sentence) => {
    expect(() => define(spec)).toThrow(sentence);
  });

  it("is told by its row where a part of it is misspelt", () => {
    const rows = [{ prompt: "p", answer: 1 }, { prompt: "q", anwser: 1 }, { promt: "r" }];
    const task = defineTask({ name: "t", rows: rows as Row<number>[], verify: () => true })();
    expect(() => task.size("train")).toThrow(
      'task t: 2 of 3 rows are bad (row 2: it has "anwser" (did you mean "answer"?); row 3: it has "promt" (did you mean "prompt"?)); mend or leave out these rows',
    );
  });
});

describe("parts of a task", () => {
  it("may be a list and constants instead of functions", () => {
    const task = defineTask({ name: "t", rows: [{ prompt: "p", answer: 1, split: "eval" }], verifier: number(), maxTokens: 7 })();
    expect([task.maxTokens, ...splits.map((split: Split) => task.size(split))]).toEqual([7, 0, 0, 1]);
  });
});

describe("rows of a file", () => {
  let folder: string;
  const file = (name: string, lines: readonly object[]): string => {
    writeFileSync(join(folder, name), lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
    return join(folder, name);
  };
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "touchstone-rows-"));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it("have the type of their schema, the named columns, and the place where they stand", () => {
    const path = file("a.jsonl", [{ question: "1+1", label: [1, 1], id: 7, part: "eval", proof: "2", more: null }]);
    const rows = jsonlRows(path, z.array(z.int()), { prompt: "question", answer: "label", key: "id", split: "part", solution: "proof" });
    const sum: number | undefined = rows[0].answer?.reduce((a, b) => a + b, 0);
    expect(sum).toBe(2);
    expect(rows).toEqual([{ prompt: "1+1", answer: [1, 1], key: "7", split: "eval", solution: "2", place: `${path}, line 1` }]);
  });

  it("are all read before the bad ones are listed by line", () => {
    const path = file("b.jsonl", [
      { prompt: "p", answer: 1 },
      { prompt: "p", answer: "1" },
      { prompt: "", answer: 1 },
      { promt: "p", answer: 1 },
    ]);
    expect(() => jsonlRows(path, z.int())).toThrow(DataError);
    expect(() => jsonlRows(path, z.int())).toThrow(
      `${path}: 3 of 4 lines cannot be used (line 2: its answer is the text "1", not a whole number; line 3: its prompt is empty; line 4: it has no column "prompt" (did you mean "promt"?)); mend these lines, or name other columns`,
    );
    expect(() => jsonlRows(path, z.int(), { splt: "x" } as object)).toThrow('jsonlRows, columns, option splt: there is no such option; did you mean "split"?');
    expect(() => jsonlRows(path, z.int(), { split: "answer" })).toThrow("line 1: its answer is not one of train, warm, eval");
    expect(() => jsonlRows(new URL("https://example.org/a.jsonl"), z.int())).toThrow("https://example.org/a.jsonl: it is no file of this machine; ");
  });

  it("come to a module that is loaded from any folder", async () => {
    file("problems.jsonl", [{ prompt: "p", answer: 5 }]);
    writeFileSync(
      join(folder, "task.ts"),
      `import { defineTask, jsonlRows, z } from "touchstone-rl";
       const options = z.strictObject({ budget: z.int().default(3) });
       const rows = () => jsonlRows(new URL("problems.jsonl", import.meta.url), z.int());
       export default defineTask({ name: "t", options, rows, verify: () => true, maxTokens: (o) => o.budget, shares: { train: 1, eval: 0, warm: 0 } });`,
    );
    const task = await loadTask(join(folder, "task.ts"), { budget: 9 });
    expect([task.maxTokens, task.problems("train", 1, 0)[0]?.reference.answer]).toEqual([9, 5]);
    // The same once it is compiled: the text of its check is another, and its name and version are what they were.
    const compiled = (version: string): string => {
      const path = join(folder, `compiled${version}.js`);
      const check = 'verify(input) { return input.response === String(input.reference); }, rows() { return [{ "prompt": "p", "answer": 5 }]; }';
      writeFileSync(path, `import { defineTask } from "touchstone-rl";\nexport default defineTask({ name: "own", version: "${version}", ${check} });\n`);
      return path;
    };
    const source = join(folder, "own.ts");
    writeFileSync(
      source,
      `import { defineTask } from "touchstone-rl";
       export default defineTask({ name: "own", rows: () => [{ prompt: "p", answer: 5 }], verify: ({ response, reference }) => response === String(reference) });`,
    );
    const [own, same, other] = await Promise.all([source, compiled("1"), compiled("2")].map((path) => loadTask(path)));
    expect([same?.id, verifierId(same!.verifier)]).toEqual([own?.id, verifierId(own!.verifier)]);
    expect([other?.id === own?.id, verifierId(other!.verifier) === verifierId(own!.verifier)]).toEqual([false, false]);
    await expect(loadTask(join(folder, "none.ts"))).rejects.toThrow(/^task: there is no file .*none\.ts; give the path of a \.ts or \.js file$/);
  });
});
