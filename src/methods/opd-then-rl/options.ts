/** The options of OPD-then-RL: which scheme, when to switch, and how the teacher is followed. */
import { z } from "zod";
import { klForms } from "../reverse-kl.js";

export const opdThenRlOptions = z.strictObject({
  mode: z
    .enum(["switch", "additive", "masked", "annealed", "modulated"])
    .default("switch")
    .describe(
      "switch: one after the other. For comparisons, both at once: the sum, the sum where both agree in sign, the sum with a falling weight, or the advantage reweighted by the teacher.",
    ),
  first: z
    .enum(["opd", "sft"])
    .default("opd")
    .describe("What comes before the switch: distillation on the policy's own answers, or supervised learning on the teacher's."),
  switch_at: z
    .union([z.int().min(0), z.enum(["plateau", "never"])])
    .default(60)
    .describe("Steps of the first phase; plateau: until the score has stopped rising (needs eval.every); never: no second phase."),
  score: z.string().min(1).default("eval.score").describe("The metric that a plateau is seen in."),
  improvement: z.number().min(0).default(0.005).describe("What it must rise by to count."),
  patience: z.int().min(1).default(3).describe("Evaluations in a row without such a rise that make a plateau."),
  divergence: z
    .enum(klForms)
    .default("sampled")
    .describe(
      "How the first phase distils: sampled: by the advantage d of the token drawn; full, top-k: by the reverse KL over the whole vocabulary, or the teacher's top_k tokens and the rest as one.",
    ),
  top_k: z.int().min(1).default(100).describe("Tokens of top-k."),
  beta: z.number().min(0).default(0.2).describe("Weight of d in the modes that add it."),
  beta_end: z.number().min(0).default(0.002).describe("Where annealed takes it."),
  anneal_steps: z.int().min(1).default(150).describe("Steps in which it gets there."),
  lambda: z.number().min(0).max(1).default(0.5).describe("Share of the teacher's weight in the mode modulated."),
  weight_clip: z.number().min(0).max(1).default(0.2).describe("Largest distance of that weight from 1."),
  teacher_eos: z.array(z.int().min(0)).optional().describe("End tokens of the teacher; an end of another kind is not distilled. Absent: the policy's."),
  shared_top_k: z
    .int()
    .min(0)
    .default(0)
    .describe("Measure how much of the policy's probability lies on tokens among the k most likely of both; 0: do not (it costs one more pass)."),
});
export type OpdThenRlOptions = z.output<typeof opdThenRlOptions>;
