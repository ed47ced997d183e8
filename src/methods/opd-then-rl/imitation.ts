/** The other cold start: supervised learning on the teacher's own answers to the problems of the batch, as many as the policy gives. */
import type { Batch } from "../../core/trajectory.js";
import type { Sample, Sequence } from "../../engine/contract.js";
import type { Term } from "../../losses/contract.js";
import { finite } from "../../losses/surrogate.js";
import type { Lab, TermMask } from "../contract.js";
import { rowsOf } from "../credit.js";

/** Minus the mean log-prob of the teacher's answers, each a mean over its tokens: a term with a pass of its own. */
export async function imitationTerm(batch: Batch, { rows: counts }: TermMask, lab: Lab): Promise<Term> {
  const { temperature, maxTokens, stop } = lab.settings;
  const rows = rowsOf(batch);
  const requests = rows.map(({ trainedUnder: context, problem, member, turn }) => {
    const key = lab.key({ purpose: "opd-then-rl/teacher", step: lab.step, problem, member, turn });
    return { context, weights: { role: "teacher" }, temperature, maxTokens, stop, key };
  });
  const answers: Int32Array[] = [];
  for await (const { index, ids } of lab.book("aux").sample(requests) as AsyncIterable<Sample>) answers[index] = ids;
  const n = counts.reduce((sum, m) => sum + m, 0);
  return {
    name: "sft",
    on: {
      set: "role:policy",
      sequence: (index): Sequence => ({
        context: rows[index]?.trainedUnder as Sequence["context"],
        response: answers[index] as Int32Array,
        weights: lab.policy,
        temperature,
      }),
    },
    run(given) {
      let [value, sum, count] = [0, 0, 0];
      const derivatives = given.map(({ index, now: { logp } }) => {
        const weight = counts[index] ? 1 / (n * logp.length) : 0;
        logp.forEach((each) => {
          value -= weight * each;
          sum -= each;
        });
        count += logp.length;
        return { dLogp: new Float64Array(logp.length).fill(-weight) };
      });
      return finite("sft", given, { value, derivatives, statistics: { "opd-then-rl.sft": { sum, count } } });
    },
  };
}
