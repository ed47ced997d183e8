/** The commands of `touchstone`: one line here and one file each, loaded only when it is asked for. */
import type { Command } from "commander";

export interface CommandEntry {
  readonly name: string;
  readonly summary: string;
  /** `define` adds options, help and action to the command. */
  readonly load: () => Promise<{ readonly define: (command: Command) => void }>;
}

export const commands: readonly CommandEntry[] = [
  { name: "engine", summary: "serve an engine to other processes or machines", load: () => import("./engine.js") },
];
