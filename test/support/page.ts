/** Builds the page of `touchstone view` where the view of this clone reads it. */
import { spawnSync } from "node:child_process";
import { repository } from "../paths.js";

export function buildPage(): void {
  const { status, stderr } = spawnSync(process.execPath, ["scripts/page.mjs"], { cwd: repository, encoding: "utf8" });
  if (status !== 0) throw new Error(`The page does not build: ${stderr}`);
}
