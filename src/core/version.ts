import { readFileSync } from "node:fs";

/** The version in our package.json, which lies two folders above the sources and above what is compiled. */
export function packageVersion(): string {
  return (JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as { version: string }).version;
}
