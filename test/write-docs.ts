/** Writes docs/methods.md, docs/reproductions.md, recipes/README.md, and the table of options in docs/configuration.md. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { recipesFolder, recipesPage } from "../proofs/lib/recipes.js";
import { optionsTable } from "../src/core/option-table.js";
import { builtInMethods } from "../src/methods/catalogue.js";
import { methodsPage } from "../src/methods/doc.js";
import { demonstrations } from "../src/reproduce/find.js";
import { reproductionsPage } from "../src/reproduce/page.js";
import { records } from "../src/reproduce/record.js";
import { trainConfig } from "../src/train/config.js";
import { repository } from "./paths.js";

const page = (name: string): string => join(repository, "docs", name);

writeFileSync(page("methods.md"), methodsPage(await builtInMethods()));
writeFileSync(join(recipesFolder, "README.md"), recipesPage());
writeFileSync(page("reproductions.md"), reproductionsPage(records(), await demonstrations()));

const configuration = readFileSync(page("configuration.md"), "utf8");
const table = /^\| option \|.*\n(\|.*\n?)+/m;
if (!table.test(configuration)) throw new Error("docs/configuration.md has no table of options: write its line `| option | …` where it belongs");
writeFileSync(
  page("configuration.md"),
  configuration.replace(table, () => `${optionsTable(trainConfig)}\n`),
);
