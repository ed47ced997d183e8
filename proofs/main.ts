import { existsSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { faultsOf, loadProof, proofNames, record, recordsFolder } from "./record.js";

const names = process.argv.slice(2).filter((argument) => !argument.startsWith("--"));
const fresh = process.argv.includes("--fresh");
const known = proofNames();
const unknown = names.find((name) => !known.includes(name));

if (unknown !== undefined) {
  console.error(`There is no proofs/${unknown}.ts: run npm run proofs for the list`);
  process.exitCode = 1;
} else if (names.length === 0) {
  console.log("npm run proofs NAME ... [-- --fresh], where NAME is one of");
  for (const name of known) {
    const path = join(recordsFolder, `${name}.json`);
    const proof = await loadProof(name);
    const faults = faultsOf(name, proof, existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : undefined);
    console.log(`  ${name.padEnd(20)} ${faults.length === 0 ? "recorded" : "open    "}  ${proof.claim}`);
  }
}

for (const name of unknown === undefined ? names : []) {
  const proof = await loadProof(name);
  console.log(`${name}: ${proof.claim}`);
  const { path, faults } = await record(name, proof, { fresh });
  console.log(`Written to ${relative(process.cwd(), path)}`);
  for (const fault of faults) console.error(fault);
  if (faults.length > 0) process.exitCode = 1;
}
