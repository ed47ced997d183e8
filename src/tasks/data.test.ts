import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type ColumnSource, parquetWriteBuffer } from "hyparquet-writer";
import { afterAll, describe, expect, it } from "vitest";
import { repository } from "../../test/paths.js";
import type { Json } from "../core/json.js";
import { parseOptions } from "../core/options.js";
import type { Problem } from "../core/problem.js";
import { exact } from "../verify/exact/exact.js";
import { verifierOf } from "../verify/simple.js";
import { type DataTask, dataTask } from "./data.js";
import { dataOptions } from "./data-options.js";

const folder = mkdtempSync(join(tmpdir(), "touchstone-data-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const write = (name: string, content: string | Uint8Array): string => {
  const path = join(folder, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
  return path;
};
const jsonl = (name: string, rows: readonly Json[]): string => write(name, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
const parquet = (name: string, columnData: ColumnSource[], more: object = {}): string =>
  write(name, new Uint8Array(parquetWriteBuffer({ columnData, ...more })));
const column = (name: string, data: unknown[], type?: string): ColumnSource => ({ name, data, ...(type && { type }) }) as ColumnSource;

const read = (options: object, verifier = exact(), split: "train" | "test" = "train"): Promise<DataTask> =>
  dataTask(parseOptions(dataOptions, options, "data"), verifier, { split });
const all = ({ task }: DataTask, split: "train" | "eval" = "train"): Problem[] =>
  [...task.problems(split, task.size(split), 0)].sort((a, b) => ((a.prompt.at(-1)?.content as string) < (b.prompt.at(-1)?.content as string) ? -1 : 1));
const texts = (data: DataTask, split: "train" | "eval" = "train"): string[] => all(data, split).map(({ prompt }) => prompt.at(-1)?.content as string);

describe("a Parquet file", () => {
  it("gives the problems of the JSONL file with the same rows, keys included", async () => {
    const rows = Array.from({ length: 10_000 }, (_, i) => ({ prompt: `${i}+1=`, answer: String(i + 1) }));
    const names = { prompt: rows.map((row) => row.prompt), answer: rows.map((row) => row.answer) };
    jsonl("lines/same", rows);
    parquet(
      "packed/same",
      [
        column(
          "other",
          rows.map((_, i) => i),
        ),
        column("answer", names.answer),
        column("prompt", names.prompt),
      ],
      { rowGroupSize: 3000 },
    );
    const [lines, packed] = await Promise.all(["lines", "packed"].map((kind) => read({ file: join(folder, kind, "same") })));
    expect(all(packed as DataTask)).toEqual(all(lines as DataTask));
    expect((packed as DataTask).task.size("train")).toBe(10_000);
  });

  it("has whole numbers, also such that no double carries, lists and missing values", async () => {
    const answers = [1n, 9007199254740993n, -5n];
    const file = parquet("numbers.parquet", [
      column("prompt", ["a", "b", "c"]),
      column("answer", answers, "INT64"),
      column("level", [1, 2, undefined], "INT32"),
    ]);
    const free = verifierOf("any", () => true);
    expect(all(await read({ file }, free)).map(({ reference }) => reference.answer)).toEqual([1, "9007199254740993", -5]);
    expect(texts(await read({ file, where: { level: { min: 1, max: 1 } } }, free))).toEqual(["a"]);
  });

  it("in verl's form gives messages, the ground truth, and what its reward functions are handed", async () => {
    const file = join(repository, "test", "data", "verl-rows.parquet");
    const problems = all(await read({ file }));
    expect(problems).toMatchObject(
      [1, 2, 3, 4, 5].map((index) => ({
        prompt: [
          { role: "system", content: "Answer with the number alone." },
          { role: "user", content: `${index}+${index}=` },
        ],
        reference: { state: "gold", answer: String(2 * index) },
        tags: { data_source: "made/sums" },
        privileged: { extra_info: { split: "train", index, answer: String(2 * index), tags: ["sum", "even"] } },
      })),
    );
    const some = all(await read({ file, key_column: "extra_info.index", where: { "extra_info.index": { min: 2, max: 3 } } }));
    expect(some.map(({ key }) => key)).toEqual(["2", "3"]);
  });

  it("that is cut, damaged or empty, or lacks a column, is refused in one sentence", async () => {
    const file = parquet("whole.parquet", [column("prompt", ["a", "b"]), column("answer", ["1", "2"])]);
    const bytes = readFileSync(file);
    const cut = write("cut.parquet", bytes.subarray(0, bytes.length - 20));
    await expect(read({ file: cut })).rejects.toThrow(/^.*cut\.parquet: it is no whole Parquet file \(.+\); download or write it again$/);
    const damaged = Buffer.from(bytes);
    damaged.fill(0xff, 4, 40);
    await expect(read({ file: write("damaged.parquet", damaged) })).rejects.toThrow(/damaged\.parquet: it is no whole Parquet file \(.+\); download/);
    const none = parquet("none.parquet", [column("prompt", [], "STRING"), column("answer", [], "STRING")]);
    await expect(read({ file: none })).rejects.toThrow(`${none}: it has no row; give data with rows`);
    await expect(read({ file, prompt_column: "promt" })).rejects.toThrow(
      `${file}: it has no column "promt" (did you mean "prompt"?); name the column that is meant`,
    );
    await expect(read({ file, where: { level: 1 } })).rejects.toThrow(`${file}: it has no column "level" (its columns: prompt, answer); name the column`);
    const gap = parquet("gap.parquet", [column("prompt", ["a", "b"]), column("answer", ["1", undefined], "STRING")]);
    await expect(read({ file: gap })).rejects.toThrow(`${gap}: 1 of 2 rows cannot be used (row 2: its answer is null); mend these rows, or leave them out`);
  });
});

describe("a data folder", () => {
  const pair = (text: string): Json => ({ prompt: text, answer: "1" });

  it("is read by split, in pieces, with another split held out", async () => {
    parquet("hub/data/train-00000-of-00002.parquet", [column("prompt", ["a", "b"]), column("answer", ["1", "1"])]);
    parquet("hub/data/train-00001-of-00002.parquet", [column("prompt", ["c"]), column("answer", ["1"])]);
    jsonl("hub/data/test-00000-of-00001.jsonl", [pair("d")]);
    jsonl("hub/data/train_hard-00000-of-00001.jsonl", [pair("e")]);
    write("hub/README.md", "no data");
    const file = join(folder, "hub");
    expect(texts(await read({ file }))).toEqual(["a", "b", "c"]);
    expect(texts(await read({ file }, exact(), "test"))).toEqual(["d"]);
    expect(texts(await read({ file, split: "train_hard" }))).toEqual(["e"]);
    const both = await read({ file, eval_split: "test" });
    expect([texts(both), texts(both, "eval")]).toEqual([["a", "b", "c"], ["d"]]);
    await expect(read({ file, split: "tset" })).rejects.toThrow(`${file}: it has no split "tset"; did you mean "test"?`);
    await expect(read({ file, split: "validation" })).rejects.toThrow(`${file}: it has no split "validation"; its splits: test, train, train_hard`);
  });

  it("may name the split in a folder or anywhere in a file's name, and a single file is train", async () => {
    jsonl("a/default/train/0000.jsonl", [pair("x")]);
    jsonl("a/default/validation/0000.jsonl", [pair("y")]);
    expect(texts(await read({ file: join(folder, "a") }))).toEqual(["x"]);
    expect(texts(await read({ file: join(folder, "a"), split: "validation" }))).toEqual(["y"]);
    jsonl("b/my.train.jsonl", [pair("x")]);
    jsonl("b/my-dev.jsonl", [pair("y")]);
    expect(texts(await read({ file: join(folder, "b"), split: "validation" }))).toEqual(["y"]);
    jsonl("c/problems.jsonl", [pair("x")]);
    expect(texts(await read({ file: join(folder, "c") }))).toEqual(["x"]);
  });

  it("with several subsets, without records, or with an empty split is refused", async () => {
    jsonl("several/main/train.jsonl", [pair("x")]);
    jsonl("several/socratic/train.jsonl", [pair("y")]);
    const several = join(folder, "several");
    await expect(read({ file: several })).rejects.toThrow(
      `${several}: it holds 2 subsets with the split train; give one of them: ${join(several, "main")}, ${join(several, "socratic")}`,
    );
    expect(texts(await read({ file: join(several, "main") }))).toEqual(["x"]);
    write("bare/data.csv", "a,b");
    await expect(read({ file: join(folder, "bare") })).rejects.toThrow("it holds no file of records; give a folder with .parquet or .jsonl files, or a file");
    parquet("void/train.parquet", [column("prompt", [], "STRING"), column("answer", [], "STRING")]);
    await expect(read({ file: join(folder, "void") })).rejects.toThrow("its split train has no row; give data with rows");
    const file = jsonl("single.jsonl", [pair("x")]);
    await expect(read({ file, split: "train" })).rejects.toThrow(`${file}: it is no folder, and split chooses among the files of one; leave split out`);
  });
});

it("blank lines at the end of a file are passed over, and those between its rows are told", async () => {
  const line = (prompt: string): string => `${JSON.stringify({ prompt, answer: "1" })}\n`;
  expect(texts(await read({ file: write("ends.jsonl", `${line("a")}${line("b")}\n \n\n`) }))).toEqual(["a", "b"]);
  await expect(read({ file: write("between.jsonl", `${line("a")}\n\n${line("b")}\n`) })).rejects.toThrow(
    "2 of 4 lines cannot be used (line 2: it is empty; line 3: it is empty)",
  );
});

describe("filters", () => {
  const rows = [
    { prompt: "a", answer: "1", level: 1, kind: "sum", rate: 0.2 },
    { prompt: "bb", answer: "1", level: 2, kind: "sum", rate: 0.5 },
    { prompt: "ccc", answer: "1", level: 3, kind: "product", rate: 1 },
    // What is filtered out need not be usable.
    { prompt: "dddd", answer: null, level: 4, kind: "none", rate: null },
  ];

  it("take rows by value, list, limits and length, and say how many are left out", async () => {
    const file = jsonl("filters.jsonl", rows);
    expect(texts(await read({ file, where: { level: 2 } }))).toEqual(["bb"]);
    expect(texts(await read({ file, where: { level: [1, 3] } }))).toEqual(["a", "ccc"]);
    expect(texts(await read({ file, where: { rate: { min: 0.2, max: 0.5 } } }))).toEqual(["a", "bb"]);
    const two = await read({ file, where: { kind: ["sum", "product"] }, prompt_chars: { min: 2, max: 2 } });
    expect(texts(two)).toEqual(["bb"]);
    expect(two.notes).toEqual([`3 of 4 rows of ${file} do not pass its filters`]);
  });

  it("that name a column that is not there, or let nothing pass, are refused", async () => {
    const file = jsonl("filters.jsonl", rows);
    await expect(read({ file, where: { levle: 2 } })).rejects.toThrow('line 1: it has no column "levle" (did you mean "level"?)');
    await expect(read({ file, where: { kind: { min: 1 } } })).rejects.toThrow('line 1: its kind is the text "sum", and min and max in where compare numbers');
    await expect(read({ file, where: { level: 9 } })).rejects.toThrow(`${file}: none of its 4 rows passes the filters (where, prompt_chars); widen them`);
  });
});

describe("several sources", () => {
  const sources = () => {
    const a = jsonl("mix/a.jsonl", [
      { prompt: "a1", answer: "1" },
      { prompt: "a2", answer: "1" },
    ]);
    const b = jsonl("mix/b.jsonl", [
      { question: "b1", answer: "1", level: 1 },
      { question: "b2", answer: "1", level: 2 },
    ]);
    return [{ file: a }, { file: b, prompt_column: "question", where: { level: 2 } }];
  };

  it("have options of their own over the common ones, keep the keys they have alone, and say their source", async () => {
    const [a, b] = sources();
    const mixed = await read({
      sources: [
        { ...a, weight: 3 },
        { ...b, name: "bees", weight: 1 },
      ],
      system: "Count.",
    });
    expect(texts(mixed)).toEqual(["a1", "a2", "b2"]);
    expect(mixed.mixture).toEqual([
      { name: "a.jsonl", weight: 3 },
      { name: "bees", weight: 1 },
    ]);
    expect(all(mixed).map(({ tags, prompt }) => [tags?.source, prompt[0]?.content])).toEqual([
      ["a.jsonl", "Count."],
      ["a.jsonl", "Count."],
      ["bees", "Count."],
    ]);
    const alone = [...all(await read({ ...a, system: "Count." })), ...all(await read({ ...b, system: "Count." }))];
    expect(all(mixed).map(({ key }) => key)).toEqual(alone.map(({ key }) => key));
    expect((await read({ sources: sources() })).mixture).toBeUndefined();
  });

  it("with a problem in two of them are refused, or skip it", async () => {
    const a = jsonl("twice/a.jsonl", [{ prompt: "same", answer: "1", id: 1 }]);
    const b = jsonl("twice/b.jsonl", [
      { prompt: "own", answer: "1", id: 1 },
      { prompt: "same", answer: "1", id: 2 },
    ]);
    await expect(read({ sources: [{ file: a }, { file: b }] })).rejects.toThrow(
      `${b}: 1 of 2 lines cannot be used (line 2: it has the prompt of line 1 of ${a})`,
    );
    await expect(read({ sources: [{ file: a }, { file: b }], key_column: "id" })).rejects.toThrow(
      `(line 1: it has the key "1" of line 1 of ${a}; line 2: it has the prompt of line 1 of ${a})`,
    );
    await expect(
      read({
        sources: [
          { file: a, name: "one" },
          { file: a, name: "two" },
        ],
      }),
    ).rejects.toThrow('(line 1: it has the prompt of line 1 of the same file in source "one")');
    const skipped = await read({ sources: [{ file: a }, { file: b, bad_rows: "skip" }] });
    expect(texts(skipped)).toEqual(["own", "same"]);
    expect(skipped.notes).toEqual([`1 lines of ${b} were left out (the first: line 2: it has the prompt of line 1 of ${a})`]);
  });

  it("with weights or names that cannot be meant are refused before a file is read", async () => {
    const [a, b] = sources();
    const weights = (x: unknown, y: unknown) =>
      read({
        sources: [
          { ...a, weight: x },
          { ...b, weight: y },
        ],
      });
    for (const bad of [0, -1, Number.NaN, Number.POSITIVE_INFINITY, "2"])
      await expect((async () => weights(1, bad))()).rejects.toThrow(/^data, option sources\[1\]\.weight: got .+; give a number above 0$/);
    await expect(weights(1, undefined)).rejects.toThrow(
      "data.sources[1].weight: it is missing, and another source has one; give each source a weight, or none",
    );
    await expect(read({ sources: [a, a] })).rejects.toThrow('data.sources[1].name: source 1 is called "a.jsonl" too; give each a name of its own');
    await expect(read({ sources: [a], file: "x" })).rejects.toThrow("data: both file and sources are given; give one of them");
    await expect(read({})).rejects.toThrow("data: neither file nor sources is given; give a file");
    await expect((async () => read({ sources: [{ ...a, wieght: 1 }] }))()).rejects.toThrow(
      'data, option sources[0].wieght: there is no such option; did you mean "weight"?',
    );
  });

  it("hold out shares of their own", async () => {
    const a = jsonl(
      "held/a.jsonl",
      Array.from({ length: 50 }, (_, i) => ({ prompt: `a${i}`, answer: "1" })),
    );
    const b = jsonl(
      "held/b.jsonl",
      Array.from({ length: 50 }, (_, i) => ({ prompt: `b${i}`, answer: "1" })),
    );
    const mixed = await read({ sources: [{ file: a }, { file: b, eval_share: 1 }] });
    expect(texts(mixed).every((text) => text.startsWith("a"))).toBe(true);
    expect(mixed.task.size("train")).toBe(50);
    expect(mixed.task.size("eval")).toBe(50);
  });
});
