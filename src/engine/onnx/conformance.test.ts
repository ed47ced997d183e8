import { fixture } from "../../../test/paths.js";
import { conformance } from "../conformance.js";
import { OnnxEngine } from "./engine.js";

const models = [
  { folder: "llama-tied", activations: "recompute", gradient: 5e-3 },
  { folder: "llama-tied", activations: "keep", gradient: 5e-3 },
  // A bias on k hardly moves what a softmax makes of it: its differences are mostly float32 noise (the fixtures have its exact gradient).
  { folder: "qwen2", activations: "recompute", gradient: 1e-2 },
  { folder: "qwen3", activations: "keep", gradient: 5e-3 },
] as const;

for (const { folder, activations, gradient } of models) {
  conformance(`onnx (${folder}, ${activations})`, async () => ({
    engine: await OnnxEngine.create({ threads: 1, activations }),
    source: { from: "folder", path: fixture("models", folder) },
    tolerance: { logp: 1e-4, gradient, update: 1e-5 },
    step: 0.006,
  }));
}
