// `npm test [-- files]` runs the quick tests, `npm run test:full [-- files]` all, `node scripts/test.mjs --only-full` the slow ones alone.
// The last line is plain: `N passed, N failed`, and `, N skipped` where some were.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { closing } from "./closing.mjs";
import { fail, node, ready } from "./ready.mjs";

const minutesAllowed = 55;

const flags = new Set(["--full", "--only-full"]);
const full = process.argv.includes("--full");
const onlyFull = process.argv.includes("--only-full");
const rest = process.argv.slice(2).filter((argument) => !flags.has(argument));

ready();
const folder = mkdtempSync(join(tmpdir(), "touchstone-test-"));
const counts = join(folder, "counts.json");
const started = Date.now();
const project = full ? [] : ["--project", onlyFull ? "full" : "quick"];
const code = node(["node_modules/vitest/vitest.mjs", "run", ...project, "--reporter=default", "--reporter=./scripts/count-reporter.mjs", ...rest], {
  env: { ...process.env, TOUCHSTONE_TEST_COUNTS: counts },
});
const minutes = (Date.now() - started) / 60_000;
const result = existsSync(counts) ? JSON.parse(readFileSync(counts, "utf8")) : { passed: 0, failed: 0, skipped: 0, files: [] };
rmSync(folder, { recursive: true, force: true });
// A run that failed without a failed test (it crashed, found no test, met an error outside of tests) is still a failure that counts.
if (code !== 0 && result.failed === 0) result.failed = 1;

if (full || onlyFull) {
  console.log("\nMinutes by file");
  for (const file of result.files.sort((a, b) => b.seconds - a.seconds)) console.log(`${(file.seconds / 60).toFixed(2).padStart(7)}  ${file.name}`);
  console.log(`${minutes.toFixed(2).padStart(7)}  in all, of at most ${minutesAllowed}`);
  if (minutes > minutesAllowed) result.failed += 1;
}
if (process.env.TOUCHSTONE_COUNTS) writeFileSync(process.env.TOUCHSTONE_COUNTS, JSON.stringify(result));
console.log(closing(result));
if (minutes > minutesAllowed) fail(`The tests took ${minutes.toFixed(0)} minutes, more than ${minutesAllowed}: make the slowest file above faster`);
process.exitCode = result.failed === 0 ? 0 : 1;
