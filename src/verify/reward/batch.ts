/**
 * Rewards that are computed elsewhere, in batches: answers that wait together go together. Whatever goes wrong there leaves
 * answers unscored with its reason, never at 0; where a batch fails, its halves are tried apart, so that one answer which
 * the reward cannot bear does not cost the others theirs.
 */
import type { Json } from "../../core/json.js";
import { unscored, type Verdict } from "../../core/verdict.js";
import type { Verifier } from "../contract.js";
import { itemOf, type RewardItem } from "./item.js";
import { type Range, verdictOf } from "./result.js";

/** Why no result came. */
export type FaultReason = "crashed" | "timeout" | "malformed" | "unreachable" | "failed" | "gone";

export class BatchFault extends Error {
  constructor(
    readonly reason: FaultReason,
    message: string,
    /** Whether smaller batches may fare better. */
    readonly divisible: boolean,
  ) {
    super(message);
  }
}

/** The way to a reward. */
export interface Transport {
  /** Batches that may be under way at once. */
  readonly lanes: number;
  /** One result an item, in their order. Throws BatchFault. */
  send(items: readonly RewardItem[]): Promise<readonly Json[]>;
  close(): Promise<void>;
}

export interface BatchedOptions {
  readonly name: string;
  readonly version: string;
  readonly options: { readonly [name: string]: Json };
  readonly transport: Transport;
  readonly range: Range;
  /** Answers in a batch. */
  readonly batch: number;
}

interface Waiting {
  readonly item: RewardItem;
  readonly resolve: (verdict: Verdict) => void;
}

/** A verifier whose verdicts come from a transport. */
export function batchedVerifier({ name, version, options, transport, range, batch }: BatchedOptions): Verifier {
  const queue: Waiting[] = [];
  let busy = 0;
  let faults = 0;
  const flush = (): void => {
    while (queue.length > 0 && busy < transport.lanes) {
      busy++;
      void settle(queue.splice(0, batch)).finally(() => {
        busy--;
        flush();
      });
    }
  };
  const settle = async (waiting: readonly Waiting[]): Promise<void> => {
    try {
      const results = await transport.send(waiting.map(({ item }) => item));
      for (const [i, { resolve }] of waiting.entries()) resolve(verdictOf(results[i], range));
    } catch (error) {
      const fault = error instanceof BatchFault ? error : new BatchFault("failed", error instanceof Error ? error.message : String(error), false);
      if (fault.divisible && waiting.length > 1) {
        const half = waiting.length >> 1;
        await settle(waiting.slice(0, half));
        return settle(waiting.slice(half));
      }
      faults += waiting.length;
      for (const { resolve } of waiting) resolve(unscored(fault.reason, { evidence: { message: fault.message } }));
    }
  };
  return {
    name,
    version,
    options,
    deterministic: "external",
    needsReference: false,
    checkReference: () => undefined,
    external: {
      get faults() {
        return faults;
      },
      close: () => transport.close(),
    },
    verify: (input) =>
      new Promise((resolve) => {
        // What is asked for in one turn of the event loop waits for the rest of it.
        if (queue.length === 0) setImmediate(flush);
        queue.push({ item: itemOf(input), resolve });
      }),
  };
}

/** The results in an answer of the protocol: a list as long as the batch. Throws BatchFault for anything else: a list of another length cannot be told apart. */
export function resultsOf(answer: Json, count: number, from: string): readonly Json[] {
  const object = typeof answer === "object" && answer !== null && !Array.isArray(answer) ? (answer as { readonly [name: string]: Json }) : undefined;
  if (typeof object?.error === "string") throw new BatchFault("failed", object.error.slice(0, 500), true);
  const results = object?.results;
  if (!Array.isArray(results)) throw new BatchFault("malformed", `${from} gave no list of results`, false);
  if (results.length !== count) throw new BatchFault("malformed", `${from} gave ${results.length} results for ${count} answers`, true);
  return results as readonly Json[];
}
