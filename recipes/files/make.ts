/**
 * Makes the data of the recipes beside it, chains of operations modulo 7 with the columns that files have:
 *
 *     npx tsx recipes/files/make.ts
 */
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parquetWriteFile } from "hyparquet-writer";
import { chain } from "touchstone-rl";

const here = (file: string): string => fileURLToPath(new URL(file, import.meta.url));

/** Of the split of which neither the warm start nor the evaluation of the task has any. */
const rows = (count: number, least: number, most: number) =>
  chain({ modulus: 7, min_operations: least, max_operations: most })
    .problems("train", count, 0)
    .map(({ prompt, reference, tags }) => ({ prompt: prompt[0].content, answer: String(reference.answer), operations: Number(tags?.operations) }));

const lines = (count: number, operations: number): string =>
  rows(count, operations, operations)
    .map(({ prompt, answer }) => `${JSON.stringify({ prompt, answer })}\n`)
    .join("");

writeFileSync(here("chains-short.jsonl"), lines(900, 3));
writeFileSync(here("chains-long.jsonl"), lines(900, 6));

const table = rows(3600, 2, 7);
parquetWriteFile({
  filename: here("chains.parquet"),
  columnData: [
    { name: "question", data: table.map(({ prompt }) => prompt), type: "STRING" },
    { name: "answer", data: table.map(({ answer }) => answer), type: "STRING" },
    { name: "operations", data: table.map(({ operations }) => operations), type: "INT32" },
  ],
});
