/** The contexts of a run's problems: rendered once, with over-long ones refused, left out or cut before step 1. */
import { DataError, ModelError } from "../core/errors.js";
import { type Context, type Problem, placeOfProblem, plainContext } from "../core/problem.js";
import type { Tokenizer } from "../core/tokenizer.js";
import type { ModelInfo } from "../engine/contract.js";
import { refuseLargerTokenizer } from "../tokenizers/load.js";
import type { TrainConfig } from "./config.js";

export interface Contexts {
  /** The problems that are trained on, in order. */
  readonly problems: readonly Problem[];
  readonly contexts: ReadonlyMap<string, Context>;
  readonly skipped: number;
  readonly truncated: number;
}

interface Limits extends Pick<TrainConfig, "max_prompt_tokens"> {
  readonly max_tokens: number;
  /** Absent: they fail, and the caller has no such option. */
  readonly long_prompts?: TrainConfig["long_prompts"];
}

/** Renders all prompts, by the chat template unless `render` says otherwise; throws DataError for what has no tokens, begins twice, or is too long and may not be. */
export function renderContexts(
  problems: readonly Problem[],
  tokenizer: Tokenizer,
  model: Pick<ModelInfo, "vocabulary" | "maxTokens">,
  config: Limits,
  render: (problem: Problem) => Int32Array = ({ prompt }) => tokenizer.render(prompt, { addGenerationPrompt: true }),
): Contexts {
  checkVocabulary(tokenizer, model);
  const room = model.maxTokens - config.max_tokens;
  if (room < 1) {
    throw new DataError({
      place: "max_tokens",
      cause: `the response budget of ${config.max_tokens} leaves no place for a prompt in the model's ${model.maxTokens} tokens`,
      mend: `set it below ${model.maxTokens}`,
    });
  }
  const { long_prompts = "fail" } = config;
  const limit = Math.min(room, config.max_prompt_tokens ?? room);
  const contexts = new Map<string, Context>();
  const long: { readonly problem: Problem; readonly length: number }[] = [];
  const kept: Problem[] = [];
  for (const problem of problems) {
    const ids = rendered(problem, tokenizer, render);
    if (ids.length > limit) {
      long.push({ problem, length: ids.length });
      if (long_prompts !== "truncate") continue;
    }
    contexts.set(problem.key, plainContext(ids.length > limit ? ids.slice(-limit) : ids));
    kept.push(problem);
  }
  if (long.length > 0 && (long_prompts === "fail" || kept.length === 0)) {
    const others = config.long_prompts === undefined ? "leave such problems out" : "set long_prompts to skip or truncate";
    const [{ problem, length }] = long;
    throw new DataError({
      place: placeOfProblem(problem),
      cause: `its prompt has ${length} tokens and at most ${limit} ${room > limit ? "are allowed by max_prompt_tokens" : `fit beside ${config.max_tokens} for the response`} (${long.length} of ${problems.length} prompts are too long)`,
      mend: `${room > limit ? "raise max_prompt_tokens" : "lower max_tokens"}, or ${kept.length === 0 ? "give shorter prompts" : others}`,
      data: { long: long.length, limit },
    });
  }
  const truncate = long_prompts === "truncate";
  return { problems: kept, contexts, skipped: truncate ? 0 : long.length, truncated: truncate ? long.length : 0 };
}

function checkVocabulary(tokenizer: Tokenizer, model: Pick<ModelInfo, "vocabulary">): void {
  refuseLargerTokenizer(tokenizer, model.vocabulary, "model");
  if (tokenizer.eosIds.length === 0) {
    throw new ModelError({ place: "model", cause: "its tokenizer has no end token, so no response would ever stop", mend: "give a tokenizer with one" });
  }
}

function rendered(problem: Problem, tokenizer: Tokenizer, render: (problem: Problem) => Int32Array): Int32Array {
  const place = placeOfProblem(problem);
  let ids: Int32Array;
  try {
    ids = render(problem);
  } catch (error) {
    if (!(error instanceof DataError)) throw error;
    throw new DataError(
      { place, cause: `its prompt has no tokens in this model (${error.message})`, mend: "give the model that fits the task" },
      { cause: error },
    );
  }
  if (ids.length === 0) throw new DataError({ place, cause: "its prompt is rendered to no token", mend: "check the prompt and the chat template" });
  if (tokenizer.bosId !== undefined && ids[0] === tokenizer.bosId && ids[1] === tokenizer.bosId) {
    throw new DataError({ place, cause: "its prompt begins with the beginning token twice", mend: "take it out of the prompt or of the chat template" });
  }
  return ids;
}
