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
    ["policy", typeof config.model === "string" ? shortened(config.model) : config.model],
    ["problems", problemsOf(config)],
    ["verifier", namedOf(config.verifier, false)],
    ["adapter", rankOf(config.lora)],
    ["batch", `${counted(config.problems, "problem")} × ${counted(config.group, "answer")}`],
    ["learning rate", config.lr],
    ["seed", config.seed],
  ];
  return rows.filter(([, value]) => value !== undefined).map(([name, value]) => [name, text(value)]);
}

/** A task by its name, with its options where it has some; else the file or folder of rows, or several. `whole`: paths in full. */
export function problemsOf({ task, data }: Data, whole = false): string | undefined {
  if (task !== undefined) return namedOf(task, whole);
  const { file, sources } = (data ?? {}) as { readonly file?: Json; readonly sources?: Json };
  if (!Array.isArray(sources)) return typeof file === "string" ? shortened(file, whole) : undefined;
  return sources.map((source) => shortened(String((source as Data | null)?.file), whole)).join(", ");
}

/** What has a name, or is one, and its options where it has some. */
function namedOf(part: Json | undefined, whole: boolean): string | undefined {
  if (part === undefined || part === null) return undefined;
  if (typeof part === "string") return shortened(part, whole);
  const { name, options } = part as Data;
  if (typeof name !== "string") return JSON.stringify(part);
  const given = options !== null && typeof options === "object" && Object.keys(options).length > 0;
  return `${shortened(name, whole)}${given ? ` ${JSON.stringify(options)}` : ""}`;
}

function rankOf(lora: Json | undefined): string | undefined {
  const rank = (lora as Data | undefined | null)?.rank;
  return typeof rank === "number" ? `rank ${rank}` : undefined;
}

const counted = (count: Json | undefined, one: string): string => `${String(count ?? "?")} ${one}${count === 1 ? "" : "s"}`;

/** The end of a long path: the whole of it stands in the configuration. */
function shortened(path: string, whole = false): string {
  if (whole) return path;
  const parts = path.split(/[\\/]/);
  return isAbsolute(path) && parts.length > 3 ? `…/${parts.slice(-2).join("/")}` : path;
}
