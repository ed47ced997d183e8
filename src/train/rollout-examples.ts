/**
 * Rollouts as examples for supervised training (rejection sampling): what `touchstone sample` wrote, or those of a run. The
 * token ids are those that were sampled; nothing is turned into text and encoded again.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { DataError } from "../core/errors.js";
import { jsonLines, LineFaults } from "../core/json-lines.js";
import type { Tokenizer } from "../core/tokenizer.js";
import type { Example } from "./sft.js";
import { RunReader } from "./store/reader.js";

export interface RolloutChoice {
  /** Accepted ones alone. */
  readonly accepted: boolean;
  /** At most so many different ones a problem, in their order; absent: all. */
  readonly perProblem?: number;
}

export interface RolloutExamples {
  readonly examples: readonly Example[];
  /** How many there were, and how many problems the chosen ones are of. */
  readonly total: number;
  readonly problems: number;
}

interface Rollout extends Example {
  readonly problem: string;
  readonly accepted: boolean;
}

const ids = z.array(z.int().min(0)).min(1);
const sampled = z.object({
  tokenizer: z.string(),
  prompt_ids: ids,
  ids,
  sampled: z.array(z.int().min(0).max(1)).optional(),
  problem: z.object({ key: z.string() }),
  verdict: z.object({ kind: z.string() }),
});

const mend = "give a file of touchstone sample --out, or the folder of a run";

/** The chosen rollouts of a file or run. Throws DataError for another tokenizer, for what is longer than `maxTokens`, and where none is left. */
export async function rolloutExamples(path: string, tokenizer: Tokenizer, maxTokens: number, choice: RolloutChoice): Promise<RolloutExamples> {
  const rollouts = existsSync(join(path, "run.json")) ? await ofRun(path, tokenizer) : ofFile(path, tokenizer);
  const taken = new Map<string, Set<string>>();
  const chosen = rollouts.filter(({ problem, accepted, response }) => {
    if (choice.accepted && !accepted) return false;
    const own = taken.get(problem) ?? new Set();
    taken.set(problem, own);
    if (choice.perProblem === undefined) return true;
    const text = response.join();
    if (own.has(text) || own.size >= choice.perProblem) return false;
    own.add(text);
    return true;
  });
  if (chosen.length === 0) {
    const cause = rollouts.length === 0 ? "it has no rollout" : `none of its ${rollouts.length} rollouts is accepted`;
    throw new DataError({ place: path, cause, mend: "draw more samples a problem, or pose easier problems" });
  }
  const long = chosen.filter(({ context, response }) => context.length + response.length > maxTokens);
  if (long.length > 0) {
    throw new DataError({
      place: path,
      cause: `${long.length} of the ${chosen.length} chosen rollouts have more than the ${maxTokens} tokens that the model takes`,
      mend: "give a model for longer sequences, or sample with a smaller budget",
    });
  }
  const examples = chosen.map(({ context, response, loss }) => ({ context, response, ...(loss && { loss }) }));
  return { examples, total: rollouts.length, problems: new Set(chosen.map(({ problem }) => problem)).size };
}

function ofFile(file: string, tokenizer: Tokenizer): Rollout[] {
  const faults = new LineFaults();
  const rollouts: Rollout[] = [];
  let lines = 0;
  for (const { number, blank, record, fault } of jsonLines(file)) {
    if (blank) continue;
    lines++;
    const read = sampled.safeParse(record);
    if (!read.success) {
      const [issue] = read.error.issues;
      faults.add(number, fault ?? `it is no rollout with token ids (${issue?.path.join(".")}: ${issue?.message})`);
      continue;
    }
    const { tokenizer: id, prompt_ids: context, ids: response, sampled: drawn, problem, verdict } = read.data;
    if (id !== tokenizer.id) throw otherTokenizer(`${file}, line ${number}`, id, tokenizer);
    const beyond = [...context, ...response].find((each) => each >= tokenizer.size);
    if (beyond !== undefined) faults.add(number, `it has the token ${beyond}, and the tokenizer has ${tokenizer.size}`);
    else if (drawn !== undefined && drawn.length !== response.length)
      faults.add(number, `it has ${response.length} ids, and ${drawn.length} entries in sampled`);
    else
      rollouts.push({
        problem: problem.key,
        accepted: verdict.kind === "accept",
        context: Int32Array.from(context),
        response: Int32Array.from(response),
        ...(drawn && { loss: Uint8Array.from(drawn) }),
      });
  }
  if (faults.count > 0) throw faults.error(file, lines, mend);
  return rollouts;
}

async function ofRun(folder: string, tokenizer: Tokenizer): Promise<Rollout[]> {
  const reader = RunReader.open(folder);
  const { tokenizer: id } = reader.run.fingerprint;
  if (id !== tokenizer.id) throw otherTokenizer(folder, String(id), tokenizer);
  const rollouts: Rollout[] = [];
  for (const { step } of reader.rolloutIndex()) {
    for (const { group } of await reader.groups(step)) {
      for (const { purpose, trainedUnder, response, turns, sampled: loss, verdict } of group.trajectories) {
        if (purpose !== "train") continue;
        rollouts.push({ problem: group.problem.key, accepted: verdict.kind === "accept", context: trainedUnder.ids, response, ...(turns && { loss }) });
      }
    }
  }
  return rollouts;
}

function otherTokenizer(place: string, id: string, tokenizer: Tokenizer): DataError {
  return new DataError({
    place,
    cause: `its token ids are of the tokenizer ${id}, and the model has ${tokenizer.id}`,
    mend: "begin with a model of the same tokenizer",
  });
}
