/** A parent to be killed: starts an engine process, keeps it computing, and prints its process id and its socket. */
import { plainContext } from "../../src/core/problem.js";
import { spawnEngine } from "../../src/engine/remote/spawn.js";
import { blocking, loaded } from "./bigram-engine.js";

const engine = await loaded(await spawnEngine({ entry: new URL("./host.ts", import.meta.url) }));
const busy = engine.score([{ context: plainContext([1], blocking), response: Int32Array.of(2), weights: { role: "policy" }, temperature: 1 }]);
console.log(engine.pid);
console.log(engine.address);
await busy;
