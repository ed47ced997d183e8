/** The child process of this folder's tests: hosts a `BigramEngine`, or fails as its first argument says. */
import { EngineError } from "../../src/core/errors.js";
import { hostEngine } from "../../src/engine/remote/host.js";
import { socketVariable } from "../../src/engine/remote/spawn.js";
import { BigramEngine } from "./bigram-engine.js";

const [fault] = process.argv.slice(2);
console.error(`allocator keeps ${process.env.MALLOC_TOP_PAD_ ?? "nothing"}`);
if (fault === "hang") setInterval(() => {}, 1000);
else if (fault === "exit") {
  console.error("no such model");
  process.exit(3);
} else {
  await hostEngine({
    create: async () => {
      if (fault === "refuse") throw new EngineError({ place: "onnxruntime-node", cause: "it is not installed", mend: "install it" });
      return new BigramEngine();
    },
    listen: { path: process.env[socketVariable] as string },
    endWithParent: true,
  });
}
