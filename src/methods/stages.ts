/** Whole methods one after another (C21): what ends a stage, and what may follow what. */
import { ConfigError } from "../core/errors.js";
import type { Plan, PlanStage } from "./contract.js";

/** When a stage ends: after so many steps, or when a metric of a step reaches a bound; whichever comes first. */
export interface StageEnd {
  readonly steps?: number | undefined;
  readonly until?: { readonly metric: string; readonly at_least?: number | undefined; readonly at_most?: number | undefined } | undefined;
}

/** The end as a function of the step seen and of the stage's steps so far: the reason, or false. A metric that the step lacks reaches nothing. */
export function endOf({ steps, until }: StageEnd): PlanStage["until"] {
  return ({ metrics }, done) => {
    if (until !== undefined) {
      const value = metrics[until.metric];
      if (value !== undefined && until.at_least !== undefined && value >= until.at_least) return `${until.metric} is ${value}, at least ${until.at_least}`;
      if (value !== undefined && until.at_most !== undefined && value <= until.at_most) return `${until.metric} is ${value}, at most ${until.at_most}`;
    }
    return steps !== undefined && done >= steps ? `${steps} steps are done` : false;
  };
}

/** A plan of stages; the same method may stand in several, and goes on with its own state. */
export function stages(...list: readonly PlanStage[]): Plan {
  if (list.length === 0) throw new ConfigError({ place: "stages", cause: "none was given", mend: "give at least one, or a method" });
  return { stages: list };
}
