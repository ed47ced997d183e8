/**
 * Soft precision behind a hard gate (P30 MedCalc-R1; the shape is our choice): with e = |answer − reference| / tolerance,
 *
 *     0 where e > 1,  floor + (1 − floor) · (1 − e)^gamma  otherwise.
 *
 * It falls strictly on [0, 1] for floor < 1 and gamma > 0, jumps from `floor` to 0 at e = 1, and with floor = 1 is the plain tolerance.
 */
import { z } from "zod";

export const hybridOptions = z.strictObject({
  relative: z.number().gt(0).lt(1).default(0.05).describe("The tolerance as a part of the reference's size; where that is 0, only 0 is right."),
  floor: z.number().min(0).max(1).default(0.5).describe("What an answer at the edge of the tolerance earns."),
  gamma: z.number().gt(0).max(100).default(1).describe("How the rest falls off between an exact answer and the edge."),
});
export type HybridOptions = z.output<typeof hybridOptions>;

/** The reward in [0, 1] of an error in units of the tolerance; 0 for what is not finite or below 0. */
export function hybridReward(error: number, { floor, gamma }: Pick<HybridOptions, "floor" | "gamma">): number {
  if (!(error >= 0 && error <= 1)) return 0;
  return floor + (1 - floor) * (1 - error) ** gamma;
}
