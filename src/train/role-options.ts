/** Roles beside the policy, as a configuration has them: where each comes from, whether it learns, and how fast (C7). */
import { z } from "zod";

export const roleOptions = z.strictObject({
  model: z.string().min(1).optional().describe("Its weights: folder of a model, or RUN@CHECKPOINT; absent: the policy as it starts."),
  average: z
    .strictObject({
      of: z.string().min(1).default("policy").describe("The role that it follows."),
      decay: z.number().min(0).lt(1).describe("What stays of it at each following: w becomes decay w + (1 - decay) of the other's."),
      every: z.int().min(1).default(1).describe("Steps between two followings."),
    })
    .optional()
    .describe("A moving average of another role, which begins with the weights named above."),
  lr: z.number().min(0).optional().describe("Peak learning rate of a role that learns; absent: the policy's."),
});

export type RoleOptions = z.output<typeof roleOptions>;

/** By name; the policy is not among them. */
export const rolesOption = z
  .record(z.string().regex(/^[a-z][a-z0-9_-]*$/), roleOptions)
  .default({})
  .describe(
    "Roles beside the policy by name, each with model, average {of, decay, every} and lr; what a method needs and is not named here starts as the policy does, except a teacher.",
  );
