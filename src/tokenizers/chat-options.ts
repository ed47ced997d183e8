/** What a user says of chat templates, read from the files that they name: the same in configurations and flags. */
import { ConfigError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import { placeIn, readJson } from "../core/json-text.js";
import { readText } from "../core/text-file.js";
import type { TokenizerOptions } from "./load.js";

/** By the names of configurations. */
export interface ChatOptions {
  /** File of a template in place of the model's. */
  readonly chat_template?: string | undefined;
  readonly chat_template_kwargs?: { readonly [name: string]: Json } | undefined;
  /** JSON file with a list of functions that the policy may call. */
  readonly tools?: string | undefined;
  readonly system?: string | undefined;
}

const mostBytes = 2 ** 24;
/** The template's own variables, which come from the conversation. */
const taken = ["messages", "add_generation_prompt", "tools"];

/** Reads the files. `placeOf`: how an option is called where it was written. Throws ConfigError. */
export function readChatOptions(options: ChatOptions, placeOf: (option: keyof ChatOptions) => string): TokenizerOptions {
  const { chat_template: template, chat_template_kwargs: kwargs, tools, system } = options;
  const own = Object.keys(kwargs ?? {}).find((name) => taken.includes(name));
  if (own !== undefined) {
    const mend = own === "tools" ? "give it as tools" : "leave it out";
    throw new ConfigError({ place: placeOf("chat_template_kwargs"), cause: `${own} is what the conversation gives to the template`, mend });
  }
  return {
    ...(template === undefined ? {} : { template: textOf(template, placeOf("chat_template")), place: template }),
    ...(kwargs === undefined ? {} : { kwargs }),
    ...(tools === undefined ? {} : { tools: toolsOf(tools, placeOf("tools")) }),
    ...(system === undefined ? {} : { system }),
  };
}

const textOf = (file: string, place: string): string =>
  readText(file, mostBytes, (at, cause, mend = "give a text file") => new ConfigError({ place: `${place}, ${at}`, cause, mend }));

function toolsOf(file: string, place: string): readonly Json[] {
  const text = textOf(file, place);
  const { value, fault } = readJson(text);
  if (fault !== undefined) {
    const { line, column } = placeIn(text, fault.at);
    throw new ConfigError({
      place: `${place}, ${file}, line ${line}, column ${column}`,
      cause: `it is not JSON: ${fault.cause}`,
      mend: "correct the text there",
    });
  }
  const isTool = (tool: unknown): boolean => typeof tool === "object" && tool !== null && !Array.isArray(tool);
  if (Array.isArray(value) && value.length > 0 && value.every(isTool)) return value as Json[];
  throw new ConfigError({
    place: `${place}, ${file}`,
    cause: "it is no list of functions",
    mend: 'give a JSON list, such as [{"type": "function", "function": {"name": "add", "description": "…", "parameters": {…}}}]',
  });
}
