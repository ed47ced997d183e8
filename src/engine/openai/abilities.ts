/** What no engine on an OpenAI-compatible server can do, with the reason; the rest is found by probes. */
import type { Capability, EngineInfo } from "../contract.js";

const noNumbers = "the interface tells log-probs of tokens alone";
const noWeights = "the weights are the server's, and stay as they are";
const noCall = "the engine contract has no call for it yet";
const noTraining = "an OpenAI-compatible server does not train";

export const lacksOfAll = {
  "sample.forced": "a server draws every token of a response",
  "sample.top-k": "the most likely tokens come by their texts, which are not always one token",
  "sample.stop-strings": "it sends token ids, and the text of tokens is the caller's",
  "sample.continue": noCall,
  "sample.gumbel": noCall,
  "score.top-k": "the most likely tokens come by their texts, which are not always one token",
  "score.targets": noNumbers,
  "score.hidden": noNumbers,
  "score.values": "the interface has no value head",
  "score.full": noNumbers,
  "score.sum-squares": noCall,
  "score.head-gradient": noCall,
  "score.attention": noCall,
  "score.divergence": noCall,
  "score.logit-lens": noCall,
  "score.ablate": noCall,
  train: noTraining,
  "train.entropy": noTraining,
  "train.targets": noTraining,
  "train.values": noTraining,
  "train.inputs": noTraining,
  "optimizer.sgd": noTraining,
  "optimizer.adamw": noTraining,
  "optimizer.muon": noTraining,
  "optimizer.clip": noTraining,
  "optimizer.groups": noTraining,
  "optimizer.moments": noTraining,
  "optimizer.reset": noTraining,
  roles: "every role is the model that was named",
  snapshots: noWeights,
  "weights.tensors": noWeights,
  "weights.combine": noWeights,
  "weights.perturb": noWeights,
  adapters: noWeights,
  "input-rows": "the interface sees token ids alone",
  media: "prompts are sent as token ids",
  save: noWeights,
} as const satisfies { readonly [capability in Capability]?: string } & EngineInfo["lacks"];
