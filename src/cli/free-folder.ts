import { existsSync } from "node:fs";

/** The first of `name`, `name-2`, `name-3` … that is not there. */
export function freeFolder(name: string): string {
  for (let n = 1; ; n++) {
    const folder = n === 1 ? name : `${name}-${n}`;
    if (!existsSync(folder)) return folder;
  }
}
