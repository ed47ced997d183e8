/**
 * The models that a table engine holds. Weights are never changed in place: a step or a write puts new arrays in place
 * of the old, so that snapshots, copies, running samples and kept forward passes are plain references.
 */
import { ArgumentError, ModelError } from "../../core/errors.js";
import { randomKey, Stream } from "../../core/random.js";
import { checkRoleName, checkSnapshot, checkTensors, roleOfSet } from "../check.js";
import type { EngineInfo, LoadRequest, ModelInfo, ParameterSet, SaveOptions, StepRequest, StepResult, TensorValue, Weights, WeightsRef } from "../contract.js";
import { afterChange } from "../identity.js";
import { lacking, needCapability, notTrainable, unknownRole, unknownSnapshot, unknownTensor } from "../refuse.js";
import { writeSafetensors } from "../safetensors-write.js";
import { parseConfig } from "./config.js";
import { readFolder, readTensors, writeFolder } from "./files.js";
import { TableModel, type Tensors, valueWeightName } from "./model.js";
import { applyUpdate, clipFactor, firstNonFinite, freshState, normOf, type OptimizerState } from "./optimizer.js";

/** Weights with their identity: `policy@3` after three steps, `policy@3+1` when tensors were also written once. */
export interface Weighted {
  readonly tensors: Tensors;
  readonly identity: string;
}

export interface Role {
  readonly name: string;
  readonly model: TableModel;
  readonly trainable: boolean;
  readonly snapshots: Map<string, Weighted>;
  current: Weighted;
  gradient: Map<string, Float64Array> | undefined;
  optimizer: OptimizerState;
  /** Steps left out because a gradient was not finite. */
  skipped: number;
}

export class Roles implements Weights {
  private readonly roles = new Map<string, Role>();

  constructor(private readonly engine: EngineInfo) {}

  /** The role of a name, or the error that lists what is loaded. */
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

  /** The gradient that a role accumulates, begun with zeros. */
  gradientOf(role: Role): Map<string, Float64Array> {
    role.gradient ??= role.model.zeros();
    return role.gradient;
  }

  /** Model and weights behind a reference. */
  resolve(ref: WeightsRef, place: string): { model: TableModel; weights: Weighted } {
    const role = this.role(ref.role, place);
    const weights = ref.at === undefined ? role.current : role.snapshots.get(ref.at);
    if (!weights) throw unknownSnapshot(place, role.name, ref.at!, role.snapshots.keys());
    return { model: role.model, weights: ref.perturb ? perturbed(weights, ref.perturb) : weights };
  }

  async load(request: LoadRequest): Promise<ModelInfo> {
    checkRoleName(request);
    const { role: name, source, trainable } = request;
    const place = `weights.load ${name}`;
    const into = request.snapshot && this.role(name, place);
    const valueHead = request.valueHead ?? into?.model.hasValueHead;
    let model: TableModel;
    let tensors: Tensors;
    if (request.adapter) needCapability(this.engine, "adapters", place);
    // A table never changes its arrays, so a copy and a shared base are the same.
    if (source.from === "role" || source.from === "base") {
      const from = this.role(source.role, place);
      model = new TableModel(from.model.config, valueHead ?? from.model.hasValueHead);
      tensors = fitted(model, from.current.tensors, place);
    } else if (source.from === "folder") {
      const { config, tensors: stored } = await readFolder(source.path);
      const hasHead = stored.some((tensor) => tensor.name === valueWeightName);
      model = new TableModel(parseConfig(config, source.path), valueHead ?? hasHead);
      const known = model.tensors.filter((tensor) => stored.some((other) => other.name === tensor.name));
      checkStored(stored, known, source.path);
      tensors = fitted(model, new Map(stored.map(({ name: tensor, data }) => [tensor, data])), source.path);
    } else {
      model = new TableModel(parseConfig(source.config, place), valueHead ?? false);
      tensors = model.random(source.seed);
    }
    const current = { tensors, identity: request.snapshot?.identity ?? `${name}@0` };
    if (into && request.snapshot) {
      checkSnapshot(name, model.tensors, into.model.tensors);
      into.snapshots.set(request.snapshot.name, current);
      return into.model.info(name, into.trainable);
    }
    this.roles.set(name, { name, model, trainable, snapshots: new Map(), current, gradient: undefined, optimizer: freshState, skipped: 0 });
    return model.info(name, trainable);
  }

  async unload(name: string): Promise<void> {
    this.role(name, "weights.unload");
    this.roles.delete(name);
  }

  async info(name: string): Promise<ModelInfo> {
    const { model, trainable } = this.role(name, "weights.info");
    return model.info(name, trainable);
  }

  async snapshot(name: string, snapshot: string): Promise<void> {
    const role = this.role(name, "weights.snapshot");
    role.snapshots.set(snapshot, role.current);
  }

  async restore(name: string, snapshot: string): Promise<void> {
    const role = this.role(name, "weights.restore");
    role.current = this.resolve({ role: name, at: snapshot }, "weights.restore").weights;
  }

  async dropSnapshot(name: string, snapshot: string): Promise<void> {
    const role = this.role(name, "weights.dropSnapshot");
    if (!role.snapshots.delete(snapshot)) throw unknownSnapshot("weights.dropSnapshot", name, snapshot, role.snapshots.keys());
  }

  async read(ref: WeightsRef, names: readonly string[]): Promise<TensorValue[]> {
    const { model, weights } = this.resolve(ref, "weights.read");
    return chosen(model, ref.role, weights.tensors, names, "weights.read");
  }

  async write(name: string, tensors: readonly TensorValue[]): Promise<void> {
    const role = this.role(name, "weights.write");
    checkTensors(name, tensors, role.model.tensors);
    const next = new Map(role.current.tensors);
    for (const tensor of tensors) next.set(tensor.name, tensor.data.slice());
    role.current = { tensors: next, identity: afterChange(role.current.identity, "write") };
  }

  async readGradient(set: ParameterSet, names: readonly string[]): Promise<TensorValue[]> {
    const role = this.trained(set, "weights.readGradient");
    return chosen(role.model, role.name, role.gradient ?? role.model.zeros(), names, "weights.readGradient");
  }

  async zeroGradient(set: ParameterSet): Promise<void> {
    this.trained(set, "weights.zeroGradient").gradient = undefined;
  }

  async saveOptimizer(set: ParameterSet, file: string): Promise<void> {
    const { model, optimizer, current, skipped } = this.trained(set, "weights.saveOptimizer");
    const tensors = [...optimizer.moments].map(([name, data]) => ({ name, shape: shapeOf(model, name), data }));
    // The identity goes along, so that a resumed run names its weights as the first one did.
    const version = current.identity.slice(current.identity.lastIndexOf("@"));
    await writeSafetensors(file, tensors, { steps: String(optimizer.steps), skipped: String(skipped), version });
  }

  async loadOptimizer(set: ParameterSet, file: string): Promise<void> {
    const role = this.trained(set, "weights.loadOptimizer");
    const { tensors, metadata } = await readTensors(file);
    checkStored(
      tensors,
      tensors.map(({ name }) => ({ name, shape: shapeOf(role.model, name) })),
      file,
    );
    if (metadata.steps === undefined) throw new ModelError({ place: file, cause: "it holds no optimizer state", mend: "give a file of weights.saveOptimizer" });
    role.optimizer = { steps: Number(metadata.steps), moments: new Map(tensors.map(({ name, data }) => [name, data])) };
    role.skipped = Number(metadata.skipped);
    role.current = { ...role.current, identity: `${role.name}${metadata.version}` };
  }

  async resetOptimizer(set: ParameterSet): Promise<void> {
    this.trained(set, "weights.resetOptimizer").optimizer = freshState;
  }

  async merge(): Promise<ModelInfo> {
    throw lacking(this.engine, "adapters", "weights.merge");
  }

  async resetAdapter(): Promise<void> {
    throw lacking(this.engine, "adapters", "weights.resetAdapter");
  }

  async save(ref: WeightsRef, folder: string, { dtype }: SaveOptions = {}): Promise<void> {
    if (dtype !== undefined)
      throw new ArgumentError({ place: "weights.save", cause: `a table is written in float64, not as ${dtype}`, mend: "leave dtype out" });
    const { model, weights } = this.resolve(ref, "weights.save");
    await writeFolder(
      folder,
      model.config,
      chosen(
        model,
        ref.role,
        weights.tensors,
        model.tensors.map(({ name }) => name),
        "weights.save",
      ),
    );
  }

  /** Makes a step of a checked request, and forgets the gradient. */
  step({ set, update, maxNorm, groups }: StepRequest): StepResult {
    const role = this.trained(set, "step");
    const gradient = this.gradientOf(role);
    role.gradient = undefined;
    const gradNorm = normOf(gradient);
    const parameter = firstNonFinite(gradient);
    if (parameter !== undefined) return { gradNorm, clipped: false, skipped: { parameter, count: ++role.skipped }, weights: role.current.identity };
    const factor = clipFactor(gradNorm, maxNorm);
    const { weights, state } = applyUpdate(role.current.tensors, gradient, role.optimizer, update, { factor, groups });
    role.optimizer = state;
    role.current = { tensors: weights, identity: afterChange(role.current.identity, "step") };
    return { gradNorm, clipped: factor < 1, weights: role.current.identity };
  }
}

function perturbed({ tensors, identity }: Weighted, { seed, sigma }: { readonly seed: number; readonly sigma: number }): Weighted {
  const next = new Map<string, Float64Array>();
  for (const [name, data] of tensors) {
    const stream = new Stream(randomKey({ seed, purpose: `perturb:${name}` }));
    next.set(
      name,
      data.map((x) => x + sigma * stream.normal()),
    );
  }
  return { tensors: next, identity: `${identity}~${seed}*${sigma}` };
}

/** The tensors that a model has, with zeros for a value head that the source lacks; arrays are shared, never changed. */
function fitted(model: TableModel, from: Tensors, place: string): Tensors {
  const result = model.zeros();
  for (const name of result.keys()) {
    const data = from.get(name);
    if (data) result.set(name, data);
    else if (!name.startsWith("value_head.")) throw new ModelError({ place, cause: `tensor ${name} is missing`, mend: "save the model again" });
  }
  return result;
}

function checkStored(stored: readonly TensorValue[], known: ModelInfo["tensors"], place: string): void {
  try {
    checkTensors("of the file", stored, known);
  } catch (error) {
    if (!(error instanceof ArgumentError)) throw error;
    throw new ModelError({ place, cause: error.message, mend: "save it again" }, { cause: error });
  }
}

/** The shape of a moment: that of the tensor it belongs to. */
function shapeOf(model: TableModel, moment: string): readonly number[] {
  const name = moment.slice(moment.indexOf(".") + 1);
  return model.tensors.find((tensor) => tensor.name === name)?.shape ?? [];
}

function chosen(model: TableModel, role: string, tensors: Tensors, names: readonly string[], place: string): TensorValue[] {
  return names.map((name) => {
    const found = model.tensors.find((tensor) => tensor.name === name);
    if (!found)
      throw unknownTensor(
        place,
        role,
        name,
        model.tensors.map((tensor) => tensor.name),
      );
    return { name, shape: found.shape, data: tensors.get(name)!.slice() };
  });
}
