/** Tokens as they are drawn, on the side that asked: which responses it ends, and where. */
import type { Sample, SampleOptions } from "../contract.js";
import { cutSample } from "../cut.js";

/** The engine draws on until it hears of an end, so what it answers is cut there: the response is the same however long that took. */
export class Told {
  /** Tokens of each response so far. */
  private readonly counts = new Map<number, number>();
  /** How many tokens of a response there are to be. */
  private readonly ends = new Map<number, number>();

  constructor(
    private readonly onToken: SampleOptions["onToken"] | undefined,
    private readonly stop: (index: number) => void,
  ) {}

  /** Index and id of each token, in pairs. */
  tell(pairs: Int32Array): void {
    for (let i = 0; i < pairs.length; i += 2) {
      const [index, id] = [pairs[i] as number, pairs[i + 1] as number];
      if (this.ends.has(index)) continue;
      const count = (this.counts.get(index) ?? 0) + 1;
      this.counts.set(index, count);
      if (!this.onToken?.(index, id)) continue;
      this.ends.set(index, count);
      this.stop(index);
    }
  }

  cut(sample: Sample): Sample {
    const end = this.ends.get(sample.index);
    return end === undefined || (end === sample.ids.length && sample.stop === "eos") ? sample : cutSample(sample, end);
  }
}
