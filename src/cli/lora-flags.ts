/** Flags of adapters and of the form in which a policy is saved, for `train` and `sft`. */
import { type Command, Option } from "commander";
import { positiveNumber, wholeNumber } from "./flags.js";
import { type BaseFlag, baseOption } from "./read-model.js";

export interface LoraFlags extends BaseFlag {
  readonly lora?: number;
  readonly loraAlpha?: number;
  readonly loraTargets?: "all-linear" | string[];
  readonly save?: "merged" | "adapter";
  readonly dtype?: "f32" | "bf16";
}

const targetsOf = (text: string): "all-linear" | string[] =>
  text === "all-linear"
    ? text
    : text
        .split(",")
        .map((name) => name.trim())
        .filter((name) => name !== "");

/** Adds them; `save`: what --save does. */
export function loraOptions(command: Command, save: string): Command {
  return baseOption(command)
    .option("--lora <rank>", "train a low-rank adapter of this rank, and leave the weights as they are", wholeNumber("--lora", 1))
    .option("--lora-alpha <number>", "its product is added times alpha / rank (default: twice the rank)", positiveNumber("--lora-alpha"))
    .option("--lora-targets <names>", "linear layers that it lies on, such as q_proj,v_proj (default: all-linear)", targetsOf)
    .addOption(new Option("--save <form>", save).choices(["merged", "adapter"]))
    .addOption(new Option("--dtype <type>", "numbers of whole weights that are saved (default: f32)").choices(["f32", "bf16"]));
}
