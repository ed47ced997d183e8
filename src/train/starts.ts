/**
 * What the policy and the roles that begin as it does are loaded from. With an adapter there is one copy of the base: the
 * policy's, which those roles share, so that a reference is the policy with its adapter off (or the adapter that it began with).
 */

import { ConfigError } from "../core/errors.js";
import type { AdapterOptions, AdapterSource, LoadRequest, ModelSource } from "../engine/contract.js";
import { checkAdapter, linearTargets, peftName } from "../engine/onnx/adapter.js";
import { loadConfig } from "../engine/onnx/folder.js";
import { folderIdentity, inspectAdapter } from "../engine/onnx/peft.js";
import type { TrainConfig } from "./config.js";
import { isElsewhere } from "./engines.js";
import type { FoundModel } from "./find-model.js";

/** A folder of weights, and the adapter that learns in their place where there is one. */
export interface Start {
  readonly folder: string;
  readonly adapter?: AdapterSource;
}

/** The adapter of a run with nothing left open, and the PEFT folder that it goes on from. */
export interface LoraForm extends AdapterOptions {
  readonly targets: string[];
  readonly from?: string;
}

/** Of an adapter on a server, which decides all else. */
export interface ServerLora {
  readonly rank?: number | undefined;
}

/** Whether an adapter lies on weights that are here. */
export const isLoraForm = (lora: LoraForm | ServerLora | undefined): lora is LoraForm => lora !== undefined && "targets" in lora;

const defaults = { rank: 16, targets: "all-linear" } as const;

/**
 * The adapter that a configuration asks for: of `lora`, or of a model that is one, which goes on to learn. Checked against
 * its base by headers. Throws ConfigError for numbers that are not those of the adapter, and where the engine has none.
 */
export async function loraOf(
  { lora, engine }: Pick<TrainConfig, "lora"> & { readonly engine: Pick<TrainConfig["engine"], "name"> },
  { folder, adapter }: FoundModel,
): Promise<LoraForm | undefined> {
  const from = adapter ?? lora?.from;
  if (lora === undefined && from === undefined) return undefined;
  if (isElsewhere(engine)) {
    const other = adapter !== undefined || lora?.from !== undefined ? "from" : (["alpha", "targets"] as const).find((name) => lora?.[name] !== undefined);
    if (other === undefined) return undefined;
    throw new ConfigError({
      place: `lora.${other}`,
      cause: `adapters of the engine ${engine.name} are the server's, which takes their rank alone`,
      mend: other === "from" ? "give a checkpoint of a run on a server as the model" : "leave it out",
    });
  }
  if (engine.name !== "onnx") throw new ConfigError({ place: "lora", cause: `the engine ${engine.name} has no adapters`, mend: "leave it out" });
  if (from === undefined) {
    const { rank = defaults.rank, alpha = 2 * rank, targets = defaults.targets } = lora ?? {};
    checkAdapter({ rank, alpha, targets }, "lora");
    const { width } = await loadConfig(folder);
    if (rank > width) {
      const cause = `it is ${rank}, above the model's width of ${width}, so that the adapter would have more numbers than the weights that it lies on`;
      throw new ConfigError({ place: "lora.rank", cause, mend: "give a lower one (8 to 64 is usual), or leave lora out and train all weights" });
    }
    return { rank, alpha, targets: linearTargets(targets, "lora").map(peftName) };
  }
  const config = await loadConfig(folder);
  const { rank, alpha, targets } = await inspectAdapter(from, config, { name: folder, identity: () => folderIdentity(folder, config) });
  const own = { rank, alpha, targets: linearTargets(targets, "lora").map(peftName) };
  const asked = { ...lora, ...(lora?.targets && { targets: linearTargets(lora.targets, "lora").map(peftName) }) };
  const other = (["rank", "alpha", "targets"] as const).find((name) => asked[name] !== undefined && String(asked[name]) !== String(own[name]));
  if (other === undefined) return { ...own, from };
  throw new ConfigError({
    place: `lora.${other}`,
    cause: `it is ${String(asked[other])}, and the adapter ${from} that goes on to learn has ${String(own[other])}`,
    mend: "leave it out, or merge that adapter first (touchstone export MODEL --to folder) and begin another on it",
  });
}

/** What an adapter begins with: new by the run's seed, or as the folder has it. */
export const adapterSource = ({ from, ...options }: LoraForm, seed: number): AdapterSource =>
  from === undefined ? { from: "new", seed, ...options } : { from: "folder", path: from };

/** Where the weights of a role with an adapter come from once the policy is there: the policy's base, not another copy. */
export const sharedBase: ModelSource = { from: "base", role: "policy" };

/** Loads the policy; `again`: in place of one that is there. */
export function policyRequest({ folder, adapter }: Start, valueHead: boolean, again = false): LoadRequest {
  return {
    role: "policy",
    source: again && adapter !== undefined ? sharedBase : { from: "folder", path: folder },
    trainable: true,
    ...(adapter && { adapter }),
    ...(valueHead && { valueHead }),
  };
}
