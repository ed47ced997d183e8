/** What an engine on a server of the Tinker protocol can do, and for the rest the reason why not. */
import type { Capability, EngineInfo } from "../contract.js";
import type { TrainTraits } from "./probe.js";

const always: readonly Capability[] = ["sample", "sample.greedy", "score", "roles"];
const training: readonly Capability[] = ["train", "optimizer.adamw", "save"];

const noNumbers = "servers of this protocol tell log-probs of given tokens alone";
const atOne = "servers tell log-probs at temperature 1, whatever they draw at";
const noCall = "the engine contract has no call for it yet";
const noWeights = "weights stay on the server: what is saved comes as an adapter's folder";

const never: EngineInfo["lacks"] = {
  "sample.temperature": atOne,
  "score.temperature": atOne,
  "sample.entropy": noNumbers,
  "score.entropy": noNumbers,
  exact: "a server batches requests of many, so the last bits of a log-prob depend on what ran beside it",
  "sample.forced": "a server draws every token of a response",
  "sample.top-k": noNumbers,
  "sample.stop-strings": "it sends token ids, and the text of tokens is the caller's",
  "sample.truncation": "servers tell log-probs of the whole distribution whatever they draw from",
  "sample.continue": noCall,
  "sample.gumbel": noCall,
  "score.top-k": noNumbers,
  "score.targets": noNumbers,
  "score.hidden": noNumbers,
  "score.values": "the protocol has no value head for a policy",
  "score.full": noNumbers,
  "score.sum-squares": noCall,
  "score.head-gradient": noCall,
  "score.attention": noCall,
  "score.divergence": noCall,
  "score.logit-lens": noCall,
  "score.ablate": noCall,
  "train.entropy": "the protocol's losses read log-probs of given tokens alone",
  "train.targets": "the protocol's losses read log-probs of given tokens alone",
  "train.values": "the protocol has no value head for a policy",
  "train.inputs": noWeights,
  "optimizer.sgd": "servers make steps of Adam alone",
  "optimizer.muon": "servers make steps of Adam alone",
  "optimizer.clip": "servers clip no gradients, or do so without a word",
  "optimizer.groups": "servers have one rate and decay for all weights",
  snapshots: "a server may keep one place for the weights that are trained and those that are sampled, so an older sampler would overwrite them",
  "weights.tensors": noWeights,
  "weights.combine": noWeights,
  "weights.perturb": noWeights,
  adapters: "every role that learns is an adapter on the server's base already, of rank lora.rank",
  "input-rows": "a server takes token ids",
  media: "media are not passed on yet",
};

const opened = "it was opened to draw and score alone, so that nobody asked the server how it trains";

/** Abilities by what probes found; undefined: it was not asked how it trains. */
export function abilitiesOf(traits: TrainTraits | undefined): Pick<EngineInfo, "has" | "lacks"> {
  const found: { readonly [capability in Capability]?: string | undefined } =
    traits === undefined
      ? Object.fromEntries([...training, "optimizer.moments", "optimizer.reset"].map((each) => [each, opened]))
      : {
          "optimizer.moments": traits.moments ? undefined : "this server takes the rate of a step and goes by its own numbers in all else",
          "optimizer.reset": traits.resets ? undefined : "this server loads a checkpoint with its optimizer whatever it is asked for",
        };
  const lacking = Object.fromEntries(Object.entries(found).filter((entry): entry is [Capability, string] => entry[1] !== undefined));
  const has = new Set([...always, ...(traits ? training : []), ...(Object.keys(found) as Capability[])].filter((each) => !(each in lacking)));
  return { has, lacks: { ...never, ...lacking } };
}
