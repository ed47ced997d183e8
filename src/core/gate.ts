/** So many at once: others wait in line, first come first served. */
export class Gate {
  private inside = 0;
  private readonly line: (() => void)[] = [];

  constructor(private readonly places: number) {}

  /** How many wait. */
  get waiting(): number {
    return this.line.length;
  }

  /** Runs `work` when there is a place. Throws the signal's reason where it is aborted while in line. */
  async run<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    await this.enter(signal);
    try {
      return await work();
    } finally {
      const next = this.line.shift();
      if (next === undefined) this.inside--;
      else next(); // It takes over the place.
    }
  }

  private async enter(signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    if (this.inside < this.places) {
      this.inside++;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const go = (): void => {
        signal?.removeEventListener("abort", gone);
        resolve();
      };
      const gone = (): void => {
        this.line.splice(this.line.indexOf(go), 1);
        reject(signal?.reason as Error);
      };
      this.line.push(go);
      signal?.addEventListener("abort", gone, { once: true });
    });
  }
}
