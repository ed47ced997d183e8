/** A decoder small enough for central differences over every weight, with grouped heads. */
import type { DecoderConfig } from "./config.js";
import { layerShapes, layerWeights } from "./layer.js";
import { anglesOf } from "./rope.js";
import type { Tensors } from "./test-reference.js";
import { normals, type Tensor, tensor } from "./test-tensor.js";

export const tinyConfig: DecoderConfig = {
  family: "llama",
  layers: 1,
  width: 6,
  heads: 4,
  kvHeads: 2,
  headDim: 4,
  mlp: 5,
  vocabulary: 300,
  ropeTheta: 100,
  rope: { kind: "default" },
  rmsEpsilon: 1e-2,
  tied: true,
  maxPositions: 8,
  attentionBias: false,
  qkNorm: false,
  initializerRange: 0.02,
  eosIds: [0],
};

/** Weights of layer `layer`, large enough that no part of it is nearly linear. */
export function tinyWeights(c: DecoderConfig, layer = 0): { [name: string]: Tensor } {
  const shapes = layerShapes(c);
  return Object.fromEntries(layerWeights(c).map((name) => [name, normals(`${name}.${layer}`, shapes[name], /norm/i.test(name) ? 1 : 0.5)]));
}

/** Cosines and sines [places, headDim / 2]. */
export function rotation(c: DecoderConfig, places: number): Tensors {
  const half = c.headDim / 2;
  const { frequencies, scale } = anglesOf(c);
  const turned = (f: (x: number) => number) =>
    tensor(
      [places, half],
      Array.from({ length: places * half }, (_, at) => Math.fround(f(Math.floor(at / half) * (frequencies[at % half] as number)) * scale)),
    );
  return { cos: turned(Math.cos), sin: turned(Math.sin) };
}
