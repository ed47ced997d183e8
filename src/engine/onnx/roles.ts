/**
 * The models that an onnx engine holds. Weights that a snapshot, a copy, a running sample or a kept forward pass refers to
 * are never changed: a step or a write copies them first. Otherwise a step changes them in place, which a large model needs.
 */
import { checkRoleName, checkSnapshot, checkTensors, roleOfSet } from "../check.js";
import type { EngineInfo, LoadRequest, ModelInfo, ParameterSet, StepRequest, StepResult, TensorValue, Weights, WeightsRef } from "../contract.js";
import { afterChange } from "../identity.js";
import { needCapability, notTrainable, unknownRole, unknownSnapshot, unknownTensor } from "../refuse.js";
import { type DecoderConfig, parseModelConfig } from "./config.js";
import { loadConfig, loadFolder } from "./folder.js";
import { saveFolder } from "./folder-save.js";
import { Gradients } from "./gradients.js";
import { availableMemory, estimateMemory, refuseUnlessFits, type Work } from "./memory.js";
import { Optimizer } from "./optimizer.js";
import { ParameterStore } from "./params.js";

/** Weights with their identity: `policy@3` after three steps, `policy@3+1` when tensors were also written once. */
export interface Weighted {
  readonly store: ParameterStore;
  readonly identity: string;
  /** How many running samples and kept forward passes read them. */
  users: number;
}

export interface Role {
  readonly name: string;
  readonly model: DecoderConfig;
  readonly info: ModelInfo;
  readonly trainable: boolean;
  readonly snapshots: Map<string, Weighted>;
  current: Weighted;
  readonly optimizer: Optimizer;
  /** Sizes of work that were found to fit. */
  readonly fits: Set<string>;
}

/** Settings of the engine that roles need. */
export interface RoleSettings {
  readonly threads: number;
}

export class Roles implements Weights {
  private readonly roles = new Map<string, Role>();

  constructor(
    private readonly engine: EngineInfo,
    private readonly settings: RoleSettings,
  ) {}

  role(name: string, place: string): Role {
    const role = this.roles.get(name);
    if (!role) throw unknownRole(place, name, this.roles.keys());
    return role;
  }

  /** The trainable role behind a parameter set. */
  trained(set: ParameterSet, place: string): Role {
    const role = this.role(roleOfSet(this.engine, set, place), place);
    if (!role.trainable) throw notTrainable(place, role.name);
    return role;
  }

  /** Role and weights behind a reference. */
  resolve(ref: WeightsRef, place: string): { role: Role; weighted: Weighted } {
    if (ref.perturb) needCapability(this.engine, "weights.perturb", place);
    if (ref.adapter !== undefined) needCapability(this.engine, "adapters", place);
    const role = this.role(ref.role, place);
    const weighted = ref.at === undefined ? role.current : role.snapshots.get(ref.at);
    if (!weighted) throw unknownSnapshot(place, role.name, ref.at as string, role.snapshots.keys());
    return { role, weighted };
  }

  /** Throws a MemoryError when work on a role would not fit beside what is loaded; asked once for each size of work. */
  refuseUnlessFits(role: Role, work: Work): void {
    const key = JSON.stringify(work);
    if (role.fits.has(key)) return;
    const { parts } = estimateMemory(role.model, work);
    const { process, weights, ...more } = parts;
    const total = Object.values(more).reduce((sum, bytes) => sum + bytes, 0);
    refuseUnlessFits({ parts: more, total }, availableMemory(), `${work.kind} with role ${role.name}`);
    role.fits.add(key);
  }

  /** Where backward passes into a role leave their gradients. */
  gradientOf(role: Role): Gradients {
    return new Gradients(role.current.store);
  }

  async load(request: LoadRequest): Promise<ModelInfo> {
    checkRoleName(request);
    const { role: name, source, trainable } = request;
    const place = `weights.load ${name}`;
    const into = request.snapshot && this.role(name, place);
    const valueHead = request.valueHead ?? into?.info.hasValueHead;
    let store: ParameterStore;
    if (source.from === "role") {
      const from = this.role(source.role, place);
      store = new ParameterStore(from.model, valueHead ?? from.info.hasValueHead);
      const { store: copied } = from.current;
      for (const { name: tensor } of store.tensors) if (copied.has(tensor)) store.view(tensor).set(copied.view(tensor));
    } else if (source.from === "folder") {
      refuseToLoad(await loadConfig(source.path), source.path);
      store = await loadFolder(source.path, valueHead === undefined ? {} : { valueHead });
    } else {
      const config = parseModelConfig(source.config, place);
      refuseToLoad(config, place);
      store = ParameterStore.random(config, source.seed, valueHead ?? false);
    }
    if (into && request.snapshot) {
      checkSnapshot(name, store.tensors, into.info.tensors);
      into.snapshots.set(request.snapshot.name, { store, identity: request.snapshot.identity ?? `${name}@0`, users: 0 });
      return into.info;
    }
    const { config } = store;
    const info: ModelInfo = {
      role: name,
      parameters: store.count,
      vocabulary: config.vocabulary,
      width: config.width,
      layers: config.layers,
      maxTokens: config.maxPositions,
      hasValueHead: store.hasValueHead,
      trainable,
      tensors: store.tensors,
    };
    const current = { store, identity: `${name}@0`, users: 0 };
    this.roles.set(name, {
      name,
      model: config,
      info,
      trainable,
      snapshots: new Map(),
      current,
      optimizer: new Optimizer(this.settings.threads),
      fits: new Set(),
    });
    return info;
  }

  async unload(name: string): Promise<void> {
    this.role(name, "weights.unload");
    this.roles.delete(name);
  }

  async info(name: string): Promise<ModelInfo> {
    return this.role(name, "weights.info").info;
  }

  async snapshot(name: string, snapshot: string): Promise<void> {
    const role = this.role(name, "weights.snapshot");
    role.snapshots.set(snapshot, role.current);
  }

  async restore(name: string, snapshot: string): Promise<void> {
    const role = this.role(name, "weights.restore");
    const { weighted } = this.resolve({ role: name, at: snapshot }, "weights.restore");
    moveGradient(role.current.store, weighted.store);
    role.current = weighted;
  }

  async dropSnapshot(name: string, snapshot: string): Promise<void> {
    const role = this.role(name, "weights.dropSnapshot");
    if (!role.snapshots.delete(snapshot)) throw unknownSnapshot("weights.dropSnapshot", name, snapshot, role.snapshots.keys());
  }

  async read(ref: WeightsRef, names: readonly string[]): Promise<TensorValue[]> {
    const { role, weighted } = this.resolve(ref, "weights.read");
    return chosen(role, names, "weights.read", (name) => weighted.store.read(name));
  }

  async write(name: string, tensors: readonly TensorValue[]): Promise<void> {
    const role = this.role(name, "weights.write");
    checkTensors(name, tensors, role.info.tensors);
    this.own(role);
    for (const tensor of tensors) role.current.store.write(tensor.name, tensor.data);
    role.current = { ...role.current, identity: afterChange(role.current.identity, "write") };
  }

  async readGradient(set: ParameterSet, names: readonly string[]): Promise<TensorValue[]> {
    const role = this.trained(set, "weights.readGradient");
    return chosen(role, names, "weights.readGradient", (name) => role.current.store.readGradient(name));
  }

  async zeroGradient(set: ParameterSet): Promise<void> {
    this.trained(set, "weights.zeroGradient").current.store.dropGradient();
  }

  async saveOptimizer(set: ParameterSet, file: string): Promise<void> {
    const { optimizer, current } = this.trained(set, "weights.saveOptimizer");
    // The identity goes along, so that a resumed run names its weights as the first one did.
    await optimizer.save(file, current.store, { version: current.identity.slice(current.identity.lastIndexOf("@")) });
  }

  async loadOptimizer(set: ParameterSet, file: string): Promise<void> {
    const role = this.trained(set, "weights.loadOptimizer");
    const { version } = await role.optimizer.load(file, role.current.store);
    role.current = { ...role.current, identity: `${role.name}${version}` };
  }

  async resetOptimizer(set: ParameterSet): Promise<void> {
    this.trained(set, "weights.resetOptimizer").optimizer.reset();
  }

  async save(ref: WeightsRef, folder: string): Promise<void> {
    await saveFolder(this.resolve(ref, "weights.save").weighted.store, folder);
  }

  /** Makes a step of a checked request, and forgets the gradient. */
  async step({ set, update, maxNorm, groups }: StepRequest): Promise<StepResult> {
    const role = this.trained(set, "step");
    this.own(role);
    const { store } = role.current;
    const { gradNorm, clipped, skipped } = await role.optimizer.step(store, update, {
      ...(maxNorm === undefined ? {} : { maxNorm }),
      ...(groups ? { groups } : {}),
    });
    store.dropGradient();
    if (skipped) return { gradNorm, clipped: false, skipped, weights: role.current.identity };
    role.current = { ...role.current, identity: afterChange(role.current.identity, "step") };
    return { gradNorm, clipped, weights: role.current.identity };
  }

  exportGradient(set: ParameterSet, file: string): boolean {
    return this.trained(set, "exportGradient").current.store.exportGradient(file);
  }

  importGradient(set: ParameterSet, files: readonly string[]): void {
    this.trained(set, "importGradient").current.store.importGradient(files);
  }

  close(): void {
    this.roles.clear();
  }

  /** Makes sure that nobody else refers to a role's current weights. */
  private own(role: Role): void {
    const { current } = role;
    const shared = current.users > 0 || [...role.snapshots.values()].some(({ store }) => store === current.store);
    if (!shared) return;
    const store = current.store.clone();
    moveGradient(current.store, store);
    role.current = { store, identity: current.identity, users: 0 };
  }
}

function refuseToLoad(config: DecoderConfig, place: string): void {
  refuseUnlessFits(estimateMemory(config, { kind: "load" }), availableMemory(), `loading ${place}`);
}

/** The gradient belongs to the role, not to a state of its weights. */
function moveGradient(from: ParameterStore, to: ParameterStore): void {
  if (from === to) return;
  from.parameters.forEach(({ grad }, i) => {
    const parameter = to.parameters[i];
    if (grad) to.setGradient(parameter, grad);
    else parameter.grad = undefined;
  });
  from.dropGradient();
}

function chosen(role: Role, names: readonly string[], place: string, read: (name: string) => Float64Array): TensorValue[] {
  return names.map((name) => {
    const found = role.info.tensors.find((tensor) => tensor.name === name);
    if (!found)
      throw unknownTensor(
        place,
        role.name,
        name,
        role.info.tensors.map((tensor) => tensor.name),
      );
    return { name, shape: found.shape, data: read(name) };
  });
}
