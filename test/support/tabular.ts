/** Runs on softmax tables, which learn in seconds. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { saveAlphabet } from "../../src/core/alphabet.js";
import type { Tokenizer } from "../../src/core/tokenizer.js";
import type { TableConfigInput } from "../../src/engine/table/config.js";
import { TableEngine } from "../../src/engine/table/engine.js";
import type { TrainOptions } from "../../src/train/train.js";
import successor, { tokenizer } from "./successor-task.js";

export { successor, tokenizer };

export const scratch = (): string => mkdtempSync(join(tmpdir(), "touchstone-train-"));

/** Writes a fresh table policy as a model folder: it sees the last two tokens. */
export async function tablePolicy(config: Partial<TableConfigInput> = {}, seed = 1, alphabet: Tokenizer = tokenizer): Promise<string> {
  const folder = join(scratch(), "policy");
  const engine = new TableEngine();
  const model = { kind: "table", vocabulary: alphabet.size, order: 2, maxTokens: 64, ...config } as never;
  await engine.weights.load({ role: "policy", source: { from: "config", config: model, seed }, trainable: false });
  await engine.weights.save({ role: "policy" }, folder);
  await saveAlphabet(alphabet, folder);
  await engine.close();
  return folder;
}

/** Options of a run of the task in a new folder. */
export function options(model: string, more: Partial<TrainOptions> = {}): TrainOptions {
  return {
    model,
    out: join(scratch(), "run"),
    task: successor(),
    engine: { name: "table" },
    steps: 6,
    problems: 4,
    group: 4,
    lr: 0.3,
    checkpoint: { every: 2, keep_last: 100 },
    ...more,
  };
}
