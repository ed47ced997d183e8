/** A Hugging Face folder that transformers loads: whole weights, an adapter merged into them, as float32 or bfloat16. */
import { join } from "node:path";
import { float32ToBfloat16 } from "../engine/half.js";
import { toGenerationConfig, toHuggingFaceConfig } from "../engine/onnx/config.js";
import { files } from "../engine/onnx/folder.js";
import { putFolder, writeJson } from "../engine/onnx/folder-save.js";
import { writeSafetensors } from "../engine/safetensors-write.js";
import type { ModelSource } from "./source.js";

export const folderTypes = ["f32", "bf16"] as const;
export type FolderType = (typeof folderTypes)[number];

/** Writes configuration and weights tensor by tensor; `others` puts what else belongs beside them. */
export async function exportFolder(model: ModelSource, folder: string, type: FolderType, others: (folder: string) => Promise<void>): Promise<void> {
  const half = type === "bf16";
  await putFolder(folder, async (beside) => {
    await writeJson(join(beside, files.config), toHuggingFaceConfig(model.shape, half ? "bfloat16" : "float32"));
    await writeJson(join(beside, files.generation), toGenerationConfig(model.shape));
    await others(beside);
    const tensors = model.tensors.map(({ name, shape }) => ({
      name,
      shape,
      dtype: half ? ("BF16" as const) : ("F32" as const),
      fetch: async () => (half ? float32ToBfloat16(await model.read(name)) : model.read(name)),
    }));
    await writeSafetensors(join(beside, files.weights), tensors, { format: "pt" });
  });
}
