/** `touchstone export`: a model in the formats of other programs. */
import { existsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import type { Command } from "commander";
import { ConfigError } from "../core/errors.js";
import { refuseUnlessWritable } from "../core/writable.js";
import { parameterCount } from "../engine/onnx/params.js";
import { exportFolder, type FolderType, folderTypes } from "../export/folder.js";
import { exportGguf, type GgufType, ggufTypes } from "../export/gguf.js";
import { exportOnnx } from "../export/onnx.js";
import { openModel } from "../export/source.js";
import { findModel, withTemplateOf } from "../train/find-model.js";
import { saveTokenizer } from "../train/model-files.js";
import { modelHelp } from "../train/model-name.js";
import { refuseUnlessRoom, refuseUnlessSavable } from "../train/save-policy.js";
import { quoted, someText } from "./flags.js";
import { print } from "./output.js";
import { type BaseFlag, baseOption, waiting } from "./read-model.js";

interface ExportFlags extends BaseFlag {
  readonly to: Format;
  readonly type?: string;
  readonly out: string;
  readonly json?: true;
}

/** Types of each format, the default first. */
const types = { folder: folderTypes, gguf: ggufTypes, onnx: ["f32"] } as const;
type Format = keyof typeof types;

/** One of a few words. */
function oneOf<const Words extends readonly string[]>(flag: string, words: Words): (text: string) => Words[number] {
  return (text) => {
    if (words.includes(text)) return text;
    throw new ConfigError({ place: `option ${flag}`, cause: `got ${quoted(text)}`, mend: `give one of ${words.join(", ")}` });
  };
}

export function define(command: Command): void {
  baseOption(command)
    .usage("MODEL --to FORMAT --out PATH [options]")
    .argument("<model>", modelHelp)
    .requiredOption(
      "--to <format>",
      "folder (for transformers and for training on), gguf (one file, for llama.cpp and its kin) or onnx (a folder, for transformers.js)",
      oneOf("--to", Object.keys(types) as Format[]),
    )
    .option("--type <type>", "of the numbers: of a folder f32 (default) or bf16, of a GGUF file's matrices f16 (default) or q8_0")
    .requiredOption("--out <path>", "file or folder to write; neither may be there yet", someText("--out"))
    .option("--json", "print a JSON object")
    .addHelpText(
      "after",
      `
Tokenizer and chat template go along, and an adapter is merged into its base. Numbers of an ONNX folder are float32.

Examples:
  $ touchstone export runs/lora@best --to folder --type bf16 --out merged
  $ touchstone export runs/first@best --to gguf --type q8_0 --out first.gguf
  $ touchstone export my-model --to onnx --out my-model-onnx`,
    )
    .action(run);
}

async function run(name: string, { to, type: asked, out, base, json }: ExportFlags): Promise<void> {
  const allowed: readonly string[] = types[to];
  const type = asked ?? (allowed[0] as string);
  if (!allowed.includes(type)) {
    throw new ConfigError({
      place: "option --type",
      cause: `it is ${quoted(type)}, and --to ${to} has ${allowed.join(" and ")}`,
      mend: "give one of these, or leave it out",
    });
  }
  const found = await findModel(name, { base, onProgress: waiting(json === true) });
  const chat = withTemplateOf(found, {});
  const model = await openModel(found.folder, found.adapter, chat);
  try {
    const parameters = parameterCount(model.shape);
    if (to === "gguf") {
      refuseUnlessNew(out, parameters * (type === "q8_0" ? 34 / 32 : 2));
      await exportGguf(model, out, type as GgufType);
    } else {
      refuseUnlessSavable(out, parameters, "option --out");
      if (to === "onnx") await exportOnnx(model, out);
      else await exportFolder(model, out, type as FolderType, (folder) => saveTokenizer(model.tokenizer, found.folder, folder, chat.template));
    }
    if (json) print(JSON.stringify({ model: name, format: to, type, out, parameters }));
    else print(`${out}: ${(parameters / 1e6).toFixed(1)}M parameters as ${titles[to]}, ${type === "f32" ? "float32" : type}`);
  } finally {
    await model.close();
  }
}

const titles: { readonly [format in Format]: string } = { folder: "a model folder", gguf: "GGUF", onnx: "ONNX" };

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
