/** `touchstone export`: a model in the formats of other programs. */
import { existsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import type { Command } from "commander";
import { ConfigError } from "../core/errors.js";
import { refuseUnlessWritable } from "../core/writable.js";
import { parameterCount } from "../engine/onnx/params.js";
import { exportGguf, type GgufType, ggufTypes } from "../export/gguf.js";
import { exportOnnx } from "../export/onnx.js";
import { openModel } from "../export/source.js";
import { localModel } from "../train/local-model.js";
import { modelHelp, namedModel } from "../train/model-name.js";
import { refuseUnlessRoom, refuseUnlessSavable } from "../train/save-policy.js";
import { quoted, someText } from "./flags.js";
import { print } from "./output.js";

interface ExportFlags {
  readonly to: "gguf" | "onnx";
  readonly type?: GgufType;
  readonly out: string;
  readonly json?: true;
}

/** One of a few words. */
function oneOf<const Words extends readonly string[]>(flag: string, words: Words): (text: string) => Words[number] {
  return (text) => {
    if (words.includes(text)) return text;
    throw new ConfigError({ place: `option ${flag}`, cause: `got ${quoted(text)}`, mend: `give ${words.join(" or ")}` });
  };
}

export function define(command: Command): void {
  command
    .usage("MODEL --to FORMAT --out PATH [options]")
    .argument("<model>", modelHelp)
    .requiredOption("--to <format>", "gguf (one file, for llama.cpp and its kin) or onnx (a folder, for transformers.js)", oneOf("--to", ["gguf", "onnx"]))
    .option("--type <type>", "of a GGUF file's matrices: f16 (default) or q8_0", oneOf("--type", ggufTypes))
    .requiredOption("--out <path>", "file or folder to write; neither may be there yet", someText("--out"))
    .option("--json", "print a JSON object")
    .addHelpText(
      "after",
      `
Tokenizer and chat template go along. Numbers of an ONNX folder are float32.

Examples:
  $ touchstone export runs/first@best --to gguf --type q8_0 --out first.gguf
  $ touchstone export my-model --to onnx --out my-model-onnx`,
    )
    .action(run);
}

async function run(name: string, { to, type, out, json }: ExportFlags): Promise<void> {
  if (to === "onnx" && type !== undefined)
    throw new ConfigError({ place: "option --type", cause: "an ONNX folder has float32 alone", mend: "leave it out, or export to gguf" });
  const { folder } = namedModel(await localModel(name, { onProgress: (what) => json || process.stderr.write(`Waiting for ${what}\n`) }));
  const model = await openModel(folder);
  try {
    const parameters = parameterCount(model.shape);
    if (to === "onnx") {
      refuseUnlessSavable(out, parameters, "option --out");
      await exportOnnx(model, out);
    } else {
      refuseUnlessNew(out, parameters * (type === "q8_0" ? 34 / 32 : 2));
      await exportGguf(model, out, type ?? "f16");
    }
    if (json) print(JSON.stringify({ model: name, format: to, ...(to === "gguf" && { type: type ?? "f16" }), out, parameters }));
    else print(`${out}: ${(parameters / 1e6).toFixed(1)}M parameters as ${to === "gguf" ? `GGUF, ${type ?? "f16"}` : "ONNX, float32"}`);
  } finally {
    await model.close();
  }
}

/** Beside the numbers: vocabulary, merges and the tensors' names. */
const besides = 2 ** 24;

function refuseUnlessNew(file: string, bytes: number): void {
  const place = "option --out";
  if (existsSync(file)) {
    const kind = statSync(file).isDirectory() ? "a folder" : "a file";
    throw new ConfigError({ place, cause: `${file} is ${kind} that is there already`, mend: "give the name of a new file, or remove that one" });
  }
  const folder = dirname(file);
  if (!existsSync(folder)) throw new ConfigError({ place, cause: `there is no folder ${folder}`, mend: "make it, or give another path" });
  refuseUnlessWritable(folder);
  refuseUnlessRoom(folder, bytes + besides, place);
}
