/** Answers as they come, and how many are waited for at one time. */

/** Values of several sources in the order of their arrival. */
export class Arrivals<T> implements AsyncIterable<T> {
  private ready: T[] = [];
  private ended = false;
  private failure: { readonly error: unknown } | undefined;
  private wake: () => void = () => undefined;

  put(value: T): void {
    this.ready.push(value);
    this.wake();
  }

  end(): void {
    this.ended = true;
    this.wake();
  }

  fail(error: unknown): void {
    this.failure ??= { error };
    this.end();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    for (;;) {
      const values = this.ready;
      this.ready = [];
      yield* values;
      if (this.ready.length > 0) continue;
      if (this.failure) throw this.failure.error;
      if (this.ended) return;
      await new Promise<void>((resolve) => (this.wake = resolve));
    }
  }
}

/** At most so many acts at one time; the others wait their turn. */
export class Slots {
  private readonly waiting: (() => void)[] = [];

  constructor(private free: number) {}

  async run<T>(act: () => Promise<T>): Promise<T> {
    if (this.free > 0) this.free--;
    else await new Promise<void>((resolve) => this.waiting.push(resolve));
    try {
      return await act();
    } finally {
      const next = this.waiting.shift();
      if (next) next();
      else this.free++;
    }
  }
}
