/** The table engine with its calls put off, so that what could happen at the same time happens in one order or another. */
import { setTimeout } from "node:timers/promises";
import type { CallOptions, SampleRequest } from "../../src/engine/contract.js";
import { TableEngine } from "../../src/engine/table/engine.js";

/**
 * `samples first`: nothing is passed through the policy while anything is sampled; `trains first`: what a snapshot samples
 * waits until nothing else goes on; `one at a time`: a call begins when the one before has ended; `keyed`: every answer
 * comes after some turns of the event loop that depend on its key. `latency`: every answer comes after so many milliseconds,
 * half to one and a half of them by its key.
 */
export type Schedule = "samples first" | "trains first" | "one at a time" | "keyed" | { readonly latency: number };

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const turns = async (count: number): Promise<void> => {
  for (let i = 0; i < count; i++) await turn();
};

export class ScheduledEngine extends TableEngine {
  private sampling = 0;
  private passing = 0;
  private calls = 0;
  private last: Promise<unknown> = Promise.resolve();

  constructor(private readonly schedule: Schedule) {
    super();
  }

  override async *sample(requests: readonly SampleRequest[], options?: CallOptions): ReturnType<TableEngine["sample"]> {
    if (this.schedule === "trains first" && requests.some(({ weights }) => weights.at !== undefined)) await this.quiet(() => this.passing);
    const end = await this.begun();
    this.sampling++;
    try {
      if (this.schedule === "keyed" || typeof this.schedule === "object") yield* this.late(requests, options);
      else yield* super.sample(requests, options);
    } finally {
      this.sampling--;
      end();
    }
  }

  override score(...call: Parameters<TableEngine["score"]>): ReturnType<TableEngine["score"]> {
    return this.pass(() => super.score(...call));
  }

  override forward(...call: Parameters<TableEngine["forward"]>): ReturnType<TableEngine["forward"]> {
    return this.pass(() => super.forward(...call));
  }

  override backward(...call: Parameters<TableEngine["backward"]>): ReturnType<TableEngine["backward"]> {
    return this.pass(() => super.backward(...call));
  }

  override step(...call: Parameters<TableEngine["step"]>): ReturnType<TableEngine["step"]> {
    return this.pass(() => super.step(...call));
  }

  private async pass<T>(run: () => Promise<T>): Promise<T> {
    this.passing++;
    try {
      if (this.schedule === "samples first") await this.quiet(() => this.sampling);
      const end = await this.begun();
      try {
        return await run();
      } finally {
        end();
      }
    } finally {
      this.passing--;
    }
  }

  /** Waits for some turns in which there is none of something and no call is made. */
  private async quiet(some: () => number): Promise<void> {
    for (let seen = -1; some() > 0 || seen !== this.calls; ) {
      seen = this.calls;
      await turns(30);
    }
  }

  /** Counts a call and, one at a time, waits for the one before; what it returns ends it. */
  private async begun(): Promise<() => void> {
    this.calls++;
    if (this.schedule !== "one at a time") return () => undefined;
    const before = this.last;
    let end: () => void = () => undefined;
    this.last = new Promise<void>((resolve) => (end = resolve));
    await before;
    return end;
  }

  private async *late(requests: readonly SampleRequest[], options: CallOptions | undefined): ReturnType<TableEngine["sample"]> {
    const { schedule } = this;
    const start = performance.now();
    for await (const answer of super.sample(requests, options)) {
      const key = (requests[answer.index] as SampleRequest).key[0] >>> 0;
      if (typeof schedule !== "object") await turns(key % 17);
      else {
        const due = start + schedule.latency * (0.5 + key / 2 ** 32);
        const wait = { ...(options?.signal ? { signal: options.signal } : {}) };
        await setTimeout(Math.max(0, due - performance.now()), undefined, wait).catch(() => undefined);
      }
      yield answer;
    }
  }
}
