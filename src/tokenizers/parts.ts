/** Whether the files of a tokenizer hold together: what the library would read wrongly without a word is refused by name. */
import { ModelError } from "../core/errors.js";
import type { Json } from "../core/json.js";

type Fields = { readonly [key: string]: Json };

const isObject = (value: unknown): value is Fields => value !== null && typeof value === "object" && !Array.isArray(value);
const isId = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
const quoted = (value: unknown): string => JSON.stringify(value ?? null);

/** Checks a tokenizer.json: ids that are none or that two tokens share, merges of what is no token, added tokens in another's place. Throws ModelError. */
export function checkParts(file: object, place: string): void {
  const refuse = (cause: string): never => {
    throw new ModelError({ place, cause, mend: "take the file that belongs to the model" });
  };
  const { model, added_tokens: added = [] } = file as { readonly model: Fields; readonly added_tokens?: Json };
  const names = new Map<number, string>();
  if (model.type === "Unigram") {
    if (!Array.isArray(model.vocab)) refuse("its vocabulary is no list of pieces with their scores");
    (model.vocab as readonly Json[]).forEach((piece, id) => {
      if (!Array.isArray(piece) || typeof piece[0] !== "string" || typeof piece[1] !== "number") refuse(`piece ${id} of its vocabulary is ${quoted(piece)}`);
      else names.set(id, piece[0]);
    });
  } else {
    if (!isObject(model.vocab)) refuse("its vocabulary is no object of tokens and their ids");
    for (const [name, id] of Object.entries(model.vocab as Fields)) {
      if (!isId(id)) refuse(`token ${quoted(name)} of its vocabulary has the id ${quoted(id)}`);
      const other = names.get(id as number);
      if (other !== undefined) refuse(`tokens ${quoted(other)} and ${quoted(name)} of its vocabulary have the same id ${id}`);
      names.set(id as number, name);
    }
  }
  if (!Array.isArray(added)) refuse("added_tokens is no list");
  const placed = new Map<number, string>();
  for (const each of added as readonly Json[]) {
    const { id, content } = isObject(each) ? each : {};
    if (!isId(id) || typeof content !== "string") refuse(`added_tokens has ${quoted(each)}, which is no token with an id and a content`);
    const other = placed.get(id as number) ?? names.get(id as number);
    if (other !== undefined && other !== content) refuse(`added token ${quoted(content)} has the id ${id} of token ${quoted(other)}`);
    placed.set(id as number, content as string);
  }
  if (model.type !== "BPE" && model.merges === undefined) return;
  if (!Array.isArray(model.merges)) refuse("it has no list of merges");
  const tokens = new Set(names.values());
  for (const merge of model.merges as readonly Json[]) {
    // Two tokens, or a text of both with a blank between.
    const parts = typeof merge === "string" ? merge.split(" ") : merge;
    if (!Array.isArray(parts) || parts.length !== 2 || parts.some((part) => typeof part !== "string")) refuse(`merge ${quoted(merge)} is not of two tokens`);
    const [left, right] = parts as readonly [string, string];
    const missing = [left, right].find((part) => !tokens.has(part));
    if (missing !== undefined) refuse(`merge ${quoted(merge)} is of ${quoted(missing)}, which is no token`);
  }
}

/** Checks a tokenizer_config.json: named tokens are texts, and so are chat templates. Throws ModelError. */
export function checkSettings(config: Fields, place: string): void {
  const refuse = (cause: string, mend: string): never => {
    throw new ModelError({ place, cause, mend });
  };
  for (const key of ["bos_token", "eos_token", "pad_token", "unk_token"]) {
    const value = config[key] ?? null;
    if (value === null || typeof value === "string" || (isObject(value) && typeof value.content === "string")) continue;
    refuse(`${key} is ${quoted(value)}`, "write the token's text");
  }
  const { chat_template: template = null } = config;
  if (template === null || typeof template === "string") return;
  const named = Array.isArray(template) && template.length > 0 && template.every((each) => isObject(each) && typeof each.template === "string");
  if (!named) refuse(`chat_template is ${quoted(template).slice(0, 80)}`, "write the template's text, or a list of templates with their names");
}
