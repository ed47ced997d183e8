/** What of a response's text a client sees: all before the stop string that is complete first, given out as far as no stop string can begin in it. */
export class Visible {
  private held = "";
  private over = false;
  /** The stop string that ended it. */
  ended: string | undefined;

  constructor(
    private readonly stops: readonly string[],
    /** The stop string is shown too. */
    private readonly whole = false,
  ) {}

  /** What is certain now that this text has come. */
  push(text: string): string {
    if (this.over) return "";
    this.held += text;
    const found = this.stops.map((stop) => ({ stop, at: this.held.indexOf(stop) })).filter(({ at }) => at >= 0);
    if (found.length > 0) {
      // The one that is complete first, so that it does not matter in which pieces the text comes.
      const endOf = ({ stop, at }: (typeof found)[number]): number => at + stop.length;
      const { stop, at } = found.reduce((first, other) =>
        endOf(other) < endOf(first) || (endOf(other) === endOf(first) && other.at < first.at) ? other : first,
      );
      this.over = true;
      this.ended = stop;
      return this.held.slice(0, this.whole ? at + stop.length : at);
    }
    const kept = this.begun();
    const shown = this.held.slice(0, this.held.length - kept);
    this.held = this.held.slice(this.held.length - kept);
    return shown;
  }

  /** The rest, once nothing more comes. */
  end(): string {
    const rest = this.over ? "" : this.held;
    this.over = true;
    return rest;
  }

  /** Length of the longest end of the held text that begins a stop string. */
  private begun(): number {
    const longest = Math.max(0, ...this.stops.map((stop) => stop.length - 1));
    for (let length = Math.min(longest, this.held.length); length > 0; length--) {
      const tail = this.held.slice(-length);
      if (this.stops.some((stop) => stop.startsWith(tail))) return length;
    }
    return 0;
  }
}
