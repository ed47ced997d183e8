/** The process of one part: takes its specification as an argument, answers over the channel to its parent, and ends with it. */
import { errorToJson } from "../core/errors.js";
import { loadDemonstration } from "./find.js";
import { type PartSpec, runPart } from "./part.js";

process.once("disconnect", () => process.exit(1));

const spec = JSON.parse(process.argv[2] as string) as PartSpec;
try {
  const { demonstration } = await loadDemonstration(spec.file);
  const part = await runPart(demonstration, spec);
  process.send?.({ part }, () => process.exit(0));
} catch (error) {
  console.error(error);
  process.send?.({ error: errorToJson(error) }, () => process.exit(1));
}
