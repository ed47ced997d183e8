// `npm run proofs NAME [-- --fresh]`: runs proofs/NAME.ts and writes docs/proofs/NAME.json; without a name lists what there is.
import { node, ready } from "./ready.mjs";

ready();
process.exitCode = node(["--import", "tsx", "proofs/main.ts", ...process.argv.slice(2)]);
