/** The contract, against a server of ours: HTTP, JSON and the client between the suite and an exact engine. */
import { afterAll } from "vitest";
import { type ServedPolicy, servedPolicy } from "../../../test/support/served.js";
import { conformance } from "../conformance.js";
import { OpenaiEngine } from "./engine.js";

const servers: ServedPolicy[] = [];
afterAll(async () => {
  for (const server of servers) await server.close();
});

conformance("openai, on touchstone serve", async () => {
  const server = await servedPolicy({ maxTokens: 48 });
  servers.push(server);
  const engine = await OpenaiEngine.open({ baseUrl: `${server.address}/v1`, served: "table", model: { tokenizer: server.tokenizer }, retries: 0 });
  // What is loaded is what is served, whatever the source.
  return { engine, source: { from: "folder", path: "served" }, tolerance: { logp: 1e-12, gradient: 1e-8, update: 1e-14 }, prefills: 16 };
});
