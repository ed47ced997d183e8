/** One call of the engine for a turn of all conversations that go on: an engine decodes one call as one batch. */
import { EngineError } from "../core/errors.js";
import type { Sample, SampleRequest } from "../engine/contract.js";
import type { SampleCall } from "./coalesce.js";

interface Waiting {
  readonly request: SampleRequest;
  readonly resolve: (sample: Sample) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Gathers requests until every conversation that is being played waits for one, then makes them in one call. An answer goes
 * on its way as it finishes, so tools work while others are still sampled. What is answered depends on no gathering.
 */
export class Rounds {
  private playing = 0;
  private waiting: Waiting[] = [];
  private scheduled = false;

  constructor(private readonly sample: SampleCall) {}

  /** Announces conversations; each must `leave`. */
  enter(count: number): void {
    this.playing += count;
  }

  leave(): void {
    this.playing--;
    this.check();
  }

  ask(request: SampleRequest): Promise<Sample> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ request, resolve, reject });
      this.check();
    });
  }

  private check(): void {
    if (this.scheduled || this.waiting.length === 0 || this.waiting.length < this.playing) return;
    this.scheduled = true;
    // Conversations that begin in the same turn of the event loop are still to join.
    setImmediate(() => {
      this.scheduled = false;
      if (this.waiting.length >= this.playing) void this.flush();
    });
  }

  private async flush(): Promise<void> {
    const asked = this.waiting;
    this.waiting = [];
    const open = new Set(asked);
    try {
      for await (const sample of this.sample(asked.map(({ request }) => request))) {
        const own = asked[sample.index] as Waiting;
        open.delete(own);
        own.resolve(sample);
      }
      if (open.size > 0) {
        const cause = `the engine answered ${asked.length - open.size} of ${asked.length} requests`;
        throw new EngineError({ place: "rollout", cause, mend: "start a new engine and resume the run" });
      }
    } catch (error) {
      for (const { reject } of open) reject(error);
    }
  }
}
