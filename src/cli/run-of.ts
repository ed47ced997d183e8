/** The run that a model's name means, if it means one. */
import { isHubModel } from "../train/local-model.js";
import { namedModel } from "../train/model-name.js";
import type { RunReader } from "../train/store/reader.js";

/** What `run.json` says; undefined for folders of models, and for a GGUF file or a hub id, which has yet to become one. */
export function runOf(model: string): RunReader["run"] | undefined {
  return model.endsWith(".gguf") || isHubModel(model) ? undefined : namedModel(model).run?.reader.run;
}
