/** The reverse KL to a teacher (a role, or the policy under another context) as a term: how finely, by what the engine can do (C12, C25). */
import { ConfigError } from "../core/errors.js";
import type { EngineInfo, Scores, WeightsRef } from "../engine/contract.js";
import type { Term } from "../losses/contract.js";
import { type Outcomes, reverseKlTerm, sampledKlTerm } from "../losses/reverse-kl.js";
import type { Lab, Need } from "./contract.js";
import { type Rescored, scoresUnder } from "./hints.js";

/** From the finest to the coarsest: the whole vocabulary, the teacher's most likely tokens and the rest as one, the sampled token alone. */
export const klForms = ["full", "top-k", "sampled"] as const;
export type KlForm = (typeof klForms)[number];

const capabilitiesOf = {
  full: ["score", "score.full", "train.targets"],
  "top-k": ["score", "score.top-k", "train.targets"],
  sampled: ["score"],
} as const;

const differences = {
  full: "",
  "top-k": "the KL lumps together all tokens but the teacher's most likely ones",
  sampled: "the KL is estimated from the sampled token alone",
} as const;

const from = (form: KlForm): readonly KlForm[] => klForms.slice(klForms.indexOf(form));

/** What a KL of that form needs; coarser ones are taken where the engine lacks it. */
export function klNeed(form: KlForm, what: string): Need {
  return {
    for: what,
    oneOf: from(form).map((each) => ({ capabilities: capabilitiesOf[each], ...(each === form ? {} : { difference: differences[each] }) })),
  };
}

/** The form that is computed on an engine, given the one that is wished for. */
export function klFormOn(engine: EngineInfo, form: KlForm): KlForm {
  return from(form).find((each) => capabilitiesOf[each].every((capability) => engine.has.has(capability))) ?? "sampled";
}

/** The largest vocabulary of which a batch's distributions are held whole. */
const largest = 8192;

/** Refuses the whole vocabulary where a batch of its distributions would fill the memory. */
export async function refuseUnlessSmall(lab: Lab, place: string): Promise<void> {
  const { vocabulary } = await lab.weights.info("policy");
  if (vocabulary <= largest) return;
  throw new ConfigError({
    place,
    cause: `it is full, and a distribution over ${vocabulary} tokens for each token of a batch is more than memory should hold`,
    mend: "set it to top-k",
    data: { vocabulary, largest },
  });
}

export interface TeacherKl {
  readonly name: string;
  readonly form: KlForm;
  readonly topK: number;
  readonly coefficient: number;
  /** Token weights, normaliser included. [rows][tokens] */
  readonly weights: readonly Float64Array[];
}

/** The term on those rows that have a context to be scored under, one item a row of the batch; and which of them had no place in the model. */
export async function teacherKl(
  items: readonly Rescored[],
  weights: WeightsRef,
  lab: Lab,
  options: TeacherKl,
): Promise<{ readonly term: Term; readonly skipped: number }> {
  const { form, topK } = options;
  const { vocabulary } = await lab.weights.info(weights.role);
  const k = Math.min(topK, vocabulary);
  const want = form === "full" ? { full: true } : form === "top-k" ? { topK: k } : {};
  const scores = await scoresUnder(items, weights, lab, want);
  const skipped = items.filter(({ context }, i) => context !== undefined && scores[i] === undefined).length;
  if (form === "sampled") return { term: sampledKlTerm({ ...options, teacher: scores.map((score) => score?.logp) }), skipped };
  const everything = Int32Array.from({ length: vocabulary }, (_, id) => id);
  return { term: reverseKlTerm({ ...options, teacher: scores.map((score) => score && outcomesOf(score, form, everything)) }), skipped };
}

function outcomesOf({ logp, full, top }: Scores, form: "full" | "top-k", everything: Int32Array): Outcomes | undefined {
  if (form === "top-k") return top && { k: top.k, ids: top.ids, logp: top.logp, tail: top.tail };
  const ids = new Int32Array(everything.length * logp.length);
  for (let t = 0; t < logp.length; t++) ids.set(everything, t * everything.length);
  return full && { k: everything.length, ids, logp: full };
}
