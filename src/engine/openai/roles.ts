/** Roles on a server whose model stays as it is: names, each for the one model that is served. */
import { checkRoleName } from "../check.js";
import type { Capability, EngineInfo, LoadRequest, ModelInfo, Weights, WeightsRef } from "../contract.js";
import { lacking, unknownRole, unknownSnapshot } from "../refuse.js";

export class ServedRoles implements Weights {
  private readonly loaded = new Map<string, ModelInfo>();

  constructor(
    private readonly engine: EngineInfo,
    private readonly model: Pick<ModelInfo, "vocabulary" | "maxTokens">,
  ) {}

  /** What is known of the weights that a reference names. */
  resolve({ role, at }: WeightsRef, place: string): ModelInfo {
    const info = this.loaded.get(role);
    if (info === undefined) throw unknownRole(place, role, this.loaded.keys());
    if (at !== undefined) throw unknownSnapshot(place, role, at, []);
    return info;
  }

  /** The server's weights have no steps of ours. */
  identity(role: string): string {
    return `${role}@0`;
  }

  async load(request: LoadRequest): Promise<ModelInfo> {
    checkRoleName(request);
    const { role, trainable, valueHead, adapter, source } = request;
    const place = `weights.load ${role}`;
    if (trainable) throw lacking(this.engine, "train", place);
    if (valueHead) throw lacking(this.engine, "score.values", place);
    if (adapter !== undefined) throw lacking(this.engine, "adapters", place);
    if (request.snapshot !== undefined) throw lacking(this.engine, "snapshots", place);
    if (source.from === "role" || source.from === "base") this.resolve({ role: source.role }, place);
    const info: ModelInfo = { role, parameters: 0, width: 0, layers: 0, hasValueHead: false, trainable: false, tensors: [], ...this.model };
    this.loaded.set(role, info);
    return info;
  }

  async unload(role: string): Promise<void> {
    this.resolve({ role }, "weights.unload");
    this.loaded.delete(role);
  }

  async info(role: string): Promise<ModelInfo> {
    return this.resolve({ role }, "weights.info");
  }

  private async lacks(capability: Capability, call: string): Promise<never> {
    throw lacking(this.engine, capability, call);
  }

  snapshot = (): Promise<never> => this.lacks("snapshots", "weights.snapshot");
  restore = (): Promise<never> => this.lacks("snapshots", "weights.restore");
  dropSnapshot = (): Promise<never> => this.lacks("snapshots", "weights.dropSnapshot");
  read = (): Promise<never> => this.lacks("weights.tensors", "weights.read");
  write = (): Promise<never> => this.lacks("weights.tensors", "weights.write");
  readGradient = (): Promise<never> => this.lacks("train", "weights.readGradient");
  zeroGradient = (): Promise<never> => this.lacks("train", "weights.zeroGradient");
  saveOptimizer = (): Promise<never> => this.lacks("train", "weights.saveOptimizer");
  loadOptimizer = (): Promise<never> => this.lacks("train", "weights.loadOptimizer");
  resetOptimizer = (): Promise<never> => this.lacks("train", "weights.resetOptimizer");
  merge = (): Promise<never> => this.lacks("adapters", "weights.merge");
  resetAdapter = (): Promise<never> => this.lacks("adapters", "weights.resetAdapter");
  save = (): Promise<never> => this.lacks("save", "weights.save");
}
