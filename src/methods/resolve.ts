/**
 * Composition. A slot with one answer runs what the user set, else its owner, else the right-most preference, else GRPO's.
 * Answers that say how (`around`) are laid around an owner's.
 * Stages of a slot all run, coarse level first, then in the order of composition (C18).
 */
import { ConfigError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import {
  levels,
  type Method,
  type One,
  type OneSlot,
  type OneSlots,
  type Settings,
  type Slot,
  type Stage,
  type StageSlot,
  type StageSlots,
} from "./contract.js";

export const oneSlots = ["select", "allocate", "expand", "reward", "credit", "loss", "aggregate", "parametrisation", "optimizer"] as const satisfies OneSlot[];
export const stageSlots = ["setup", "prepare", "enrich", "adjust", "shape", "keep", "bounds", "terms", "observe"] as const satisfies StageSlot[];

/** The seam of each slot, in the order in which a step meets them. */
export const seams = {
  setup: ["setup"],
  select: ["select"],
  rollout: ["prepare", "allocate", "expand", "enrich"],
  reward: ["reward", "adjust"],
  credit: ["credit", "shape"],
  loss: ["keep", "bounds", "loss", "aggregate"],
  terms: ["terms"],
  optimizer: ["parametrisation", "optimizer"],
  observe: ["observe"],
} as const satisfies { [seam: string]: readonly Slot[] };

/** How a slot with one answer came by it. */
export type How = "sets" | "owns" | "prefers" | "default";

export interface Answer<F> {
  readonly value: F;
  readonly from: string;
  readonly how: How;
  /** Methods whose preference or ownership gave way. */
  readonly over: readonly string[];
  readonly about?: string;
  readonly check?: One<F>["check"];
}

export type Placed<F> = Stage<F> & { readonly from: string };

/** A composition with every slot answered. */
export interface Resolved {
  readonly name: string;
  readonly methods: readonly Method[];
  readonly one: { readonly [K in OneSlot]: Answer<OneSlots[K]> };
  readonly stages: { readonly [K in StageSlot]: readonly Placed<StageSlots[K]>[] };
}

/** One line of the resolved table. */
export interface TableRow {
  readonly seam: string;
  readonly slot: Slot;
  readonly from: string;
  /** `sets`, `owns`, `prefers`, `default`, or `stage`. */
  readonly how: How | "stage";
  readonly over: readonly string[];
  readonly about: string;
}

/** Several methods as one; a single method stays what it is. Throws a ConfigError that names both sides of a conflict. */
export function compose(...methods: readonly Method[]): Method {
  const parts = methods.flatMap((method) => method.parts ?? [method]);
  const first = parts[0];
  if (first === undefined) throw new ConfigError({ place: "method", cause: "none was given", mend: "name at least one, such as grpo" });
  checkConflicts(parts);
  if (methods.length === 1) return methods[0] as Method;
  return { name: parts.map((m) => m.name).join("+"), slots: {}, parts };
}

/** Answers every slot of a method or composition; `fallback` (GRPO) answers the slots that nobody fills. */
export function resolve(method: Method, fallback: Method): Resolved {
  const methods = (method.parts ?? [method]).flatMap((m) => m.parts ?? [m]);
  checkConflicts(methods);
  const one = Object.fromEntries(oneSlots.map((slot) => [slot, answer(slot, methods, fallback)]));
  const stages = Object.fromEntries(stageSlots.map((slot) => [slot, stagesOf(slot, methods)]));
  const resolved = { name: method.name, methods, one, stages } as unknown as Resolved;
  const { expand, allocate } = resolved.one;
  if (!expand.value.appendable && allocate.value.appends) {
    throw conflict(expand.from, allocate.from, `groups of ${expand.from} cannot be appended to, and ${allocate.from} allocates in rounds that append`);
  }
  return resolved;
}

function answer<K extends OneSlot>(slot: K, methods: readonly Method[], fallback: Method): Answer<OneSlots[K]> {
  const silenced = new Set(methods.filter((m) => methods.some((other) => other !== m && other.forbids?.includes(slot))));
  const given = methods.flatMap((m) => {
    const one = m.slots[slot] as One<OneSlots[K]> | undefined;
    return one === undefined || (silenced.has(m) && howOf(one) === "prefers") ? [] : [{ from: m.name, how: howOf(one), one }];
  });
  const owned = given.some(({ how, one }) => how === "owns" && one.around === undefined);
  const layers = owned ? given.filter(({ one }) => one.around !== undefined) : [];
  const rivals = given.filter((g) => !layers.includes(g));
  for (const how of ["sets", "owns", "prefers"] as const) {
    const winner = rivals.filter((g) => g.how === how).at(-1);
    if (!winner) continue;
    const over = rivals.filter((g) => g !== winner).map((g) => g.from);
    const value = layers.reduce((inner, { one }) => one.around?.(inner) ?? inner, choiceOf(winner.one));
    return { value, from: winner.from, how, over, ...saidOf(winner.one, layers) };
  }
  const one = fallback.slots[slot] as One<OneSlots[K]> | undefined;
  if (one === undefined)
    throw new ConfigError({
      place: `slot ${slot}`,
      cause: `neither ${methods.map((m) => m.name).join("+")} nor ${fallback.name} fills it`,
      mend: "compose with a method that does",
    });
  return { value: choiceOf(one), from: fallback.name, how: "default", over: [], ...saidOf(one) };
}

function howOf(one: One<unknown>): "sets" | "owns" | "prefers" {
  return "sets" in one ? "sets" : "owns" in one ? "owns" : "prefers";
}

function choiceOf<F>(one: One<F>): F {
  return "sets" in one ? one.sets : "owns" in one ? one.owns : one.prefers;
}

/** `layers`: answers that are laid around this one, the innermost first. */
function saidOf<F>({ about, check }: One<F>, layers: readonly { readonly from: string; readonly one: One<F> }[] = []): Pick<One<F>, "about" | "check"> {
  const said = [...(about === undefined ? [] : [about]), ...layers.map(({ from, one }) => `within that of ${from}${one.about ? ` (${one.about})` : ""}`)];
  return { ...(said.length === 0 ? {} : { about: said.join("; ") }), ...(check === undefined ? {} : { check }) };
}

function stagesOf<K extends StageSlot>(slot: K, methods: readonly Method[]): Placed<StageSlots[K]>[] {
  const placed = methods.flatMap((m) => listOf(m, slot).map((stage) => ({ ...stage, from: m.name })));
  const rank = (stage: Stage<unknown>) => levels.indexOf(stage.level ?? "group");
  return placed.sort((a, b) => rank(a) - rank(b)); // a stable sort keeps the order of composition
}

function listOf<K extends StageSlot>(method: Method, slot: K): readonly Stage<StageSlots[K]>[] {
  const stages = method.slots[slot] as Stage<StageSlots[K]> | readonly Stage<StageSlots[K]>[] | undefined;
  return stages === undefined ? [] : Array.isArray(stages) ? stages : [stages as Stage<StageSlots[K]>];
}

/** Whether the run is to hide references and privileged data from its methods, and to ask for no verdict (C17). */
export function withholdsReferences({ methods }: Pick<Resolved, "methods">): boolean {
  return methods.some(({ references }) => references === "withheld");
}

/** Asks every method, and every answer that runs, whether it can work under these settings; throws what the first says that cannot. */
export function checkSettings(resolved: Resolved, settings: Settings): void {
  for (const method of resolved.methods) method.check?.(settings);
  for (const slot of oneSlots) resolved.one[slot].check?.(settings);
}

function conflict(a: string, b: string, cause: string): ConfigError {
  return new ConfigError({ place: `method ${a}+${b}`, cause, mend: "leave one of the two out", data: { methods: [a, b] } });
}

function checkConflicts(methods: readonly Method[]): void {
  methods.forEach((method, i) => {
    const twin = methods.slice(0, i).find((m) => m.name === method.name);
    if (twin) throw conflict(twin.name, method.name, `${method.name} is named twice`);
  });
  for (const slot of oneSlots) {
    for (const how of ["sets", "owns"] as const) {
      const owners = methods.filter((m) => m.slots[slot] !== undefined && howOf(m.slots[slot] as One<unknown>) === how);
      if (owners.length > 1) throw conflict((owners[0] as Method).name, (owners[1] as Method).name, `both ${how === "owns" ? "own" : "set"} the slot ${slot}`);
    }
  }
  for (const method of methods) {
    for (const slot of method.forbids ?? []) {
      const user = methods.find((m) => {
        if (m === method) return false;
        const filled = m.slots[slot];
        if (filled === undefined) return false;
        return (oneSlots as readonly string[]).includes(slot) ? howOf(filled as One<unknown>) !== "prefers" : listOf(m, slot as StageSlot).length > 0;
      });
      if (user) throw conflict(method.name, user.name, `${method.name} forbids the slot ${slot}, which ${user.name} fills`);
    }
    for (const note of method.reads ?? []) {
      if (note.fallback !== undefined || methods.some((m) => m.writes?.some((w) => w.id === note.id))) continue;
      throw new ConfigError({
        place: `method ${method.name}`,
        cause: `it reads the note "${note.id}", which no method of ${methods.map((m) => m.name).join("+")} writes`,
        mend: "compose it with a method that writes the note",
        data: { method: method.name, note: note.id },
      });
    }
  }
  const blind = methods.find((m) => m.references === "withheld");
  const reader = methods.find((m) => m.references === "needed" || m.references === "judged" || m.signal === "reward-variance");
  if (blind && reader) {
    throw conflict(
      blind.name,
      reader.name,
      `${blind.name} withholds references, and ${reader.name} ${reader.signal === "reward-variance" ? "drops groups by their verdicts" : reader.references === "judged" ? "goes by verdicts" : "reads them"}`,
    );
  }
  const filter = methods.find((m) => m.signal === "reward-variance");
  const beyond = methods.find((m) => m.signal === "beyond");
  if (filter && beyond) throw conflict(filter.name, beyond.name, `${filter.name} drops groups whose rewards are equal, and ${beyond.name} learns from them`);
}

/** The resolved table as data, in the order of the seams: what a run stores and the view shows. */
export function tableOf(resolved: Resolved): TableRow[] {
  return Object.entries(seams).flatMap(([seam, slots]) =>
    slots.flatMap((slot): TableRow[] => {
      if ((oneSlots as readonly string[]).includes(slot)) {
        const { from, how, over, about = "" } = resolved.one[slot as OneSlot];
        return [{ seam, slot, from, how, over, about }];
      }
      return resolved.stages[slot as StageSlot].map(({ from, level, about }) => ({
        seam,
        slot,
        from,
        how: "stage" as const,
        over: [],
        about: [level ? `${level} level` : "", about ?? ""].filter(Boolean).join(": "),
      }));
    }),
  );
}

/** Whose answers stand over whose, a phrase for each pair, such as "loss and aggregate of hispo, over gspo". */
export function overruled(resolved: Resolved): string[] {
  const slots = new Map<string, string[]>();
  for (const { slot, from, over } of tableOf(resolved)) {
    if (over.length === 0) continue;
    const whose = ` of ${from}, over ${over.join(" and ")}`;
    slots.set(whose, [...(slots.get(whose) ?? []), slot]);
  }
  return [...slots].map(([whose, names]) => names.join(" and ") + whose);
}

/** The resolved table as text, one line a slot or stage. */
export function tableText(resolved: Resolved): string {
  return tableLines(tableOf(resolved)).join("\n");
}

/** A table as lines: the slot, who answers it and over whom, and how. */
export function tableLines(table: readonly TableRow[]): string[] {
  const rows = table.map(({ seam, slot, from, how, over, about }) => {
    const who = how === "default" ? `${from} (default)` : how === "stage" ? from : `${from} (${how})`;
    return [seam === slot ? slot : `${seam}.${slot}`, over.length ? `${who}, over ${over.join(", ")}` : who, about];
  });
  const widths = [0, 1].map((c) => Math.max(...rows.map((row) => (row[c] as string).length)));
  return rows.map((row) => `${(row[0] as string).padEnd(widths[0] as number)}  ${(row[1] as string).padEnd(widths[1] as number)}  ${row[2]}`.trimEnd());
}

/** The resolved table as JSON. */
export function tableJson(resolved: Resolved): Json {
  return tableOf(resolved).map((row) => ({ ...row, over: [...row.over] }));
}
