// `npm run bench NAME [-- options]` runs bench/NAME.ts, `npm run examples NAME` examples/NAME.ts; without a name lists what there is, each with the first sentence of its header.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fail, node, ready, root } from "./ready.mjs";

const [folder, name, ...rest] = process.argv.slice(2);
ready();
const names = readdirSync(join(root, folder)).filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts"));
if (name === undefined) {
  console.log(`npm run ${folder} NAME, where NAME is one of`);
  for (const file of names) {
    const header = /\/\*\*\s*\**\s*(.*?)(?:\.\s|\*\/)/s.exec(readFileSync(join(root, folder, file), "utf8"))?.[1] ?? "";
    console.log(`  ${file.slice(0, -3).padEnd(20)} ${header.replace(/\s*\n\s*\*\s*/g, " ").trim()}`);
  }
} else {
  if (!existsSync(join(root, folder, `${name}.ts`))) fail(`There is no ${folder}/${name}.ts: run npm run ${folder} for the list`);
  process.exitCode = node(["--import", "tsx", join(folder, `${name}.ts`), ...rest]);
}
