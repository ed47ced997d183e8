/** A model's folder, and files of tensors in float64. */
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ModelError } from "../../core/errors.js";
import type { Json } from "../../core/json.js";
import type { TensorValue } from "../contract.js";
import { SafetensorsFile } from "../safetensors.js";
import { writeSafetensors } from "../safetensors-write.js";

/** Reads all tensors of a safetensors file; throws a ModelError that says what is wrong with it. */
export async function readTensors(path: string): Promise<{ tensors: TensorValue[]; metadata: { readonly [key: string]: string } }> {
  const file = await SafetensorsFile.open(path);
  try {
    const tensors: TensorValue[] = [];
    for (const { name, shape } of file.entries.values()) tensors.push({ name, shape, data: await file.readFloat64(name) });
    return { tensors, metadata: file.metadata };
  } finally {
    await file.close();
  }
}

/** Writes config.json and model.safetensors as one folder, which appears whole; a folder that was there is replaced. */
export async function writeFolder(folder: string, config: Json, tensors: readonly TensorValue[]): Promise<void> {
  const beside = `${folder}.${process.pid}.part`;
  const old = `${folder}.${process.pid}.old`;
  await rm(beside, { recursive: true, force: true });
  await mkdir(beside, { recursive: true });
  await writeFile(join(beside, "config.json"), `${JSON.stringify(config, null, 2)}\n`);
  await writeSafetensors(join(beside, "model.safetensors"), tensors);
  await rename(folder, old).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
  });
  await rename(beside, folder);
  await rm(old, { recursive: true, force: true });
}

/** Reads a folder of `writeFolder`. */
export async function readFolder(folder: string): Promise<{ config: Json; tensors: TensorValue[] }> {
  const file = join(folder, "config.json");
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    throw new ModelError({ place: file, cause: `it cannot be read (${error.code})`, mend: "check the path" }, { cause: error });
  });
  let config: Json;
  try {
    config = JSON.parse(text);
  } catch {
    throw new ModelError({ place: file, cause: "it is not JSON", mend: "save the model again" });
  }
  return { config, tensors: (await readTensors(join(folder, "model.safetensors"))).tensors };
}
