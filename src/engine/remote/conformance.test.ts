import { afterAll } from "vitest";
import { conformance } from "../conformance.js";
import { TableEngine } from "../table/engine.js";
import { RemoteEngine } from "./client.js";
import { PoolEngine } from "./pool.js";
import { type EngineServer, serveEngine } from "./server.js";

const servers: EngineServer[] = [];

afterAll(async () => {
  await Promise.all(servers.map((server) => server.close()));
});

async function served(): Promise<RemoteEngine> {
  const server = await serveEngine({ engine: new TableEngine(), listen: { host: "127.0.0.1", port: 0 } });
  servers.push(server);
  return RemoteEngine.connect({ address: server.address });
}

const source = { from: "config", config: { kind: "table", vocabulary: 9, order: 1, init: 1 }, seed: 1 } as const;
const tolerance = { logp: 1e-12, gradient: 1e-8, update: 1e-14 };

conformance("table behind a socket", async () => ({ engine: await served(), source, tolerance }));

conformance("table in a pool of 3 workers", async () => ({
  engine: new PoolEngine([await served(), await served(), await served()]),
  source,
  tolerance,
  prefills: 3,
}));
