/** Where an error of a user's module comes from. */
import { fileURLToPath } from "node:url";

/** The folder of our own modules: sources, or what is compiled from them. */
const own = fileURLToPath(new URL("..", import.meta.url));

/** `FILE:LINE` of the innermost frame that is neither of Node nor of a package; undefined where that one is ours, or there is none. */
export function userFrame(error: unknown): string | undefined {
  const stack = error instanceof Error && typeof error.stack === "string" ? error.stack : "";
  for (const line of stack.split("\n")) {
    const [, place, row] = /^\s+at (?:.*\()?((?:file:\/\/)?[^()]*?):(\d+):\d+\)?$/.exec(line) ?? [];
    if (place === undefined || place.startsWith("node:")) continue;
    const file = place.startsWith("file://") ? fileURLToPath(place.replace(/\?.*$/, "")) : place;
    if (file.startsWith(own)) return undefined;
    if (!/[\\/]node_modules[\\/]/.test(file)) return `${file}:${row}`;
  }
  return undefined;
}
