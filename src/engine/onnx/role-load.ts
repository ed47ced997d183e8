/** Where the weights of a role come from: folders, other roles, random numbers; and the adapter on them, checked before a large base is read. */
import { ArgumentError } from "../../core/errors.js";
import type { AdapterSource, LoadRequest } from "../contract.js";
import { AdapterStore, checkAdapter } from "./adapter.js";
import { type DecoderConfig, parseModelConfig } from "./config.js";
import { loadConfig, loadFolder } from "./folder.js";
import { availableMemory, estimateMemory, refuseUnlessFits } from "./memory.js";
import { ParameterStore } from "./params.js";
import { baseIdentity, folderIdentity, inspectAdapter, readAdapter } from "./peft.js";
import type { Role } from "./roles.js";

/** Weights that were fetched, and the folder that they are from. */
export interface Fetched {
  readonly store: ParameterStore;
  readonly adapter?: AdapterStore;
  readonly base?: string;
}

/** Fetches what a request names. `role` finds a loaded role. Throws what is wrong with it before memory is spent. */
export async function fetchWeights(request: LoadRequest, valueHead: boolean | undefined, role: (name: string) => Role, place: string): Promise<Fetched> {
  const { source, adapter } = request;
  if (adapter?.from === "new") checkAdapter(adapter, place);
  const { config, identity, base, store } = await located(request, valueHead, role, place);
  if (adapter === undefined) {
    const loaded = await store();
    if (source.from === "base" && valueHead === true && !loaded.hasValueHead)
      throw new ArgumentError({ place, cause: "the base that it shares has no value head", mend: "give it an adapter, or load it from a folder" });
    return { store: loaded, ...(base !== undefined && { base }) };
  }
  const inspected = adapter.from === "folder" ? await inspectAdapter(adapter.path, config, { name: base ?? place, identity }) : undefined;
  const loaded = await store();
  const withHead = valueHead ?? (inspected?.hasValueHead || loaded.hasValueHead);
  const made = new AdapterStore(config, inspected ?? (adapter as Extract<AdapterSource, { from: "new" }>), withHead);
  await fill(made, adapter, loaded);
  return { store: loaded, adapter: made, ...(base !== undefined && { base }) };
}

/** A value head begins as that of the base, unless the adapter's folder has one. */
async function fill(made: AdapterStore, source: AdapterSource, base: ParameterStore): Promise<void> {
  if (source.from === "new") made.initialise(source.seed);
  if (made.hasValueHead && base.hasValueHead) for (const name of ["valueWeight", "valueBias"]) made.get(name).data.set(base.get(name).data);
  if (source.from === "folder") await readAdapter(source.path, made);
}

interface Located {
  readonly config: DecoderConfig;
  readonly base?: string;
  readonly identity: () => Promise<string>;
  readonly store: () => Promise<ParameterStore>;
}

async function located({ source, adapter }: LoadRequest, valueHead: boolean | undefined, role: (name: string) => Role, place: string): Promise<Located> {
  if (source.from === "folder") {
    const { path } = source;
    const config = await loadConfig(path);
    const store = (): Promise<ParameterStore> => {
      refuseToLoad(config, path);
      // The head of a role with an adapter belongs to the adapter.
      return loadFolder(path, valueHead === undefined || adapter ? {} : { valueHead });
    };
    return { config, base: path, identity: () => folderIdentity(path, config), store };
  }
  if (source.from === "config") {
    const config = parseModelConfig(source.config, place);
    refuseToLoad(config, place);
    const store = ParameterStore.random(config, source.seed, valueHead ?? false);
    return { config, identity: () => baseIdentity(store), store: async () => store };
  }
  const from = role(source.role);
  const { current, base } = from;
  const config = current.store.config;
  const named = base !== undefined && { base };
  if (source.from === "base") return { config, ...named, identity: () => baseIdentity(current.store), store: async () => current.store };
  const copy = new ParameterStore(config, valueHead ?? from.info.hasValueHead);
  for (const { name } of copy.tensors) {
    const arrays = current.adapter?.has(name) ? current.adapter : current.store;
    if (arrays.has(name)) copy.view(name).set(arrays.view(name));
    current.adapter?.addTo(name, copy.view(name));
  }
  return { config, ...named, identity: () => baseIdentity(copy), store: async () => copy };
}

function refuseToLoad(config: DecoderConfig, place: string): void {
  refuseUnlessFits(estimateMemory(config, { kind: "load" }), availableMemory(), `loading ${place}`);
}
