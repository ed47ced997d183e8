/** Which sizes of models have room here: the engine's own estimates for a few known shapes. */
import { type DecoderConfig, parseModelConfig } from "../../engine/onnx/config.js";
import { estimateMemory } from "../../engine/onnx/memory.js";
import { parameterCount } from "../../engine/onnx/params.js";

type Dimensions = readonly [layers: number, width: number, heads: number, kvHeads: number, mlp: number, vocabulary: number, tied: boolean];

/** From the small policies of the own tasks to what is published; shapes from 135M on are those of the models named. */
const shapes: readonly (readonly [like: string, dimensions: Dimensions])[] = [
  ["2 layers of 64", [2, 64, 4, 4, 160, 64, true]],
  ["4 layers of 128", [4, 128, 4, 4, 384, 64, true]],
  ["6 layers of 320", [6, 320, 5, 5, 960, 8192, true]],
  ["SmolLM2 135M", [30, 576, 9, 3, 1536, 49152, true]],
  ["SmolLM2 360M", [32, 960, 15, 5, 2560, 49152, true]],
  ["Llama 3.2 1B", [16, 2048, 32, 8, 8192, 128256, true]],
  ["SmolLM2 1.7B", [24, 2048, 32, 32, 8192, 49152, true]],
  ["Llama 3.2 3B", [28, 3072, 24, 8, 8192, 128256, true]],
  ["Llama 3.1 8B", [32, 4096, 32, 8, 14336, 128256, false]],
];

/** The work that room is asked for: a batch as `touchstone train` makes it, and answers drawn at a time. */
export const fitWork = {
  train: { kind: "train", slots: 1024, length: 256, activations: "recompute" },
  sample: { kind: "sample", sequences: 32, length: 512 },
  /** Rank of the adapters on all products of the layers. */
  rank: 16,
} as const;

export interface Fit {
  readonly model: string;
  readonly parameters: number;
  /** Bytes that full training with AdamW, training adapters, and sampling need. */
  readonly full: number;
  readonly lora: number;
  readonly sample: number;
}

export function fits(): Fit[] {
  return shapes.map(([model, dimensions]) => {
    const config = configOf(dimensions);
    return {
      model,
      parameters: parameterCount(config),
      full: estimateMemory(config, fitWork.train).total,
      lora: estimateMemory(config, fitWork.train, { adapter: { rank: fitWork.rank, targets: "all-linear" } }).total,
      sample: estimateMemory(config, fitWork.sample).total,
    };
  });
}

function configOf([layers, width, heads, kvHeads, mlp, vocabulary, tied]: Dimensions): DecoderConfig {
  return parseModelConfig(
    {
      model_type: "llama",
      num_hidden_layers: layers,
      hidden_size: width,
      num_attention_heads: heads,
      num_key_value_heads: kvHeads,
      intermediate_size: mlp,
      vocab_size: vocabulary,
      tie_word_embeddings: tied,
      max_position_embeddings: 2048,
    },
    "doctor",
  );
}

/** Seconds of a training step on `fitWork.train`: 6 FLOPs a weight and token at half of the machine's rate of products. */
export const stepSeconds = (parameters: number, gflops: number): number => (6 * parameters * fitWork.train.slots) / (0.5 * gflops * 1e9);
