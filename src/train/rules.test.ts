import { describe, expect, it } from "vitest";
import type { Capability, EngineInfo } from "../engine/contract.js";
import type { Method } from "../methods/contract.js";
import type { Resolved } from "../methods/resolve.js";
import { parseTrainConfig } from "./config.js";
import { optimizerMethod, ruleOf } from "./rules.js";

const engine = (...has: Capability[]): EngineInfo => ({ name: "test", has: new Set(has), lacks: {}, fingerprint: {} });
const every = engine("optimizer.adamw", "optimizer.moments", "optimizer.sgd", "optimizer.muon");

/** The rule of the first update, as a configuration writes the optimizer. */
function first(optimizer: object, info = every): unknown {
  const config = parseTrainConfig({ model: "m", out: "o", task: "chain", steps: 2, lr: 0.5, optimizer }, "test");
  const method = optimizerMethod(config) as Method;
  const { sets } = method.slots.optimizer as { sets: { module: string; options: object } };
  const one = { parametrisation: { value: { module: "identity", options: {} }, from: "grpo" }, optimizer: { value: sets, from: "options" } };
  return ruleOf({ one } as unknown as Resolved, info, config, () => config.lr)(1, "role:policy");
}

describe("the optimizer of a configuration", () => {
  it("is AdamW, sgd or Muon, with its numbers and what a rule has by itself", () => {
    const adamw = { beta1: 0.9, beta2: 0.95, epsilon: 1e-8, weightDecay: 0 };
    expect(first({})).toEqual({ rule: "adamw", rate: 0.5, ...adamw });
    expect(first({ rule: "sgd" })).toEqual({ rule: "sgd", rate: 0.5, momentum: 0, weightDecay: 0 });
    expect(first({ rule: "sgd", momentum: 0.5 })).toMatchObject({ momentum: 0.5 });
    expect(first({ rule: "muon", weight_decay: 0.1 })).toEqual({
      rule: "muon",
      rate: 0.5,
      ...adamw,
      weightDecay: 0.1,
      momentum: 0.95,
      nesterov: true,
      adjust: "match_rms_adamw",
    });
    expect(first({ rule: "muon", momentum: 0.8, nesterov: false, adjust: "original" })).toMatchObject({ momentum: 0.8, nesterov: false, adjust: "original" });
  });

  it("is the rate alone where the engine goes by numbers of its own", () => {
    expect(first({}, engine("optimizer.adamw"))).toEqual({ rule: "adamw", rate: 0.5 });
  });

  it("is refused where the engine has none", () => {
    expect(() => first({ rule: "muon" }, engine("optimizer.adamw", "optimizer.sgd"))).toThrow(/this engine has no "muon"; use adamw or sgd/);
  });
});
