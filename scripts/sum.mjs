// Adds up the counts in a folder, prints a line for each part and the closing line; exit code 1 on any failure or when nothing ran.
import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { closing } from "./closing.mjs";

const folder = process.argv[2];
const sum = { passed: 0, failed: 0, skipped: 0 };
for (const file of readdirSync(folder)) {
  const counts = JSON.parse(readFileSync(join(folder, file), "utf8"));
  console.log(`part ${basename(file, ".json")}: ${closing(counts).replaceAll(",", " ")}`);
  for (const key of Object.keys(sum)) sum[key] += counts[key];
}
if (sum.passed + sum.failed === 0) sum.failed = 1;
console.log(closing(sum));
process.exitCode = sum.failed === 0 ? 0 : 1;
