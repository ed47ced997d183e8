/** Where each option of a run was written: in a flag, a --set, or at a line of the configuration file. */
import { ConfigError, DataError, movedTo } from "../core/errors.js";
import { pathText } from "../core/options.js";
import type { Path } from "../core/schema.js";
import { parseTrainConfig, trainConfig } from "../train/config.js";
import { placeInConfig, type Written } from "../train/config-file.js";
import { separate, type TrainOptions } from "../train/train.js";
import type { TrainFlags } from "./train-flags.js";

/** Flags that are not named like their options. */
const named: { readonly [option: string]: string } = {
  "data.file": "data",
  "profile.file": "profile",
  "schedule.kind": "schedule",
  loggers: "logger",
  "engine.name": "engine",
  "engine.deadline_s": "requestDeadline",
};

/** Finds the place of an option, such as `run.yaml, line 3, column 1, option lr` or `option --lr`. */
export function placesOf(flags: TrainFlags, file: Written): (path: Path) => string {
  return (path) => {
    const words = path.map(String);
    const set = flags.set?.find((text) => {
      const option = (text.split("=")[0] as string).trim().split(".");
      return isWithin(words, option) || (words.length > 0 && isWithin(option, words));
    });
    if (set !== undefined) return `option --set ${pathText(path)}`;
    const flag = flagOf(words, flags);
    if (flag !== undefined) return `option ${flag}`;
    if (flags.config === undefined || !(String(path[0]) in file)) return path.length === 0 ? "train" : `train, option ${pathText(path)}`;
    return `${placeInConfig(flags.config, path)}, option ${pathText(path)}`;
  };
}

const isWithin = (words: readonly string[], above: readonly string[]): boolean => above.every((word, i) => words[i] === word);

function flagOf(words: readonly string[], flags: TrainFlags): string | undefined {
  const camel = (text: string): string => text.replace(/[._](\w)/g, (_, letter: string) => letter.toUpperCase());
  const path = words.join(".");
  // `--method-options` and the like hold the options of a part.
  const [part, options, ...inside] = words;
  if (options === "options" && flags[`${part}Options` as keyof TrainFlags] !== undefined) return `--${part}-options, ${inside.join(".")}`;
  const names = [named[path], camel(path), camel(words.at(-1) ?? "")];
  const found = names.find((name) => name !== undefined && name !== "config" && flags[name as keyof TrainFlags] !== undefined);
  return found === undefined ? undefined : `--${found.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** Checks a configuration as written, so that a fault is told where it stands. */
export function checkWritten(config: Written, placeOf: (path: Path) => string): void {
  parseTrainConfig(separate(config as unknown as TrainOptions).input, placeOf);
}

/** The error with its place where the option stands that it names; else the error itself. */
export function placed(error: unknown, placeOf: (path: Path) => string): unknown {
  if (!(error instanceof ConfigError || error instanceof DataError)) return error;
  const [, part, inside] = /^(method|task) [^,]+, option ([\w.]+)$/.exec(error.place) ?? [];
  const option = part === undefined ? error.place : `${part}.options.${inside}`;
  if (!((option.split(".")[0] as string) in trainConfig.shape)) return error;
  const place = placeOf(option.split("."));
  if (place.startsWith("train, ")) return error;
  return movedTo(error, place);
}
