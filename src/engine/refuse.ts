/** Refusals that all engines word alike: what is not there, and what an engine cannot do. */
import { ArgumentError, CapabilityError } from "../core/errors.js";
import type { Capability, EngineInfo } from "./contract.js";

const list = (names: Iterable<string>): string => [...names].join(", ") || "none";

export function unknownRole(place: string, role: string, known: Iterable<string>): ArgumentError {
  return new ArgumentError({ place, cause: `there is no role ${role} (loaded: ${list(known)})`, mend: "load it first", data: { role } });
}

export function unknownSnapshot(place: string, role: string, snapshot: string, known: Iterable<string>): ArgumentError {
  const cause = `role ${role} has no snapshot ${snapshot} (it has: ${list(known)})`;
  return new ArgumentError({ place, cause, mend: "take it with weights.snapshot, or leave `at` out for the current weights", data: { role, snapshot } });
}

export function unknownHandle(place: string, handle: string): ArgumentError {
  return new ArgumentError({ place, cause: `there is no forward pass ${handle}`, mend: "use each handle once, with backward or release", data: { handle } });
}

export function unknownTensor(place: string, role: string, name: string, known: Iterable<string>): ArgumentError {
  return new ArgumentError({ place, cause: `role ${role} has no tensor ${name}`, mend: `name one of: ${list(known)}`, data: { role, tensor: name } });
}

export function notTrainable(place: string, role: string): ArgumentError {
  return new ArgumentError({ place, cause: `role ${role} is frozen`, mend: "load it with trainable: true", data: { role } });
}

export function noValueHead(place: string, role: string): ArgumentError {
  return new ArgumentError({ place, cause: `role ${role} has no value head`, mend: "load it with valueHead: true", data: { role } });
}

/** What to do where an engine lacks a capability. */
const instead: { readonly [capability in Capability]?: string } = {
  "sample.stop-strings": "cut the text afterwards, or give the ids that end it",
  "sample.top-k": "score the sampled tokens with topK",
  "sample.greedy": "sample at a low temperature",
  "sample.continue": "force the tokens of the prefix",
  "score.temperature": "score at temperature 1",
  "score.entropy": "use the log-probs of the sampled tokens",
  "score.full": "ask for topK or targets",
  "score.targets": "use the log-probs of the sampled tokens",
  "train.targets": "use the log-probs of the sampled tokens",
  "train.values": "take baselines from the group instead of a critic",
  "optimizer.muon": "use adamw",
  "optimizer.clip": "leave maxNorm out",
  "optimizer.groups": "leave groups out",
  "optimizer.moments": "leave out all numbers but the rate",
  "optimizer.reset": "let stages keep their optimizer, or begin another run from the last checkpoint",
  "weights.combine": "read the tensors, combine them and write the result",
  adapters: "train full weights, or a role of its own",
};

/** The error for what an engine lacks: the capability, the engine's reason, and what to use instead. */
export function lacking(engine: EngineInfo, capability: Capability, place: string): CapabilityError {
  const reason = engine.lacks[capability] ?? "it was not built for this";
  return new CapabilityError({
    place,
    cause: `engine ${engine.name} cannot do ${capability} (${reason})`,
    mend: instead[capability] ?? `use an engine that has ${capability}`,
    data: { engine: engine.name, capability },
  });
}

export function needCapability(engine: EngineInfo, capability: Capability, place: string): void {
  if (!engine.has.has(capability)) throw lacking(engine, capability, place);
}
