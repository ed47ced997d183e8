// `npm run docs`: writes the pages, or parts of pages, that are made from the code. Tests fail where they are out of date.
import { node, ready } from "./ready.mjs";

ready();
process.exitCode = node(["--import", "tsx", "test/write-docs.ts"]);
