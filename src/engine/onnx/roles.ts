/**
 * The models that an onnx engine holds. Weights that a snapshot, a copy, a running sample or a kept forward pass refers to
 * are never changed: a step or a write copies them first. Otherwise a step changes them in place, which a large model needs.
 */
import { ArgumentError } from "../../core/errors.js";
import { checkRoleName, checkScale, checkSnapshot, checkTensors, roleOfSet } from "../check.js";
import type { EngineInfo, LoadRequest, ModelInfo, ParameterSet, SaveOptions, StepRequest, StepResult, TensorValue, Weights, WeightsRef } from "../contract.js";
import { afterChange } from "../identity.js";
import { needCapability, notTrainable, unknownRole, unknownSnapshot, unknownTensor } from "../refuse.js";
import { AdapterStore } from "./adapter.js";
import type { DecoderConfig } from "./config.js";
import { saveFolder } from "./folder-save.js";
import { Gradients } from "./gradients.js";
import { availableMemory, estimateMemory, type MemoryPlan, refuseUnlessFits, rowsThatFit, type Work } from "./memory.js";
import type { Orthogonalise } from "./muon.js";
import { Optimizer } from "./optimizer.js";
import { ParameterStore, type WeightArrays } from "./params.js";
import { baseIdentity, saveAdapter } from "./peft.js";
import { fetchWeights } from "./role-load.js";
import { arraysOf, infoOf, learningOf, readTensor, type Weighted } from "./weighted.js";

export interface Role {
  readonly name: string;
  readonly model: DecoderConfig;
  info: ModelInfo;
  /** Folder that its base was loaded from. */
  readonly base?: string;
  readonly trainable: boolean;
  readonly snapshots: Map<string, Weighted>;
  current: Weighted;
  optimizer: Optimizer;
  /** Sizes of work that were found to fit. */
  readonly fits: Set<string>;
}

/** Settings of the engine that roles need. */
export interface RoleSettings {
  readonly threads: number;
  readonly orthogonalise: Orthogonalise;
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
    const role = this.role(roleOfSet(set, place), place);
    if (!role.trainable) throw notTrainable(place, role.name);
    return role;
  }

  /** Role and weights behind a reference. */
  resolve(ref: WeightsRef, place: string): { role: Role; weighted: Weighted } {
    if (ref.perturb) needCapability(this.engine, "weights.perturb", place);
    const role = this.role(ref.role, place);
    const weighted = ref.at === undefined ? role.current : role.snapshots.get(ref.at);
    if (!weighted) throw unknownSnapshot(place, role.name, ref.at as string, role.snapshots.keys());
    return { role, weighted };
  }

  /** Throws a MemoryError when work on a role would not fit beside what is loaded; asked once for each size of work. */
  refuseUnlessFits(role: Role, work: Work): void {
    const key = JSON.stringify(work);
    if (role.fits.has(key)) return;
    const { parts } = estimateMemory(role.model, work, planOf(role));
    const { process, weights, adapter, ...more } = parts;
    const total = Object.values(more).reduce((sum, bytes) => sum + bytes, 0);
    refuseUnlessFits({ parts: more, total }, availableMemory(), `${work.kind} with role ${role.name}`);
    role.fits.add(key);
  }

  /** How many of the sequences of a sampling call are decoded together: fewer than asked for where those would not fit, which changes no bit of them. */
  rowsFor(role: Role, work: Extract<Work, { kind: "sample" }>): number {
    if (role.fits.has(JSON.stringify(work))) return work.sequences;
    const { process, weights, adapter = 0 } = estimateMemory(role.model, { kind: "load" }, planOf(role)).parts;
    const rows = rowsThatFit(role.model, work, planOf(role), availableMemory() + process + weights + adapter);
    this.refuseUnlessFits(role, { ...work, sequences: rows });
    return rows;
  }

  /** Where backward passes into a role leave their gradients. */
  gradientOf(role: Role): Gradients {
    return new Gradients(learningOf(role.current), role.current.adapter !== undefined);
  }

  async load(request: LoadRequest): Promise<ModelInfo> {
    checkRoleName(request);
    const { role: name, trainable } = request;
    const place = `weights.load ${name}`;
    const into = request.snapshot && this.role(name, place);
    const valueHead = request.valueHead ?? into?.info.hasValueHead;
    const { store, adapter, base } = await fetchWeights(request, valueHead, (other) => this.role(other, place), place);
    const fetched = { store, ...(adapter && { adapter }), identity: request.snapshot?.identity ?? `${name}@0` };
    if (into && request.snapshot) {
      const info = infoOf(name, fetched, trainable);
      checkSnapshot(name, [...info.tensors, ...(info.adapter?.tensors ?? [])], [...into.info.tensors, ...(into.info.adapter?.tensors ?? [])]);
      into.snapshots.set(request.snapshot.name, fetched);
      return into.info;
    }
    const info = infoOf(name, fetched, trainable);
    this.roles.set(name, {
      name,
      model: store.config,
      info,
      ...(base !== undefined && { base }),
      trainable,
      snapshots: new Map(),
      current: fetched,
      optimizer: new Optimizer(this.settings.threads, this.settings.orthogonalise),
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
    moveGradient(learningOf(role.current), learningOf(weighted));
    role.current = weighted;
  }

  async dropSnapshot(name: string, snapshot: string): Promise<void> {
    const role = this.role(name, "weights.dropSnapshot");
    if (!role.snapshots.delete(snapshot)) throw unknownSnapshot("weights.dropSnapshot", name, snapshot, role.snapshots.keys());
  }

  async read(ref: WeightsRef, names: readonly string[]): Promise<TensorValue[]> {
    const { role, weighted } = this.resolve(ref, "weights.read");
    checkScale(ref, role.info, "weights.read");
    const known = [...role.info.tensors, ...(role.info.adapter?.tensors ?? [])];
    return chosen(role, names, known, "weights.read", (name) => readTensor(weighted, name, ref.scale));
  }

  async write(name: string, tensors: readonly TensorValue[]): Promise<void> {
    const role = this.role(name, "weights.write");
    // The base of an adapter is frozen, and may be that of other roles.
    checkTensors(name, tensors, learningTensors(role));
    this.own(role);
    for (const tensor of tensors) learningOf(role.current).write(tensor.name, tensor.data);
    role.current = { ...role.current, identity: afterChange(role.current.identity, "write") };
  }

  async readGradient(set: ParameterSet, names: readonly string[]): Promise<TensorValue[]> {
    const role = this.trained(set, "weights.readGradient");
    return chosen(role, names, learningTensors(role), "weights.readGradient", (name) => learningOf(role.current).readGradient(name));
  }

  async zeroGradient(set: ParameterSet): Promise<void> {
    learningOf(this.trained(set, "weights.zeroGradient").current).dropGradient();
  }

  async saveOptimizer(set: ParameterSet, file: string): Promise<void> {
    const { optimizer, current } = this.trained(set, "weights.saveOptimizer");
    // The identity goes along, so that a resumed run names its weights as the first one did.
    await optimizer.save(file, learningOf(current), { version: current.identity.slice(current.identity.lastIndexOf("@")) });
  }

  async loadOptimizer(set: ParameterSet, file: string): Promise<void> {
    const role = this.trained(set, "weights.loadOptimizer");
    const { version } = await role.optimizer.load(file, learningOf(role.current));
    role.current = { ...role.current, identity: `${role.name}${version}` };
  }

  async resetOptimizer(set: ParameterSet): Promise<void> {
    this.trained(set, "weights.resetOptimizer").optimizer.reset();
  }

  async merge(name: string): Promise<ModelInfo> {
    const { role, adapter } = this.withAdapter(name, "weights.merge");
    if (role.snapshots.size > 0) {
      const cause = `role ${name} has snapshots with its adapter (${[...role.snapshots.keys()].join(", ")})`;
      throw new ArgumentError({ place: "weights.merge", cause, mend: "drop them first" });
    }
    const store = this.ownBase(role, adapter);
    for (const { name: tensor } of store.tensors) {
      if (adapter.has(tensor)) store.view(tensor).set(adapter.view(tensor));
      else adapter.addTo(tensor, store.view(tensor));
    }
    role.current = { store, identity: afterChange(role.current.identity, "write") };
    role.optimizer = new Optimizer(this.settings.threads, this.settings.orthogonalise);
    role.info = infoOf(name, role.current, role.trainable);
    return role.info;
  }

  async resetAdapter(name: string, seed: number): Promise<void> {
    const { role, adapter: before } = this.withAdapter(name, "weights.resetAdapter");
    const adapter = new AdapterStore(role.model, before.options, before.hasValueHead);
    adapter.initialise(seed);
    role.current = { ...role.current, adapter, identity: afterChange(role.current.identity, "write") };
    role.optimizer.reset();
  }

  async save(ref: WeightsRef, folder: string, { form = "adapter", dtype, base }: SaveOptions = {}): Promise<void> {
    const { role, weighted } = this.resolve(ref, "weights.save");
    checkScale(ref, role.info, "weights.save");
    const { store, adapter } = weighted;
    if (!adapter) return saveFolder(store, folder, { ...(dtype && { dtype }) });
    const { scale = 1 } = ref;
    if (form === "merged") return saveFolder(store, folder, { ...(dtype && { dtype }), adapter: { store: adapter, scale } });
    if (scale !== 1)
      throw new ArgumentError({
        place: "weights.save",
        cause: `an adapter is saved whole, not at the scale ${scale}`,
        mend: "leave `scale` out, or save it merged",
      });
    await saveAdapter(adapter, folder, { name: base ?? role.base, identity: await baseIdentity(store) });
  }

  /** Makes a step of a checked request, and forgets the gradient. */
  async step({ set, update, maxNorm, groups }: StepRequest): Promise<StepResult> {
    const role = this.trained(set, "step");
    this.own(role);
    const learning = learningOf(role.current);
    const { gradNorm, clipped, skipped } = await role.optimizer.step(learning, update, {
      ...(maxNorm === undefined ? {} : { maxNorm }),
      ...(groups ? { groups } : {}),
    });
    learning.dropGradient();
    if (skipped) return { gradNorm, clipped: false, skipped, weights: role.current.identity };
    role.current = { ...role.current, identity: afterChange(role.current.identity, "step") };
    return { gradNorm, clipped, weights: role.current.identity };
  }

  exportGradient(set: ParameterSet, file: string): boolean {
    return learningOf(this.trained(set, "exportGradient").current).exportGradient(file);
  }

  importGradient(set: ParameterSet, files: readonly string[]): void {
    learningOf(this.trained(set, "importGradient").current).importGradient(files);
  }

  close(): void {
    this.roles.clear();
  }

  private withAdapter(name: string, place: string): { role: Role; adapter: AdapterStore } {
    const role = this.role(name, place);
    const { adapter } = role.current;
    if (adapter) return { role, adapter };
    throw new ArgumentError({ place, cause: `role ${name} has no adapter`, mend: "load it with one" });
  }

  /** Makes sure that nobody else refers to what a role learns on. */
  private own(role: Role): void {
    const { current } = role;
    const learning = learningOf(current);
    if (!this.isShared(learning, role)) return;
    const { store, adapter, identity } = current;
    role.current = adapter ? { store, adapter: adapter.clone(), identity } : { store: store.clone(), identity };
    moveGradient(learning, learningOf(role.current));
  }

  /** The base of a role with an adapter, to be changed: copied where others refer to it, or where it lacks a value head that the role has. */
  private ownBase(role: Role, adapter: AdapterStore): ParameterStore {
    const { store } = role.current;
    if (store.hasValueHead === adapter.hasValueHead) return this.isShared(store, role) ? store.clone() : store;
    const copy = new ParameterStore(store.config, adapter.hasValueHead);
    for (const { name } of copy.tensors) if (store.has(name)) copy.view(name).set(store.view(name));
    return copy;
  }

  /** Whether anything beside a role's current weights refers to arrays of it. */
  private isShared(arrays: WeightArrays, own: Role): boolean {
    if (arrays.users > 0) return true;
    for (const role of this.roles.values()) {
      const others = role === own ? role.snapshots.values() : [role.current, ...role.snapshots.values()];
      for (const other of others) if (arraysOf(other).includes(arrays)) return true;
    }
    return false;
  }
}

const planOf = ({ current: { adapter } }: Role): MemoryPlan => (adapter ? { adapter: adapter.options } : {});

const learningTensors = ({ info }: Role): ModelInfo["tensors"] => info.adapter?.tensors ?? info.tensors;

/** The gradient belongs to the role, not to a state of its weights. */
function moveGradient(from: WeightArrays, to: WeightArrays): void {
  if (from === to) return;
  from.parameters.forEach(({ grad }, i) => {
    const parameter = to.parameters[i];
    if (grad) to.setGradient(parameter, grad);
    else parameter.grad = undefined;
  });
  from.dropGradient();
}

function chosen(role: Role, names: readonly string[], known: ModelInfo["tensors"], place: string, read: (name: string) => Float64Array): TensorValue[] {
  return names.map((name) => {
    const found = known.find((tensor) => tensor.name === name);
    if (!found)
      throw unknownTensor(
        place,
        role.name,
        name,
        known.map((tensor) => tensor.name),
      );
    return { name, shape: found.shape, data: read(name) };
  });
}
