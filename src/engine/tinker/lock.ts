/** Who may use the weights of a role at one time: many who read them, or one who changes them. */

/** First come, first served: a writer that waits lets no later reader pass. */
export class Lock {
  private readers = 0;
  private writing = false;
  private readonly queue: { readonly writes: boolean; readonly go: () => void }[] = [];

  shared<T>(act: () => Promise<T>): Promise<T> {
    return this.run(false, act);
  }

  exclusive<T>(act: () => Promise<T>): Promise<T> {
    return this.run(true, act);
  }

  private async run<T>(writes: boolean, act: () => Promise<T>): Promise<T> {
    await new Promise<void>((go) => {
      this.queue.push({ writes, go });
      this.next();
    });
    try {
      return await act();
    } finally {
      if (writes) this.writing = false;
      else this.readers--;
      this.next();
    }
  }

  private next(): void {
    for (;;) {
      const [first] = this.queue;
      if (first === undefined || this.writing || (first.writes && this.readers > 0)) return;
      this.queue.shift();
      if (first.writes) this.writing = true;
      else this.readers++;
      first.go();
    }
  }
}
