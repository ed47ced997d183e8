/** Real servers of ours for tests: a small exact policy, or a verifier in worker threads. */
import { alphabetTokenizer } from "../../src/core/alphabet.js";
import type { Json } from "../../src/core/json.js";
import type { Problem } from "../../src/core/problem.js";
import type { Tokenizer } from "../../src/core/tokenizer.js";
import { TableEngine } from "../../src/engine/table/engine.js";
import { Grader } from "../../src/serve/grader.js";
import { policyRoutes } from "../../src/serve/openai.js";
import { Policy, role } from "../../src/serve/policy.js";
import { rewardRoutes } from "../../src/serve/rewards.js";
import { type Served, type ServeOptions, serve } from "../../src/serve/server.js";
import { namedVerifier } from "../../src/verify/catalogue.js";
import { startPool } from "../../src/verify/pool.js";

export interface ServedPolicy extends Served {
  readonly engine: TableEngine;
  readonly tokenizer: Tokenizer;
}

const letters = alphabetTokenizer(["a", "b", "c", "d", "e", " ", "ab", "é"]);

/** A softmax table over an alphabet, served as `table`; `positions`: for distributions that differ along the answer. */
export async function servedPolicy(options: Partial<ServeOptions> & { readonly maxTokens?: number } = {}): Promise<ServedPolicy> {
  const { maxTokens = 400, ...server } = options;
  const engine = new TableEngine();
  const config = { kind: "table", vocabulary: letters.size, order: 1, init: 1, maxTokens };
  await engine.weights.load({ role, source: { from: "config", config, seed: 1 }, trainable: false });
  const policy = new Policy({ engine, tokenizer: letters, name: "table", maxTokens });
  const served = await serve({ routes: policyRoutes(policy, 60_000), port: 0, ...server });
  return { ...served, engine, tokenizer: letters, close: () => served.close().then(() => engine.close()) };
}

/** A verifier behind its routes. */
export async function servedVerifier(
  name: string,
  options: Json = {},
  more: Partial<ServeOptions> & { readonly problems?: readonly Problem[]; readonly deadlineMs?: number; readonly workers?: number } = {},
): Promise<Served> {
  const { problems = [], deadlineMs = 30_000, workers, ...server } = more;
  const { verifier, source } = await namedVerifier(name, options);
  const pool = await startPool({ verifier, ...(source && { source }), workers: source === undefined ? 0 : (workers ?? 1), deadlineMs });
  const grader = new Grader({ verifier, pool, problems });
  const served = await serve({ routes: rewardRoutes(grader, deadlineMs), port: 0, ...server });
  return {
    address: served.address,
    get open() {
      return served.open;
    },
    close: () => served.close().then(() => pool.close()),
  };
}
