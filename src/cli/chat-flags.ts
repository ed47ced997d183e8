/** Flags of the chat template and of stop strings, wherever a model is named. */
import type { Command } from "commander";
import type { Json } from "../core/json.js";
import { readChatOptions } from "../tokenizers/chat-options.js";
import type { TokenizerOptions } from "../tokenizers/load.js";
import { jsonObject, someText, someTexts } from "./flags.js";
import { runOf } from "./run-of.js";

export interface ChatFlags {
  readonly chatTemplate?: string;
  readonly chatTemplateKwargs?: { readonly [name: string]: Json };
  readonly tools?: string;
  readonly system?: string;
}

export interface StopFlags {
  readonly stop?: readonly string[];
}

/** Adds the flags of the chat template. */
export function chatOptions(command: Command): Command {
  return command
    .option("--chat-template <file>", "a chat template (Jinja) in place of the model's", someText("--chat-template"))
    .option("--chat-template-kwargs <json>", `its variables, such as '{"enable_thinking": false}'`, jsonObject("--chat-template-kwargs"))
    .option("--tools <file>", "JSON file with a list of functions that the template names to the policy", someText("--tools"))
    .option("--system <text>", "a system message before conversations that begin without one", someText("--system"));
}

/** Adds --stop. */
export function stopOption(command: Command): Command {
  return command.option("--stop <text>", "ends a response with the token that completes this text; may be repeated", someTexts("--stop"));
}

/** What the flags say of the chat template. Throws ConfigError for files that cannot be read. */
export function chatOf({ chatTemplate, chatTemplateKwargs, tools, system }: ChatFlags): TokenizerOptions {
  const options = { chat_template: chatTemplate, chat_template_kwargs: chatTemplateKwargs, tools, system };
  return readChatOptions(options, (name) => `option --${name.replaceAll("_", "-")}`);
}

/**
 * The flags with what the run that `model` names was trained with, where they say nothing themselves. Its template is in its
 * checkpoints. `raw`: there is no template, so the stop strings alone count.
 */
export function withChatOfRun<F extends ChatFlags & StopFlags>(model: string, flags: F, raw = false): F {
  const config = runOf(model)?.config as { readonly chat_template_kwargs?: ChatFlags["chatTemplateKwargs"] } & Pick<
    ChatFlags & StopFlags,
    "tools" | "system" | "stop"
  >;
  if (config === undefined) return flags;
  const { chat_template_kwargs: chatTemplateKwargs, tools, system, stop } = config;
  if (raw) return { ...(stop && { stop }), ...flags };
  return { ...(chatTemplateKwargs && { chatTemplateKwargs }), ...(tools && { tools }), ...(system && { system }), ...(stop && { stop }), ...flags };
}
