/** The options of H2SD: what becomes of either branch, the two contexts, and the teacher. */
import { z } from "zod";
import { klForms } from "../reverse-kl.js";

export const h2sdOptions = z.strictObject({
  success: z
    .enum(["reweight", "match", "plain"])
    .default("reweight")
    .describe("What becomes of right answers: reweighted by the rephrasing teacher, matched to the hinted teacher, or left as they are."),
  failure: z
    .enum(["match", "both", "reweight", "plain"])
    .default("match")
    .describe(
      "What becomes of wrong answers: matched to the hinted teacher, the same beside their policy gradient, reweighted by the hinted teacher, or left as they are.",
    ),
  rephrase_prompt: z
    .string()
    .includes("{problem}")
    .default("{problem}\n\nThis answer was verified to be correct:\n{response}\n\nSay it again in other words.")
    .describe("The last message that right answers are scored under; {problem} is what it said, {response} the answer, other names are privileged data."),
  hint_prompt: z
    .string()
    .includes("{problem}")
    .default("{problem}\n\nThe key steps and the verified answer:\n{solution}")
    .describe("The last message with a hint; {solution}, {answer} and other names are what the problem's privileged data tells."),
  lambda: z.number().min(0).max(1).default(0.5).describe("Share of the teacher's weight in the advantage of a right answer's token."),
  lambda_end: z.number().min(0).max(1).optional().describe("Where lambda goes, linearly; absent: it stays."),
  lambda_steps: z.int().min(1).default(50).describe("Steps in which it gets there."),
  weight_clip: z.number().min(0).max(1).default(0.2).describe("Largest distance of the teacher's weight from 1."),
  mu: z.number().min(0).default(1).describe("Weight of the KL to the hinted teacher."),
  divergence: z
    .enum(klForms)
    .default("full")
    .describe(
      "How that KL is computed: over the whole vocabulary, over the teacher's top_k tokens and the rest as one, or from the sampled token alone; where the engine cannot, the next.",
    ),
  top_k: z.int().min(1).default(100).describe("Tokens of top-k."),
  teacher: z
    .enum(["refreshed", "average", "current"])
    .default("refreshed")
    .describe("Weights of the teacher, under the role `self`: a copy of the policy made anew every so many steps, its moving average, or the policy as it is."),
  refresh_every: z.int().min(1).default(10).describe("Steps between two copies."),
  decay: z.number().min(0).lt(1).default(0.99).describe("What stays of the moving average at each step."),
});
export type H2sdOptions = z.output<typeof h2sdOptions>;
