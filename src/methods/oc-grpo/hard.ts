/** Before step 1: which problems the policy never solves, and how much guidance each needs to be solved once. */
import { DataError } from "../../core/errors.js";
import { type Context, type Problem, placeOfProblem } from "../../core/problem.js";
import type { SampleRequest } from "../../engine/contract.js";
import type { Lab } from "../contract.js";

export interface HardOptions {
  readonly hard_samples: number;
  readonly hard_temperature: number;
  readonly hard_top_p: number;
}

/** Answers a problem in one round: most problems that can be solved fall out in the first. */
const roundSize = 8;
/** Requests in one call. */
const mostAtOnce = 1024;

/** What of a request differs from one attempt to another. */
type Attempt = Pick<SampleRequest, "context"> & Partial<Pick<SampleRequest, "forced" | "temperature" | "truncation">>;

export interface Attempts {
  readonly purpose: string;
  /** Answers a problem, at most. */
  readonly samples: number;
  readonly turn?: number;
  of(problem: Problem): Attempt;
}

/** Indices of the problems of which no answer is accepted. An answer that its budget cut off is none, and what has no score proves nothing. */
export async function unsolved(problems: readonly Problem[], lab: Lab, { purpose, samples, turn, of }: Attempts): Promise<number[]> {
  const { temperature, maxTokens, stop } = lab.settings;
  const aux = lab.book("aux");
  let left = problems.map((_, i) => i);
  for (let from = 0; from < samples && left.length > 0; from += roundSize) {
    const members = Array.from({ length: Math.min(roundSize, samples - from) }, (_, i) => from + i);
    const solved = new Set<number>();
    const asked = left.flatMap((index) => members.map((member) => ({ index, member })));
    for (let start = 0; start < asked.length; start += mostAtOnce) {
      const part = asked.slice(start, start + mostAtOnce);
      const requests = part.map(({ index, member }): SampleRequest => {
        const problem = problems[index] as Problem;
        const key = lab.key({ purpose, problem: problem.key, member, ...(turn === undefined ? {} : { turn }) });
        return { weights: lab.policy, temperature, maxTokens, stop, key, ...of(problem) };
      });
      const judged: Promise<void>[] = [];
      for await (const sample of aux.sample(requests)) {
        const { index } = part[sample.index] as (typeof part)[number];
        if (sample.stop === "length") continue;
        judged.push(
          lab.verify(problems[index] as Problem, lab.tokenizer.decode(sample.ids)).then(({ kind }) => {
            if (kind === "accept") solved.add(index);
          }),
        );
      }
      await Promise.all(judged);
    }
    left = left.filter((index) => !solved.has(index));
  }
  return left;
}

/** The smallest of `levels` guidance levels, from 1, under which each problem is solved at least once; the largest where none is. */
export async function smallestLevels(
  problems: readonly Problem[],
  lab: Lab,
  samples: number,
  levels: number,
  under: (problem: Problem, level: number) => { readonly context: Context; readonly forced?: Int32Array },
): Promise<number[]> {
  const found = problems.map(() => Math.max(1, levels));
  let left = problems.map((_, i) => i);
  for (let level = 1; level < levels && left.length > 0; level++) {
    const asked = left.map((i) => problems[i] as Problem);
    const still = new Set(
      (await unsolved(asked, lab, { purpose: "oc-grpo/level", samples, turn: level, of: (problem) => under(problem, level) })).map((n) => left[n]),
    );
    for (const i of left) if (!still.has(i)) found[i] = level;
    left = left.filter((i) => still.has(i));
  }
  return found;
}

/** The problems that the policy does not solve without guidance. Throws DataError where they are fewer than a batch takes. */
export async function hardProblems(
  all: readonly Problem[],
  lab: Lab,
  { hard_samples, hard_temperature, hard_top_p }: HardOptions,
): Promise<readonly Problem[]> {
  if (hard_samples === 0) return all;
  const truncation = lab.engine.has.has("sample.truncation") && hard_top_p < 1 ? { truncation: { topP: hard_top_p } } : {};
  const left = await unsolved(all, lab, {
    purpose: "oc-grpo/hard",
    samples: hard_samples,
    of: (problem) => ({ context: lab.render(problem.prompt), temperature: hard_temperature, ...truncation }),
  });
  const { problems } = lab.settings;
  if (left.length >= problems) return left.map((i) => all[i] as Problem);
  throw new DataError({
    place: "method oc-grpo",
    cause: `${left.length} of ${all.length} problems have no right answer among ${hard_samples} without guidance, and a batch takes ${problems}`,
    mend: "give harder problems or more of them, lower problems, or set hard_samples to 0 to guide all",
    data: { hard: left.length, of: all.length },
  });
}

/** Throws DataError for a problem whose longest guided prompt leaves the model no place for the response. */
export async function refuseUnlessRoom(hard: readonly Problem[], lab: Lab, contexts: (problem: Problem) => readonly (Context | undefined)[]): Promise<void> {
  const { maxTokens } = await lab.weights.info("policy");
  for (const problem of hard) {
    const longest = Math.max(0, ...contexts(problem).map((context) => context?.ids.length ?? 0));
    if (longest + lab.settings.maxTokens <= maxTokens) continue;
    throw new DataError({
      place: placeOfProblem(problem),
      cause: `its prompt with guidance has ${longest} tokens, which with ${lab.settings.maxTokens} for the response are more than the model's ${maxTokens}`,
      mend: "lower the largest of levels or max_tokens, or leave such problems out",
    });
  }
}
