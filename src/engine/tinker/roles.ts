/** The roles of an engine on a server: those that learn are models of their own, a frozen one of the base is the base itself. */
import { basename } from "node:path";
import { ArgumentError, type CapabilityError, ModelError } from "../../core/errors.js";
import { checkRoleName, roleOfSet } from "../check.js";
import type { Derivatives, EngineInfo, LoadRequest, ModelInfo, ParameterSet, SaveOptions, Scores, TensorValue, Weights, WeightsRef } from "../contract.js";
import { afterChange } from "../identity.js";
import { lacking, needCapability, notTrainable, unknownRole } from "../refuse.js";
import { SafetensorsFile } from "../safetensors.js";
import { writeSafetensors } from "../safetensors-write.js";
import { type BaseLimits, readLimits, readState, writeState } from "./folder.js";
import type { Maker, State, Trainee } from "./trainee.js";
import type { Datum } from "./wire.js";

/** Sequences of a backward pass that wait for the step: nothing is sent before, because their number is part of what is sent. */
export interface Waiting {
  readonly datum: Datum;
  readonly logp: Float64Array;
  readonly dLogp: Float64Array;
}

export interface Role {
  readonly name: string;
  readonly info: ModelInfo;
  readonly limits: BaseLimits;
  /** Folder with config.json. */
  readonly folder: string;
  readonly trainable: boolean;
  /** Undefined: the base itself. */
  readonly trainee: Trainee | undefined;
  identity: string;
  waiting: Waiting[];
  /** Steps left out because a number was not finite. */
  skipped: number;
}

/** What roles need of the engine. */
export interface Server {
  readonly info: EngineInfo;
  readonly place: string;
  readonly baseModel: string;
  readonly rank: number;
  readonly maker: Maker;
  trainee(name: string, state: State | undefined): Trainee;
  /** The archive of an adapter as samplers load it. */
  archive(samplerPath: string): Promise<Uint8Array>;
}

export class ServerRoles implements Weights {
  private readonly roles = new Map<string, Role>();

  constructor(private readonly server: Server) {}

  role(name: string, place: string): Role {
    const role = this.roles.get(name);
    if (!role) throw unknownRole(place, name, this.roles.keys());
    return role;
  }

  trained(set: ParameterSet, place: string): Role & { readonly trainee: Trainee } {
    if (set === "inputs") throw this.lacking("train.inputs", place);
    const role = this.role(roleOfSet(set, place), place);
    if (!role.trainable || role.trainee === undefined) throw notTrainable(place, role.name);
    return role as Role & { readonly trainee: Trainee };
  }

  /** The role of weights that are asked for; all but current ones are refused. */
  resolve(ref: WeightsRef, place: string): Role {
    if (ref.at !== undefined) throw this.lacking("snapshots", place);
    return this.role(ref.role, place);
  }

  async load(request: LoadRequest): Promise<ModelInfo> {
    checkRoleName(request);
    const { role: name, source, trainable } = request;
    const place = `weights.load ${name}`;
    if (trainable) needCapability(this.server.info, "train", place);
    if (request.valueHead) throw this.lacking("train.values", place);
    if (request.snapshot) throw this.lacking("snapshots", place);
    if (request.adapter) throw this.lacking("adapters", place);
    if (source.from === "config") {
      throw new ArgumentError({
        place,
        cause: "a server trains the base that it was started with, not a new model",
        mend: "load it from the folder of that base",
      });
    }
    const from = source.from === "folder" ? undefined : this.role(source.role, place);
    const folder = source.from === "folder" ? source.path : (from as Role).folder;
    const limits = await readLimits(folder);
    const stored = source.from === "folder" ? await readState(folder) : undefined;
    if (stored) this.refuseOther(folder, stored);
    const state: State | undefined = source.from === "role" ? await (from as Role).trainee?.save() : stored && { path: stored.path, optimizer: true };
    const trainee = trainable || state !== undefined ? this.server.trainee(name, state) : undefined;
    const before = this.roles.get(name);
    if (before) await this.unload(name);
    await trainee?.start();
    const info: ModelInfo = {
      role: name,
      parameters: limits.parameters,
      vocabulary: limits.vocabulary,
      width: limits.width,
      layers: limits.layers,
      maxTokens: limits.maxTokens,
      hasValueHead: false,
      trainable,
      tensors: [],
    };
    this.roles.set(name, { name, info, limits, folder, trainable, trainee, identity: `${name}@0`, waiting: [], skipped: 0 });
    return info;
  }

  async unload(name: string): Promise<void> {
    const role = this.role(name, "weights.unload");
    this.roles.delete(name);
    await role.trainee?.close(60_000);
  }

  async info(name: string): Promise<ModelInfo> {
    return this.role(name, "weights.info").info;
  }

  async zeroGradient(set: ParameterSet): Promise<void> {
    this.trained(set, "weights.zeroGradient").waiting = [];
  }

  /** Writes where the server keeps the optimizer: in the checkpoint that `save` made, or in one that is made now. */
  async saveOptimizer(set: ParameterSet, file: string): Promise<void> {
    const role = this.trained(set, "weights.saveOptimizer");
    const { path } = await role.trainee.save();
    const version = role.identity.slice(role.identity.lastIndexOf("@"));
    await writeSafetensors(file, [], { tinker_path: path, skipped: String(role.skipped), version });
  }

  /** The optimizer came with the weights, whose identity it is here to tell. */
  async loadOptimizer(set: ParameterSet, file: string): Promise<void> {
    const role = this.trained(set, "weights.loadOptimizer");
    const opened = await SafetensorsFile.open(file);
    const { tinker_path: path, version, skipped } = opened.metadata;
    await opened.close();
    if (path === undefined || version === undefined) {
      throw new ModelError({ place: file, cause: "it names no checkpoint of a server", mend: "give a file of weights.saveOptimizer of this engine" });
    }
    const own = await role.trainee.save();
    if (own.path !== path) {
      const cause = `it belongs to ${path}, and ${role.name} was loaded from ${own.path}`;
      throw new ModelError({ place: file, cause, mend: "load weights and optimizer of one checkpoint, before any step" });
    }
    role.skipped = Number(skipped ?? 0);
    role.identity = `${role.name}${version}`;
  }

  async resetOptimizer(set: ParameterSet): Promise<void> {
    needCapability(this.server.info, "optimizer.reset", "weights.resetOptimizer");
    await this.trained(set, "weights.resetOptimizer").trainee.forgetOptimizer();
  }

  async save(ref: WeightsRef, folder: string, { form = "adapter", dtype, base }: SaveOptions = {}): Promise<void> {
    const role = this.resolve(ref, "weights.save");
    const refuse = (cause: string, mend: string): never => {
      throw new ArgumentError({ place: "weights.save", cause, mend });
    };
    if (form !== "adapter") refuse("the base's weights are on the server", "save the adapter, and merge it with PEFT where the base is");
    if (dtype !== undefined && dtype !== "f32") refuse(`adapters are written as the server has them, not as ${dtype}`, "leave dtype out");
    if (base !== undefined) refuse("the server writes what its base is", "leave base out");
    const { trainee } = role;
    if (trainee === undefined) return refuse(`${role.name} is the server's base as it is`, "save a role that learns");
    // The sampler's checkpoint first: the other one, which a resume loads, is then the later.
    const archive = await trainee.sampling((path) => this.server.archive(path));
    const { path } = await trainee.save();
    await writeState(folder, { path, base_model: this.server.baseModel, rank: this.server.rank }, role.folder, archive);
  }

  async snapshot(name: string): Promise<void> {
    this.role(name, "weights.snapshot");
    throw this.lacking("snapshots", "weights.snapshot");
  }

  async restore(name: string): Promise<void> {
    this.role(name, "weights.restore");
    throw this.lacking("snapshots", "weights.restore");
  }

  async dropSnapshot(name: string): Promise<void> {
    this.role(name, "weights.dropSnapshot");
    throw this.lacking("snapshots", "weights.dropSnapshot");
  }

  async read(): Promise<TensorValue[]> {
    throw this.lacking("weights.tensors", "weights.read");
  }

  async write(): Promise<void> {
    throw this.lacking("weights.tensors", "weights.write");
  }

  async readGradient(): Promise<TensorValue[]> {
    throw this.lacking("weights.tensors", "weights.readGradient");
  }

  async merge(): Promise<ModelInfo> {
    throw this.lacking("adapters", "weights.merge");
  }

  async resetAdapter(): Promise<void> {
    throw this.lacking("adapters", "weights.resetAdapter");
  }

  /** Gives all models back. */
  async close(deadlineMs: number): Promise<void> {
    await Promise.all([...this.roles.values()].map(({ trainee }) => trainee?.close(deadlineMs)));
    this.roles.clear();
  }

  private lacking(capability: Parameters<typeof needCapability>[1], place: string): CapabilityError {
    return lacking(this.server.info, capability, place);
  }

  private refuseOther(folder: string, { base_model, rank }: { readonly base_model: string; readonly rank: number }): void {
    const { baseModel, rank: own } = this.server;
    // A server is known by a folder or by a hub id; the last part tells what it is.
    if (basename(base_model) !== basename(baseModel)) {
      throw new ModelError({
        place: folder,
        cause: `it was trained on ${base_model}, and the server has ${baseModel}`,
        mend: "give the address of a server of that base",
      });
    }
    if (rank !== own) throw new ModelError({ place: folder, cause: `its adapter has rank ${rank}, and lora.rank is ${own}`, mend: `set lora.rank to ${rank}` });
  }
}

/** The derivatives of what a forward pass returned, as they wait for the step. */
export function waitingOf(data: readonly (Datum | undefined)[], scores: readonly Scores[], derivatives: readonly Derivatives[]): Waiting[] {
  return data.flatMap((datum, i) => {
    const { logp } = scores[i] as Scores;
    return datum === undefined ? [] : [{ datum, logp, dLogp: (derivatives[i] as Derivatives).dLogp ?? new Float64Array(logp.length) }];
  });
}

/** The identity of a role's weights after a step. */
export const stepped = (identity: string): string => afterChange(identity, "step");
