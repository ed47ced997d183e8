import { fixture } from "../../../test/paths.js";
import { conformance } from "../conformance.js";
import { OnnxEngine } from "./engine.js";

for (const activations of ["recompute", "keep"] as const) {
  conformance(`onnx (${activations})`, async () => ({
    engine: await OnnxEngine.create({ threads: 1, activations }),
    source: { from: "folder", path: fixture("models", "llama-tied") },
    tolerance: { logp: 1e-4, gradient: 5e-3, update: 1e-5 },
    step: 0.006,
  }));
}
