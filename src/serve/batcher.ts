/**
 * Draws for many who ask at different times: what waits while the engine draws goes to it together, since a step for sixty
 * rows takes little more than one for a single row. What a request is answered does not depend on what it was drawn beside.
 */
import type { Sample, SampleOptions, SampleRequest } from "../engine/contract.js";

/** The engine's `sample`. */
type EngineSample = (requests: readonly SampleRequest[], options: SampleOptions) => AsyncIterable<Sample>;
type OnToken = NonNullable<SampleOptions["onToken"]>;

export interface BatcherOptions {
  /** Calls of the engine at once: a short request need not wait for the longest answer of those before it. */
  readonly calls: number;
  /** Responses of one call; a request for more is a call of its own. */
  readonly rows: number;
}

interface Waiting {
  readonly requests: readonly SampleRequest[];
  readonly signal: AbortSignal;
  readonly onToken: OnToken;
  readonly resolve: (samples: Sample[]) => void;
  readonly reject: (error: unknown) => void;
  /** Tokens were told of it, so that it cannot be drawn anew. */
  told: boolean;
}

export class Batcher {
  private line: Waiting[] = [];
  private busy = 0;

  constructor(
    private readonly sample: EngineSample,
    private readonly options: BatcherOptions,
  ) {}

  /** Requests that wait. */
  get waiting(): number {
    return this.line.length;
  }

  /** The responses in the order of the requests. Throws the signal's reason, or what the engine throws of these requests. */
  draw(requests: readonly SampleRequest[], signal: AbortSignal, onToken: OnToken): Promise<Sample[]> {
    signal.throwIfAborted();
    return new Promise((resolve, reject) => {
      const gone = (): void => {
        // One that is under way ends with its next token, and the others of its call go on.
        this.line = this.line.filter((each) => each !== own);
        reject(signal.reason);
      };
      const settled = <T>(act: (value: T) => void) => {
        return (value: T): void => {
          signal.removeEventListener("abort", gone);
          act(value);
        };
      };
      const own: Waiting = { requests, signal, onToken, resolve: settled(resolve), reject: settled(reject), told: false };
      signal.addEventListener("abort", gone, { once: true });
      this.line.push(own);
      // Those that ask in the same turn of the event loop begin together.
      setImmediate(() => this.begin());
    });
  }

  private begin(): void {
    while (this.line.length > 0 && this.busy < this.options.calls) {
      const together = this.next();
      this.busy++;
      void this.call(together).finally(() => {
        this.busy--;
        this.begin();
      });
    }
  }

  /** Takes the first that waits, and of the others those that fit: an engine lists as many tokens for each row of a call. */
  private next(): Waiting[] {
    const [first] = this.line as [Waiting];
    const taken: Waiting[] = [];
    let rows = 0;
    for (const each of this.line) {
      if (each.requests[0]?.topK !== first.requests[0]?.topK || (taken.length > 0 && rows + each.requests.length > this.options.rows)) continue;
      taken.push(each);
      rows += each.requests.length;
    }
    this.line = this.line.filter((each) => !taken.includes(each));
    return taken;
  }

  private async call(together: readonly Waiting[]): Promise<void> {
    const places = together.flatMap((each) => each.requests.map((_, index) => ({ each, index })));
    const samples = new Map<Waiting, Sample[]>(together.map((each) => [each, []]));
    const stop = new AbortController();
    const left = new Set(together);
    // Where nobody is left who waits, not even the next token is drawn.
    const leave = together.map((each) => {
      const gone = (): void => {
        left.delete(each);
        if (left.size === 0) stop.abort(each.signal.reason);
      };
      each.signal.addEventListener("abort", gone, { once: true });
      if (each.signal.aborted) gone();
      return () => each.signal.removeEventListener("abort", gone);
    });
    const onToken: OnToken = (row, id) => {
      const { each, index } = places[row] as (typeof places)[number];
      if (each.signal.aborted) return true;
      each.told = true;
      return each.onToken(index, id);
    };
    try {
      for await (const answer of this.sample(
        together.flatMap(({ requests }) => requests),
        { signal: stop.signal, onToken },
      )) {
        const { each, index } = places[answer.index] as (typeof places)[number];
        const own = samples.get(each) as Sample[];
        own[index] = { ...answer, index };
        // Complete: it need not wait for the others.
        if (Object.keys(own).length === each.requests.length) {
          left.delete(each);
          each.resolve(own);
        }
      }
      // Those that have their answers are not moved by this.
      for (const each of together) each.resolve(samples.get(each) as Sample[]);
    } catch (error) {
      await this.apart([...left], error);
    } finally {
      for (const end of leave) end();
    }
  }

  /** After a fault of a call: it may be that of one request alone, so each is tried by itself that has told nothing yet. */
  private async apart(left: readonly Waiting[], error: unknown): Promise<void> {
    if (left.length === 1 || left.every(({ told }) => told)) return left.forEach(({ reject }) => reject(error));
    for (const each of left) {
      if (each.told) each.reject(error);
      else if (!each.signal.aborted) await this.call([each]);
    }
  }
}
