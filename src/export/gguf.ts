/** A model as a GGUF file, with its tokenizer. */
import { ModelError } from "../core/errors.js";
import { ggufName, headsInterleaved, rotaryTensor } from "../engine/gguf/names.js";
import { blockOf8, type WritableType } from "../engine/gguf/quantise.js";
import { type GgufTensorToWrite, type Metadata, writeGguf } from "../engine/gguf/write.js";
import { anglesOf } from "../engine/onnx/rope.js";
import { tokenizerMetadata } from "./gguf-tokenizer.js";
import type { ModelSource } from "./source.js";

export const ggufTypes = ["f16", "q8_0"] as const;
export type GgufType = (typeof ggufTypes)[number];

/** Numbers of `general.file_type`. */
const fileTypes: { readonly [type in GgufType]: number } = { f16: 1, q8_0: 7 };

/**
 * Writes the file `path`. Matrices are of the type (rows that are no whole blocks of Q8_0 in F16), vectors in F32. Throws
 * ModelError for what the format has no word for, and for numbers that the type cannot hold.
 */
export async function exportGguf(model: ModelSource, path: string, type: GgufType): Promise<void> {
  const metadata = [...shapeMetadata(model, type), ...tokenizerMetadata(model)];
  await writeGguf(path, metadata, [...model.tensors.map((tensor) => tensorOf(model, tensor, type)), ...rotaryDivisors(model)]);
}

function tensorOf({ shape, read }: ModelSource, { name, shape: sizes }: ModelSource["tensors"][number], type: GgufType): GgufTensorToWrite {
  const [, columns] = sizes;
  const stored: WritableType = columns === undefined ? "F32" : type === "q8_0" && columns % blockOf8 === 0 ? "Q8_0" : "F16";
  // The llama architecture turns neighbouring rows together, the others halves of a head.
  const heads =
    shape.family !== "llama" ? undefined : name.endsWith("q_proj.weight") ? shape.heads : name.endsWith("k_proj.weight") ? shape.kvHeads : undefined;
  const fetch = async (): Promise<Float32Array> => {
    const values = await read(name);
    return heads === undefined ? values : headsInterleaved(values, heads, columns as number);
  };
  return { name: ggufName(name), shape: sizes, type: stored, fetch };
}

function shapeMetadata({ folder, name, shape }: ModelSource, type: GgufType): Metadata {
  const { family } = shape;
  return [
    ["general.architecture", { text: family }],
    ["general.type", { text: "model" }],
    ["general.name", { text: name }],
    ["general.file_type", { count: fileTypes[type] }],
    ["general.quantization_version", { count: 2 }],
    [`${family}.vocab_size`, { count: shape.vocabulary }],
    [`${family}.context_length`, { count: shape.maxPositions }],
    [`${family}.embedding_length`, { count: shape.width }],
    [`${family}.block_count`, { count: shape.layers }],
    [`${family}.feed_forward_length`, { count: shape.mlp }],
    [`${family}.attention.head_count`, { count: shape.heads }],
    [`${family}.attention.head_count_kv`, { count: shape.kvHeads }],
    [`${family}.attention.key_length`, { count: shape.headDim }],
    [`${family}.attention.value_length`, { count: shape.headDim }],
    [`${family}.attention.layer_norm_rms_epsilon`, { float: shape.rmsEpsilon }],
    [`${family}.rope.dimension_count`, { count: shape.headDim }],
    [`${family}.rope.freq_base`, { float: shape.ropeTheta }],
    ...ropeMetadata(folder, shape),
  ];
}

function ropeMetadata(folder: string, { family, rope }: ModelSource["shape"]): Metadata {
  if (rope.kind === "default" || rope.kind === "llama3") return [];
  const refuse = (what: string): never => {
    throw new ModelError({ place: folder, cause: `GGUF files have no word for its rotary embedding (${what})`, mend: "export to onnx" });
  };
  if (rope.kind === "dynamic") return refuse("dynamic");
  const scaling: Metadata = [
    [`${family}.rope.scaling.type`, { text: rope.kind }],
    [`${family}.rope.scaling.factor`, { float: rope.factor }],
  ];
  if (rope.kind === "linear") return scaling;
  const { factor, original, betaFast, betaSlow, truncate, attentionFactor } = rope;
  const usual = betaFast === 32 && betaSlow === 1 && truncate && Math.abs(attentionFactor - (0.1 * Math.log(factor) + 1)) < 1e-6;
  return usual ? [...scaling, [`${family}.rope.scaling.original_context_length`, { count: original }]] : refuse("yarn with settings of its own");
}

/** What llama3's scaling divides each frequency by. */
function rotaryDivisors({ shape }: ModelSource): GgufTensorToWrite[] {
  if (shape.rope.kind !== "llama3") return [];
  const plain = anglesOf({ ...shape, rope: { kind: "default" } }).frequencies;
  const divisors = Float32Array.from(anglesOf(shape).frequencies, (frequency, i) => (plain[i] as number) / frequency);
  return [{ name: rotaryTensor, shape: [divisors.length], type: "F32", fetch: async () => divisors }];
}
