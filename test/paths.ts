import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The repository, absolute. */
export const repository = fileURLToPath(new URL("..", import.meta.url)).replace(/[\\/]$/, "");

/** A path under test/fixtures, absolute. */
export function fixture(...parts: string[]): string {
  return join(repository, "test", "fixtures", ...parts);
}
