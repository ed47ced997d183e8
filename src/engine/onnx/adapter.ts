/**
 * Low-rank adapters on the products of the layers: W x + scale · alpha / rank · B (A x) over frozen W (LoRA, Hu et al.,
 * arXiv 2106.09685, equation 3; the names are PEFT's). One adapter has the same rank and targets in every layer.
 */
import { ArgumentError } from "../../core/errors.js";
import type { AdapterOptions } from "../contract.js";
import type { DecoderConfig } from "./config.js";
import { fillUniform } from "./init.js";
import { type LinearName, layerShapes, linearNames } from "./layer.js";
import { type Layout, matrix, valueHeadLayout, WeightArrays } from "./params.js";

/** The linear layers by PEFT's names, with where each lies in a layer of transformers. */
const modules: { readonly [name in LinearName]: string } = {
  q: "self_attn.q_proj",
  k: "self_attn.k_proj",
  v: "self_attn.v_proj",
  o: "self_attn.o_proj",
  gate: "mlp.gate_proj",
  up: "mlp.up_proj",
  down: "mlp.down_proj",
};

/** `q_proj` of `q`. */
export const peftName = (name: LinearName): string => modules[name].slice(modules[name].indexOf(".") + 1);

export const allTargets: readonly string[] = linearNames.map(peftName);

/** The tensor of A or B in a PEFT file. */
export const tensorName = (layer: number, name: LinearName, side: "A" | "B"): string =>
  `base_model.model.model.layers.${layer}.${modules[name]}.lora_${side}.weight`;

/** The targets in the order of a layer's products. Throws ArgumentError for a name that is none. */
export function linearTargets(targets: AdapterOptions["targets"], place: string): readonly LinearName[] {
  if (targets === "all-linear") return linearNames;
  const unknown = targets.find((target) => !allTargets.includes(target));
  if (unknown !== undefined || targets.length === 0) {
    const cause = unknown === undefined ? "an adapter has no targets" : `target ${JSON.stringify(unknown)} is no linear layer of these models`;
    throw new ArgumentError({ place, cause, mend: `name some of ${allTargets.join(", ")}, or all-linear` });
  }
  return linearNames.filter((name) => targets.includes(peftName(name)));
}

/** Refuses ranks and factors that cannot be meant. Throws ArgumentError. */
export function checkAdapter({ rank, alpha, targets }: AdapterOptions, place: string): void {
  const refuse = (cause: string, mend: string): never => {
    throw new ArgumentError({ place, cause, mend });
  };
  if (!(Number.isInteger(rank) && rank >= 1)) refuse(`an adapter's rank is ${rank}`, "give a whole number of at least 1");
  if (!(Number.isFinite(alpha) && alpha > 0)) refuse(`an adapter's alpha is ${alpha}`, "give a number above 0");
  linearTargets(targets, place);
}

/** How many numbers an adapter has. */
export function adapterCount(config: DecoderConfig, { rank, targets }: Pick<AdapterOptions, "rank" | "targets">): number {
  const shapes = layerShapes(config);
  return config.layers * rank * linearTargets(targets, "adapter").reduce((sum, name) => sum + (shapes[name][0] as number) + (shapes[name][1] as number), 0);
}

/** A and B of one adapter, and the value head of a role that has one, with their gradient. */
export class AdapterStore extends WeightArrays {
  readonly targets: readonly LinearName[];

  /** A and B in the order of PEFT: layer by layer, A before B. */
  static layout(config: DecoderConfig, { rank, targets }: AdapterOptions): Layout[] {
    const shapes = layerShapes(config);
    const names = linearTargets(targets, "adapter");
    return Array.from({ length: config.layers }, (_, layer) =>
      names.flatMap((name) => {
        const [out, into] = shapes[name] as readonly [number, number];
        return [
          matrix(`layers.${layer}.${name}A`, into, [[tensorName(layer, name, "A"), rank]]),
          matrix(`layers.${layer}.${name}B`, rank, [[tensorName(layer, name, "B"), out]]),
        ];
      }),
    ).flat();
  }

  /** All zero, which is no state to learn from. */
  constructor(
    readonly config: DecoderConfig,
    readonly options: AdapterOptions,
    readonly hasValueHead = false,
  ) {
    const targets = linearTargets(options.targets, "adapter");
    super([...AdapterStore.layout(config, options), ...(hasValueHead ? valueHeadLayout(config.width) : [])]);
    this.targets = targets;
  }

  /** The factor of B A. */
  get factor(): number {
    return this.options.alpha / this.options.rank;
  }

  /**
   * As PEFT begins: B zero, so that nothing changes yet; A uniform within 1 / sqrt(inputs) of 0 (Kaiming's bound with
   * slope sqrt(5)), a function of seed and tensor name. A value head begins at 0.
   */
  initialise(seed: number): void {
    for (const { name, data, parts } of this.parameters) {
      const [tensor] = parts;
      if (name.endsWith("A")) fillUniform(data, seed, tensor.name, 1 / Math.sqrt(tensor.shape[1]));
      else data.fill(0);
    }
  }

  /** A copy, without gradient. */
  clone(): AdapterStore {
    const copy = new AdapterStore(this.config, this.options, this.hasValueHead);
    for (const [i, { data }] of this.parameters.entries()) copy.parameters[i].data.set(data);
    return copy;
  }

  /** Adds `scale` times the adapter's product to the rows of a tensor of the base, where it has that target. Sums in double, rounded once. */
  addTo(tensor: string, weights: Float32Array | Float64Array, scale = 1): void {
    const [, layer, module] = /^model\.layers\.(\d+)\.(.+)\.weight$/.exec(tensor) ?? [];
    const name = this.targets.find((target) => modules[target] === module);
    if (name === undefined) return;
    const a = this.get(`layers.${layer}.${name}A`).data;
    const b = this.get(`layers.${layer}.${name}B`).data;
    const { rank } = this.options;
    const into = a.length / rank;
    const row = new Float64Array(into);
    const factor = scale * this.factor;
    for (let o = 0; o * rank < b.length; o++) {
      row.fill(0);
      for (let r = 0; r < rank; r++) {
        const x = factor * b[o * rank + r];
        const from = r * into;
        for (let i = 0; i < into; i++) row[i] += x * a[from + i];
      }
      const to = o * into;
      for (let i = 0; i < into; i++) weights[to + i] += row[i];
    }
  }

  /** A tensor of the base with `scale` times the adapter added, in an array of its own. */
  merged(tensor: string, weights: Float32Array, scale = 1): Float32Array {
    const sum = weights.slice();
    this.addTo(tensor, sum, scale);
    return sum;
  }
}
