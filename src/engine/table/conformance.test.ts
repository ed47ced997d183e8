import { conformance, type Subject } from "../conformance.js";
import { TableEngine } from "./engine.js";

const tolerance: Subject["tolerance"] = { logp: 1e-12, gradient: 1e-8, update: 1e-14 };

conformance("table (softmax table of order 1)", async () => ({
  engine: new TableEngine(),
  source: { from: "config", config: { kind: "table", vocabulary: 9, order: 1, init: 1 }, seed: 1 },
  tolerance,
}));

conformance("table (linear, one-hot window of 2)", async () => ({
  engine: new TableEngine(),
  source: { from: "config", config: { kind: "linear", vocabulary: 8, features: "onehot-window", window: 2, init: 1 }, seed: 2 },
  tolerance,
}));
