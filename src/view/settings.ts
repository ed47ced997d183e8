/** The few settings of a run that its overview tells; all of them stand in its configuration. */
import { isAbsolute } from "node:path";
import { methodName } from "../compare/run.js";
import type { Json } from "../core/json.js";

type Data = { readonly [name: string]: Json };

/** What a run was started with, by name, as the overview tells it. */
export function settingsOf(config: Data): [string, string][] {
  const text = (value: Json | undefined): string => (typeof value === "string" ? value : JSON.stringify(value ?? null));
  const rows: [string, Json | undefined][] = [
    ["method", methodName(config)],
    ["policy", shortened(config.model)],
    ["problems", problemsOf(config)],
    ["batch", `${text(config.problems)} problems × ${text(config.group)} answers`],
    ["learning rate", config.lr],
    ["seed", config.seed],
  ];
  return rows.filter(([, value]) => value !== undefined).map(([name, value]) => [name, text(value)]);
}

/** A task by its name, with its options where it has some; else the file or folder of rows. */
function problemsOf({ task, data }: Data): Json | undefined {
  if (task === undefined) return shortened((data as Data | undefined)?.path);
  if (task === null || typeof task !== "object" || Array.isArray(task)) return shortened(task);
  const { name, options } = task as Data;
  const given = options !== null && typeof options === "object" && Object.keys(options).length > 0;
  return typeof name === "string" ? `${String(shortened(name))}${given ? ` ${JSON.stringify(options)}` : ""}` : task;
}

/** The end of a long path: the whole of it stands in the configuration. */
function shortened(path: Json | undefined): Json | undefined {
  if (typeof path !== "string") return path;
  const parts = path.split(/[\\/]/);
  return isAbsolute(path) && parts.length > 3 ? `…/${parts.slice(-2).join("/")}` : path;
}
