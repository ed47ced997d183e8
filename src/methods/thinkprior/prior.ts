/** What is known of a problem before the policy has answered it once: how often another model is right. */
import { z } from "zod";
import { DataError } from "../../core/errors.js";
import { jsonLines } from "../../core/json-lines.js";
import { type Problem, placeOfProblem } from "../../core/problem.js";
import { scoreOf } from "../../core/verdict.js";
import type { SampleRequest } from "../../engine/contract.js";
import type { Lab } from "../contract.js";

export const anchorRole = "anchor";

/** Requests in one call. */
const mostAtOnce = 1024;

/** Mean score of the anchor's answers to each problem; null where none has a score. */
export async function anchorRates(problems: readonly Problem[], lab: Lab, samples: number): Promise<(number | null)[]> {
  const { temperature, maxTokens, stop } = lab.settings;
  const aux = lab.book("aux");
  const asked = problems.flatMap((problem, index) => Array.from({ length: samples }, (_, member) => ({ problem, index, member })));
  const scores = problems.map((): (number | undefined)[] => []);
  for (let start = 0; start < asked.length; start += mostAtOnce) {
    const part = asked.slice(start, start + mostAtOnce);
    const requests = part.map(({ problem, member }): SampleRequest => {
      const key = lab.key({ purpose: "thinkprior/anchor", problem: problem.key, member });
      return { weights: { role: anchorRole }, context: lab.render(problem.prompt), temperature, maxTokens, stop, key };
    });
    const judged: Promise<void>[] = [];
    for await (const sample of aux.sample(requests)) {
      const { problem, index, member } = part[sample.index] as (typeof part)[number];
      const verdict = lab.verify(problem, lab.tokenizer.decode(sample.ids), sample.stop === "length");
      judged.push(
        verdict.then((found) => {
          (scores[index] as (number | undefined)[])[member] = scoreOf(found);
        }),
      );
    }
    await Promise.all(judged);
  }
  return scores.map((own) => {
    const scored = own.filter((score) => score !== undefined);
    return scored.length === 0 ? null : scored.reduce((a, b) => a + b, 0) / scored.length;
  });
}

const profiled = z.object({ key: z.string(), pass: z.number().min(0).max(1).nullable() });

/** The pass rate of each problem from a file of `touchstone profile`, made with whatever model and engine. Throws DataError where it lacks one. */
export function profileRates(problems: readonly Problem[], file: string): (number | null)[] {
  const known = new Map<string, number | null>();
  for (const { record, number, fault } of jsonLines(file)) {
    if (number === 1 && record !== undefined && "touchstone_profile" in record) continue;
    const read = profiled.safeParse(record);
    if (!read.success) throw new DataError({ place: `${file}, line ${number}`, cause: fault ?? "it has no key and pass", mend });
    known.set(read.data.key, read.data.pass);
  }
  return problems.map((problem) => {
    const rate = known.get(problem.key);
    if (rate !== undefined) return rate;
    throw new DataError({ place: file, cause: `it does not have ${placeOfProblem(problem)}`, mend });
  });
}

const mend = "give a file that touchstone profile wrote of the problems that are trained on";
