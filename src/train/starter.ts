/** Small policies that start from nothing: their shapes, and the warm start on a task's worked solutions. */
import { ConfigError, DataError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import type { Problem } from "../core/problem.js";
import { randomKey } from "../core/random.js";
import type { Tokenizer } from "../core/tokenizer.js";
import type { Task } from "../tasks/contract.js";
import type { Example } from "./sft.js";

/** Shapes by name; the name is about the number of parameters. */
export const policySizes = {
  "60k": { layers: 2, width: 48, heads: 4, mlp: 144 },
  "100k": { layers: 2, width: 64, heads: 4, mlp: 192 },
  "1M": { layers: 4, width: 128, heads: 4, mlp: 512 },
  "4M": { layers: 6, width: 256, heads: 8, mlp: 704 },
} as const;
export type PolicySize = keyof typeof policySizes;

/** The config.json of a new policy over a tokenizer's vocabulary, for sequences of at most `maxTokens`. */
export function policyConfig(size: PolicySize, tokenizer: Pick<Tokenizer, "size" | "eosIds">, maxTokens: number): { [key: string]: Json } {
  const { layers, width, heads, mlp } = policySizes[size];
  return {
    architectures: ["LlamaForCausalLM"],
    model_type: "llama",
    vocab_size: tokenizer.size,
    hidden_size: width,
    num_hidden_layers: layers,
    num_attention_heads: heads,
    num_key_value_heads: heads,
    intermediate_size: mlp,
    max_position_embeddings: maxTokens,
    // Four times the usual 0.02, which is made for widths of a thousand: narrow policies learn in a fifth of the steps.
    initializer_range: 0.08,
    rms_norm_eps: 1e-5,
    rope_theta: 10000,
    tie_word_embeddings: true,
    hidden_act: "silu",
    eos_token_id: [...tokenizer.eosIds],
  };
}

/** How many different problems a warm start draws; later rounds meet them again with other slips. */
const pool = 32_768;

/** The problems of a warm start: of the split `warm`, or `train` where nothing is warm. */
export function warmProblems(task: Task, count: number, seed: number): readonly Problem[] {
  const split = task.size("warm") > 0 ? "warm" : "train";
  try {
    return task.problems(split, Math.min(count, pool, task.size(split)), seed);
  } catch (error) {
    // A task that draws from few problems is learnt from those, again and again.
    const found = error instanceof DataError ? error.data.found : undefined;
    if (typeof found !== "number" || found === 0) throw error;
    return task.problems(split, found, seed);
  }
}

/**
 * Batches of a task's worked solutions from its split `warm`, or `train` where nothing is warm: prompt as the chat template
 * renders it, solution with the end token. A task that draws solutions draws them anew each time a problem comes round; else
 * they are the rows' own, and rows without one are passed over. Throws a ConfigError where the task has none.
 */
export function workedBatches(task: Task, tokenizer: Tokenizer, batchSize: number, steps: number, seed: number): (step: number) => Example[] {
  const all = warmProblems(task, batchSize * steps, seed);
  const written = ({ privileged }: Problem): string | undefined => (typeof privileged?.solution === "string" ? privileged.solution : undefined);
  const problems = task.solution ? all : all.filter((problem) => written(problem) !== undefined);
  const solution = task.solution?.bind(task) ?? ((problem: Problem) => written(problem) as string);
  if (problems.length === 0) {
    throw new ConfigError({
      place: `task ${task.name}`,
      cause: "it has no worked solutions",
      mend: "give prompt and response pairs with --data, or add `solution` to the task or its rows",
    });
  }
  const prompts = problems.map(({ prompt }) => tokenizer.render(prompt, { addGenerationPrompt: true }));
  return (step) =>
    Array.from({ length: batchSize }, (_, i) => {
      const n = step * batchSize + i;
      const at = n % problems.length;
      const problem = problems[at];
      const key = randomKey({ seed, purpose: "worked-solution", problem: problem.key, step: Math.floor(n / problems.length) });
      return { context: prompts[at], response: withEnd(tokenizer, solution(problem, key)) };
    });
}

/** A response as ids, with the end token that the policy must learn. */
export function withEnd(tokenizer: Tokenizer, text: string): Int32Array {
  return Int32Array.from([...tokenizer.encode(text), tokenizer.eosIds[0]]);
}

/** How many numbers a policy of that size has over a vocabulary. */
export function parametersOf(size: PolicySize, vocabulary: number): number {
  const { layers, width, mlp } = policySizes[size];
  return layers * (4 * width * width + 3 * width * mlp + 2 * width) + vocabulary * width + width;
}
