/** The one-way order of the folders under src, as a check of the imports of one file. */
import { dirname, join, relative, resolve, sep } from "node:path";
import { repository } from "./paths.js";

export interface Import {
  /** The imported file relative to src, with slashes; a package keeps its name. */
  readonly to: string;
  readonly typeOnly: boolean;
}

export const src = join(repository, "src");
export const slashes = (path: string): string => path.split(sep).join("/");

/** The files of ours that the module at `path` imports, statically or dynamically. */
export function importsOf(path: string, text: string): Import[] {
  const code = text.replace(/\/\*.*?\*\//gs, "").replace(/^\s*\/\/.*$/gm, "");
  const found: Import[] = [];
  const statement = /^\s*(?:import|export)\s+(type\s+)?(?:([^;"']*?)\sfrom\s*)?["']([^"']+)["']/gm;
  for (const [, type, names, specifier] of code.matchAll(statement)) {
    const listed = names
      ?.match(/^\{(.*)\}$/s)?.[1]
      .split(",")
      .map((name) => name.trim())
      .filter(Boolean);
    const typeOnly = type !== undefined || (listed !== undefined && listed.length > 0 && listed.every((name) => name.startsWith("type ")));
    found.push({ to: target(path, specifier), typeOnly });
  }
  for (const [whole, specifier] of code.matchAll(/\bimport\(\s*["']([^"']+)["']\s*\)/g)) {
    const before = code.slice(0, code.indexOf(whole)).slice(-12);
    found.push({ to: target(path, specifier), typeOnly: /typeof\s*$/.test(before) });
  }
  return found;
}

function target(path: string, specifier: string): string {
  return specifier.startsWith(".") ? slashes(relative(src, resolve(dirname(path), specifier))).replace(/\.js$/, ".ts") : specifier;
}

/** A folder may import from itself and from those before it. */
const order = [
  "core",
  "tokenizers",
  "losses",
  "verify",
  "audit",
  "tasks",
  "rollout",
  "methods",
  "engine",
  "export",
  "evaluate",
  "train",
  "compare",
  "reproduce",
  "serve",
  "view",
  "cli",
];
/** Of those before it in the order, the folders that these may not use. */
const barred: { readonly [folder: string]: readonly string[] } = {
  verify: ["losses"],
  audit: ["losses"],
  tasks: ["losses"],
  rollout: ["losses"],
  engine: ["losses", "verify", "tasks", "rollout", "methods"],
  export: ["losses", "verify", "tasks", "rollout", "methods"],
};
/** Of contracts that stand later in the order, types alone may be imported. */
const contracts: { readonly [folder: string]: readonly string[] } = {
  losses: ["engine/contract.ts"],
  verify: ["engine/contract.ts"],
  tasks: ["engine/contract.ts"],
  rollout: ["engine/contract.ts", "methods/contract.ts"],
  methods: ["engine/contract.ts"],
};

/** What is wrong with the imports of one file, in a sentence each. */
export function faultsOf(file: string, imports: readonly Import[]): string[] {
  const folder = file.split("/")[0];
  if (!file.includes("/")) return [];
  if (!order.includes(folder)) return [`${file}: the folder ${folder} has no place in the order of dependencies`];
  const allowed = order.slice(0, order.indexOf(folder)).filter((other) => !barred[folder]?.includes(other));
  return imports
    .filter(({ to }) => /\.ts$/.test(to) && !to.startsWith("node:"))
    .filter(({ to, typeOnly }) => {
      const other = to.split("/")[0];
      if (to.startsWith("..") || other === folder || allowed.includes(other)) return to.startsWith("..");
      return !(typeOnly && contracts[folder]?.includes(to));
    })
    .map(({ to }) => `${file} imports ${to}`);
}
