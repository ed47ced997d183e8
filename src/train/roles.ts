/**
 * The roles of a run: what its methods ask for and what its configuration names, put together before anything starts;
 * then loaded, moved along, saved and restored. A role that learns or follows another is in every checkpoint; one that
 * stays as it is is found where it was, and its hash is in the run's fingerprint.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { ConfigError, ModelError } from "../core/errors.js";
import type { AdapterSource, Engine, LoadRequest, ModelInfo, ParameterSet } from "../engine/contract.js";
import type { Method, RoleWish } from "../methods/contract.js";
import type { TrainConfig } from "./config.js";
import type { FoundModel } from "./find-model.js";
import { hashModel } from "./model-files.js";
import type { RoleOptions } from "./role-options.js";
import { adapterSource, type LoraForm, sharedBase } from "./starts.js";

export interface RolePlan {
  readonly name: string;
  /** Folder that its weights start from. */
  readonly path: string;
  /** On those weights. */
  readonly adapter?: AdapterSource;
  /** They are those that the policy's adapter lies on, of which there is one copy. */
  readonly shared?: true;
  readonly trainable: boolean;
  readonly valueHead: boolean;
  readonly average?: RoleOptions["average"];
  readonly lr?: number;
}

export interface RolesPlan {
  /** Without the policy, in the order of their names. */
  readonly others: readonly RolePlan[];
  readonly policyValueHead: boolean;
}

/** A copy of the policy would teach it nothing, and tell it no more than its own answers do. */
const mustBeNamed = ["teacher", "anchor"];

/** What a composition asks of roles; what several parts ask of one adds up. */
function wishes(composed: Method): Map<string, RoleWish> {
  const found = new Map<string, RoleWish>();
  for (const part of composed.parts ?? [composed]) {
    const needed = (part.needs ?? []).flatMap(({ oneOf }) => oneOf.flatMap(({ roles = [] }) => roles.map((name): RoleWish => ({ name }))));
    for (const wish of [...needed, ...(part.roles ?? [])]) {
      const seen = found.get(wish.name);
      const average = wish.average ?? seen?.average;
      found.set(wish.name, {
        name: wish.name,
        trainable: wish.trainable === true || seen?.trainable === true,
        valueHead: wish.valueHead === true || seen?.valueHead === true,
        ...(average && { average }),
      });
    }
  }
  return found;
}

/** Adapter and base of a role in a run whose policy has an adapter: what the policy begins with, and an adapter of its own where it changes. */
function sharing({
  lora,
  seed,
  changing,
}: {
  readonly lora: LoraForm;
  readonly seed: number;
  readonly changing: boolean;
}): Pick<RolePlan, "adapter" | "shared"> {
  return { shared: true, ...((changing || lora.from !== undefined) && { adapter: adapterSource(lora, seed) }) };
}

/** The roles of a run; `lora`: the policy's adapter; `found`: the models that roles name. Throws ConfigError for a role that nothing reads, one that follows nobody, and rates of roles that do not learn. */
export function planRoles(
  { roles, model, seed }: Pick<TrainConfig, "roles" | "model" | "seed">,
  composed: Method,
  lora?: LoraForm,
  found: ReadonlyMap<string, FoundModel> = new Map(),
): RolesPlan {
  const wished = wishes(composed);
  const others: RolePlan[] = [];
  for (const [name, options] of Object.entries(roles)) {
    const place = `roles.${name}`;
    if (name === "policy") throw new ConfigError({ place, cause: "the policy is no further role", mend: "set model, lr and optimizer of the run itself" });
    if (!wished.has(name)) {
      const known = [...wished.keys()].filter((known) => known !== "policy");
      const mend = known.length > 0 ? `leave it out, or name one of ${known.join(", ")}` : "leave it out, or turn on what reads it (a KL: kl_coef)";
      throw new ConfigError({ place, cause: `no part of ${composed.name} reads it`, mend });
    }
    const { average, lr } = options;
    const learns = wished.get(name)?.trainable === true;
    if (lr !== undefined && !learns) throw new ConfigError({ place: `${place}.lr`, cause: "nothing trains this role", mend: "leave it out" });
    if (average !== undefined && learns) {
      throw new ConfigError({ place: `${place}.average`, cause: `${composed.name} trains this role`, mend: "leave the average out" });
    }
    if (average !== undefined && (average.of === name || !(average.of === "policy" || wished.has(average.of)))) {
      throw new ConfigError({ place: `${place}.average.of`, cause: `there is no other role ${average.of}`, mend: "name the policy or another role" });
    }
  }
  for (const { name, trainable = false, valueHead = false, average: own } of wished.values()) {
    const options = roles[name];
    if (name === "policy" || (options === undefined && mustBeNamed.includes(name))) continue;
    const { average = own, lr } = options ?? {};
    const named = found.get(name);
    const changing = trainable || average !== undefined;
    const weights =
      named === undefined
        ? { path: options?.model ?? model, ...(lora && sharing({ lora, seed, changing })) }
        : { path: named.folder, ...(named.adapter !== undefined && { adapter: { from: "folder", path: named.adapter } as const }) };
    others.push({ name, ...weights, trainable, valueHead, ...(average && { average }), ...(lr !== undefined && { lr }) });
  }
  others.sort((a, b) => (a.name < b.name ? -1 : 1));
  return { others, policyValueHead: wished.get("policy")?.valueHead === true };
}

/** The peak learning rate of a parameter set. */
export function rateOf(plan: RolesPlan, set: ParameterSet, policyRate: number): number {
  return plan.others.find(({ name }) => set === `role:${name}`)?.lr ?? policyRate;
}

/** What loads a role, once the policy is there. */
const roleRequest = ({ name, path, adapter, shared, trainable, valueHead }: RolePlan): LoadRequest => ({
  role: name,
  source: shared ? sharedBase : { from: "folder", path },
  trainable,
  ...(adapter && { adapter }),
  ...(valueHead ? { valueHead } : {}),
});

/** Loads all roles beside the policy. Throws ConfigError where a vocabulary is not the policy's. */
export async function loadRoles(engine: Engine, { others }: RolesPlan, policy: ModelInfo, onRole: (name: string) => void): Promise<void> {
  for (const role of others) {
    const { name, path, average } = role;
    onRole(name);
    const info = await engine.weights.load(roleRequest(role));
    if (average !== undefined && info.adapter !== undefined && (await engine.weights.info(average.of)).adapter === undefined) {
      throw new ConfigError({
        place: `roles.${name}.average.of`,
        cause: `${average.of} is whole weights, and ${name} an adapter`,
        mend: "follow a role with an adapter",
      });
    }
    if (info.vocabulary !== policy.vocabulary) {
      throw new ConfigError({
        place: `roles.${name}`,
        cause: `${path} has a vocabulary of ${info.vocabulary} and the policy one of ${policy.vocabulary}`,
        mend: "give a model of the same tokenizer",
      });
    }
  }
}

/** Hashes of the folders of roles that stay as they are: they decide bytes. Those that change are in every checkpoint. */
export async function hashesOf({ others }: RolesPlan): Promise<{ readonly [role: string]: string }> {
  const hashes: { [role: string]: string } = {};
  for (const { name, path, adapter } of others.filter((role) => !changes(role)))
    hashes[name] = await hashModel({ folder: path, ...(adapter?.from === "folder" && { adapter: adapter.path }) });
  return hashes;
}

const changes = ({ trainable, average }: RolePlan): boolean => trainable || average !== undefined;

/** Roles whose weights a run changes, beside the policy. */
export const changingRoles = ({ others }: RolesPlan): ReadonlySet<string> => new Set(others.filter(changes).map(({ name }) => name));

/** The roles of a run that goes on: those that change are in the folder of its checkpoint, the others must be where they were. */
export function rolesFrom({ others, ...rest }: RolesPlan, folder: string): RolesPlan {
  const found = others.map((role) => {
    if (changes(role)) return restored(role, folder);
    const gone = [role.path, ...(role.adapter?.from === "folder" ? [role.adapter.path] : [])].find((path) => !existsSync(path));
    if (gone === undefined) return role;
    throw new ModelError({
      place: `role ${role.name}`,
      cause: `there is no folder ${gone} any more, and a checkpoint does not hold what stays as it is`,
      mend: "put the folder back",
    });
  });
  return { ...rest, others: found };
}

/** The role as a checkpoint has it. */
const restored = (role: RolePlan, folder: string): RolePlan =>
  role.adapter ? { ...role, adapter: { from: "folder", path: join(folder, role.name) } } : { ...role, path: join(folder, role.name) };

/** Moves the averages along after a step, in the order of their names. */
export async function followRoles(engine: Engine, { others }: RolesPlan, step: number): Promise<void> {
  for (const { name, average } of others) {
    if (average === undefined || step % average.every !== 0) continue;
    const { of, decay } = average;
    const [own, other] = await Promise.all([engine.weights.info(name), engine.weights.info(of)]);
    const learning = ({ adapter, tensors }: ModelInfo): readonly string[] => (adapter?.tensors ?? tensors).map((tensor) => tensor.name);
    const has = new Set(own.adapter ? learning(other) : other.tensors.map((tensor) => tensor.name));
    const names = learning(own).filter((tensor) => has.has(tensor));
    const [mine, theirs] = await Promise.all([engine.weights.read({ role: name }, names), engine.weights.read({ role: of }, names)]);
    await engine.weights.write(
      name,
      mine.map((tensor, i) => ({ ...tensor, data: tensor.data.map((x, j) => decay * x + (1 - decay) * theirs[i].data[j]) })),
    );
  }
}

/** Writes the roles that change, and the optimizers of those that learn, into the folder of a checkpoint; undefined where there are none. */
export function saverOf(engine: Engine, { others }: RolesPlan): ((folder: string) => Promise<void>) | undefined {
  const changing = others.filter(changes);
  if (changing.length === 0) return undefined;
  return async (folder) => {
    for (const { name, trainable } of changing) {
      await engine.weights.save({ role: name }, join(folder, name));
      if (trainable) await engine.weights.saveOptimizer(`role:${name}`, join(folder, `${name}.optimizer.safetensors`));
    }
  };
}

/** Puts back what `saverOf` wrote. */
export async function restoreRoles(engine: Engine, { others }: RolesPlan, folder: string): Promise<void> {
  for (const role of others.filter(changes)) {
    const { name, trainable } = role;
    await engine.weights.load(roleRequest(restored(role, folder)));
    if (trainable) await engine.weights.loadOptimizer(`role:${name}`, join(folder, `${name}.optimizer.safetensors`));
  }
}
