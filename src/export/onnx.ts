/** A model as a folder that transformers.js runs: configuration, tokenizer, and one ONNX graph with a key-value cache. */
import { type FileHandle, mkdir, open, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Json } from "../core/json.js";
import { toGenerationConfig, toHuggingFaceConfig } from "../engine/onnx/config.js";
import { putFolder, writeJson } from "../engine/onnx/folder-save.js";
import { layoutOf, sizeOf } from "../engine/onnx/params.js";
import { type ExternalSpec, encodeModel, type ValueSpec } from "../engine/onnx/proto.js";
import { anglesOf } from "../engine/onnx/rope.js";
import { wholeGraph } from "../engine/onnx/whole-graph.js";
import { digitsAsSplit } from "../tokenizers/hub.js";
import type { ModelSource } from "./source.js";

/** The graph's file, and the one with its numbers beside it: a single file may not pass 2 GB. */
const graphFile = "model.onnx";
const dataFile = `${graphFile}_data`;

/** Fills `folder`, which must be new or empty; numbers are float32. */
export async function exportOnnx(model: ModelSource, folder: string): Promise<void> {
  const { shape, file, config, tokenizer } = model;
  await putFolder(folder, async (beside) => {
    const ends = { eos_token_id: tokenizer.eosIds as Json };
    await writeJson(join(beside, "config.json"), {
      ...toHuggingFaceConfig(shape),
      ...ends,
      "transformers.js_config": { use_external_data_format: { [graphFile]: 1 } },
    });
    await writeJson(join(beside, "generation_config.json"), { ...toGenerationConfig(shape), ...ends });
    // The library behind it takes ASCII digits alone for digits.
    await writeJson(join(beside, "tokenizer.json"), { ...file, pre_tokenizer: digitsAsSplit(file.pre_tokenizer ?? null) });
    await writeJson(join(beside, "tokenizer_config.json"), config);
    await mkdir(join(beside, "onnx"));
    await writeGraph(model, join(beside, "onnx"));
  });
}

async function writeGraph(model: ModelSource, folder: string): Promise<void> {
  const { graph, constants } = wholeGraph(model.shape);
  const isConstant = new Set(constants);
  const external: ExternalSpec[] = [];
  const data = await open(join(folder, dataFile), "w");
  try {
    let offset = 0;
    for (const spec of graph.inputs.filter(({ name }) => isConstant.has(name))) {
      const values = await numbersOf(model, spec.name);
      await write(data, values);
      external.push({ ...(spec as ValueSpec & { readonly dims: readonly number[] }), location: dataFile, offset, length: values.byteLength });
      offset += values.byteLength;
    }
    await data.sync();
  } finally {
    await data.close();
  }
  await writeFile(join(folder, graphFile), encodeModel({ ...graph, inputs: graph.inputs.filter(({ name }) => !isConstant.has(name)), external }));
}

/** A constant of the graph: a parameter by the engine's name, or the cosines or sines of all positions. */
async function numbersOf({ shape, read }: ModelSource, name: string): Promise<Float32Array> {
  if (name === "cos" || name === "sin") {
    const { frequencies, scale } = anglesOf(shape);
    const half = frequencies.length;
    return Float32Array.from({ length: shape.maxPositions * half }, (_, i) => scale * Math[name](Math.floor(i / half) * (frequencies[i % half] as number)));
  }
  const layout = layoutOf(shape).find((each) => each.name === name) as ReturnType<typeof layoutOf>[number];
  const values = new Float32Array(sizeOf(layout));
  let at = 0;
  for (const part of layout.parts) {
    const numbers = await read(part.name);
    values.set(numbers, at);
    at += numbers.length;
  }
  return values;
}

async function write(file: FileHandle, values: Float32Array): Promise<void> {
  const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  for (let done = 0; done < bytes.length; ) done += (await file.write(bytes, done, Math.min(1 << 30, bytes.length - done))).bytesWritten;
}
