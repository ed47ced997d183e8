/** A GGUF file as a Hugging Face folder: what every other part of the program, and other programs, can load. */
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ModelError } from "../../core/errors.js";
import type { Json } from "../../core/json.js";
import { writeSafetensors } from "../safetensors-write.js";
import { shapeOf } from "./config.js";
import { GgufFile } from "./file.js";
import { headsInHalves, hubNames } from "./names.js";
import { tokenizerOf } from "./tokenizer.js";

/**
 * Writes `folder` (which must not exist) beside itself first, a tensor at a time, in float32: the dequantised values
 * exactly. Throws ModelError for what cannot be read, before anything is written where the header says it.
 */
export async function convertGguf(path: string, folder: string): Promise<void> {
  const file = await GgufFile.open(path);
  const beside = `${folder}.${process.pid}.part`;
  try {
    const shape = await shapeOf(file);
    const names = hubNames(file);
    const { tokenizer, config } = tokenizerOf(file);
    await mkdir(dirname(folder), { recursive: true });
    await mkdir(beside);
    const write = (name: string, json: Json): Promise<void> => writeFile(join(beside, name), `${JSON.stringify(json, null, 1)}\n`);
    await write("config.json", shape.config);
    await write("generation_config.json", { bos_token_id: shape.config.bos_token_id as Json, eos_token_id: shape.config.eos_token_id as Json });
    await write("tokenizer.json", tokenizer);
    await write("tokenizer_config.json", config);
    const tensors = [...names].map(([hub, name]) => ({
      name: hub,
      shape: file.tensor(name).shape,
      dtype: "F32" as const,
      fetch: async (): Promise<Float32Array> => {
        const values = await file.read(name);
        const heads = hub.endsWith("self_attn.q_proj.weight") ? shape.heads : hub.endsWith("self_attn.k_proj.weight") ? shape.kvHeads : undefined;
        return shape.interleaved && heads !== undefined ? headsInHalves(values, heads, file.tensor(name).shape[1] as number) : values;
      },
    }));
    await writeSafetensors(join(beside, "model.safetensors"), tensors, { format: "pt" });
    await rename(beside, folder).catch((error: NodeJS.ErrnoException) => {
      throw new ModelError({ place: folder, cause: `the converted model cannot be put there (${error.code})`, mend: "choose a folder that is not there yet" });
    });
  } finally {
    await rm(beside, { recursive: true, force: true });
    await file.close();
  }
}
