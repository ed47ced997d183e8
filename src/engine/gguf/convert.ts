/** A GGUF file as a Hugging Face folder: what every other part of the program, and other programs, can load. */
import { mkdir, rename, rm, statfs, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ModelError } from "../../core/errors.js";
import type { Json } from "../../core/json.js";
import { type DecoderConfig, parseModelConfig } from "../onnx/config.js";
import { layoutOf } from "../onnx/params.js";
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
    checkTensors(file, names, parseModelConfig(shape.config, `${path}, metadata`));
    const { tokenizer, config } = tokenizerOf(file);
    await mkdir(dirname(folder), { recursive: true });
    await refuseWithoutRoom(file, folder);
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

/** Holds the tensors to the metadata by their headers: what is found afterwards would be found in a folder that nobody asked for. */
function checkTensors(file: GgufFile, names: ReadonlyMap<string, string>, config: DecoderConfig): void {
  for (const { name, shape } of layoutOf(config).flatMap(({ parts }) => parts)) {
    const own = names.get(name);
    if (own === undefined)
      throw new ModelError({ place: file.path, cause: `it has no tensor for ${name}`, mend: "convert the model again, or take a whole file" });
    const { shape: has } = file.tensor(own);
    if (has.length === shape.length && has.every((n, i) => n === shape[i])) continue;
    const cause = `tensor ${own} has the shape [${has}] and its metadata asks for [${shape}]`;
    throw new ModelError({ place: file.path, cause, mend: "convert the model again" });
  }
}

/** Throws ModelError where the disk has no room for the numbers as float32, which are several times as large as the file. */
async function refuseWithoutRoom(file: GgufFile, folder: string): Promise<void> {
  const needed = [...file.tensors.values()].reduce((sum, { shape }) => sum + 4 * shape.reduce((product, n) => product * n, 1), 0);
  const { bavail, bsize } = await statfs(dirname(folder));
  const free = bavail * bsize;
  if (needed <= free) return;
  const gigabytes = (bytes: number): string => `${(bytes / 1e9).toFixed(1)} GB`;
  throw new ModelError({
    place: file.path,
    cause: `as float32 it takes ${gigabytes(needed)} and ${dirname(folder)} has ${gigabytes(free)} left`,
    mend: "make room there, or name another cache folder in TOUCHSTONE_CACHE",
  });
}
