/** What the onnx engine can do, and for the rest the reason why not. */
import type { Capability, EngineInfo } from "../contract.js";

export const has: readonly Capability[] = [
  "sample",
  "sample.forced",
  "sample.top-k",
  "sample.greedy",
  "sample.truncation",
  "sample.temperature",
  "sample.entropy",
  "score",
  "score.top-k",
  "score.targets",
  "score.hidden",
  "score.values",
  "score.full",
  "score.temperature",
  "score.entropy",
  "train",
  "train.entropy",
  "train.targets",
  "train.values",
  "train.inputs",
  "optimizer.sgd",
  "optimizer.adamw",
  "optimizer.clip",
  "optimizer.groups",
  "optimizer.muon",
  "roles",
  "snapshots",
  "weights.tensors",
  "adapters",
  "input-rows",
  "save",
  "exact",
];

const noCall = "the engine contract has no call for it yet";

export const lacks: EngineInfo["lacks"] = {
  "sample.stop-strings": "it sees token ids, and the text of tokens is the caller's",
  "sample.continue": noCall,
  "sample.gumbel": "a random number for each entry of the vocabulary is too dear; the inverse transform draws",
  "score.sum-squares": noCall,
  "score.head-gradient": noCall,
  "score.attention": noCall,
  "score.divergence": noCall,
  "score.logit-lens": noCall,
  "score.ablate": noCall,
  "weights.combine": noCall,
  "weights.perturb": "seeded perturbations are not built yet",
  media: "its models see token ids and input rows alone",
};
