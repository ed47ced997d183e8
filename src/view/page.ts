/** The files of the page, as the build left them: a program, a style sheet, and the document that names both. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { RunError } from "../core/errors.js";

export interface Page {
  readonly script: string;
  readonly style: string;
  readonly document: string;
}

/** Where the build puts them: beside this module when compiled, else where the last build of this clone did. */
const folders = ["./page/", "../../dist/view/page/"];

/** Reads them. Throws RunError where there was no build. */
export function readPage(folder?: string): Page {
  const places = folder === undefined ? folders.map((name) => fileURLToPath(new URL(name, import.meta.url))) : [`${folder}/`];
  for (const place of places) {
    try {
      const text = (name: string): string => readFileSync(`${place}${name}`, "utf8");
      return { script: text("app.js"), style: text("app.css"), document: text("index.html") };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
  }
  throw new RunError({ place: "touchstone view", cause: "its page is not built", mend: "run npm run build in the clone" });
}
