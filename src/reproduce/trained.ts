/** A finished training run as metrics of a demonstration see it: from its folder alone. */
import type { Answers, Heldout, TrainedRun } from "../methods/demonstration.js";
import { namedModel } from "../train/model-name.js";
import { RunReader } from "../train/store/reader.js";

/** Reads a run folder. `measure`: draws held-out answers of a model folder. */
export function trainedRun(folder: string, measure: (model: string, heldout: Heldout) => Promise<Answers>): TrainedRun {
  const reader = RunReader.open(folder);
  const events = [...reader.events()];
  const steps = events.filter(({ kind }) => kind === "step");
  const model = namedModel(`${folder}@last`).folder;
  return {
    folder,
    model,
    steps: steps.at(-1)?.step ?? 0,
    series: (metric) =>
      steps.flatMap(({ step, data }) => {
        const value = (data.metrics as { readonly [name: string]: unknown })[metric];
        return typeof value === "number" ? [{ step, value }] : [];
      }),
    evaluations: events.flatMap(({ kind, step, data }) => (kind === "evaluation" && typeof data.score === "number" ? [{ step, value: data.score }] : [])),
    groups: (step) => reader.groups(step),
    measure: (heldout) => measure(model, heldout),
  };
}
