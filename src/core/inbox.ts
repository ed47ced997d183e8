/** A queue that is written in one place and read in another, in order. */
export class Inbox<T> implements AsyncIterable<T> {
  private readonly items: T[] = [];
  private state: "open" | "ended" | { readonly error: unknown } = "open";
  private wake: (() => void) | undefined;

  put(item: T): void {
    this.items.push(item);
    this.wake?.();
  }

  end(): void {
    if (this.state === "open") this.state = "ended";
    this.wake?.();
  }

  fail(error: unknown): void {
    if (this.state === "open") this.state = { error };
    this.wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    for (;;) {
      while (this.items.length > 0) yield this.items.shift() as T;
      if (this.state === "ended") return;
      if (this.state !== "open") throw this.state.error;
      await new Promise<void>((resolve) => {
        this.wake = resolve;
      });
      this.wake = undefined;
    }
  }
}
