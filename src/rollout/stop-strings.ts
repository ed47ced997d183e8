/** Stop strings: a response ends with the token that completes one, wherever the borders of tokens are. Engines see ids alone, so they are looked for here. */
import type { Tokenizer } from "../core/tokenizer.js";
import type { Sample, SampleOptions, SampleRequest } from "../engine/contract.js";

/** The engine's `sample`. */
export type EngineSample = (requests: readonly SampleRequest[], options?: SampleOptions) => AsyncIterable<Sample>;

type Streams = Pick<Tokenizer, "stream">;

/** A `sample` that takes `stop.strings`; `stop` is the reason of a response that one ends. Requests without any pass as they are. */
export function withStopStrings(sample: EngineSample, tokenizer: Streams): EngineSample {
  return (requests, options = {}) => {
    const watches = requests.map(({ stop, forced }) => (stop.strings?.length ? new StopWatch(stop.strings, tokenizer, forced?.length) : undefined));
    if (watches.every((watch) => watch === undefined)) return sample(requests, options);
    const asked = requests.map((request) => ({ ...request, stop: { ids: request.stop.ids } }));
    const onToken = (index: number, id: number): boolean => {
      const ended = watches[index]?.push(id) === true;
      return options.onToken?.(index, id) === true || ended;
    };
    return sample(asked, { ...options, onToken });
  };
}

/** Looks for stop strings in the text of one response, token by token. Special tokens count by their names. */
export class StopWatch {
  private readonly stream: ReturnType<Streams["stream"]>;
  private readonly longest: number;
  private tail = "";
  private count = 0;

  /** `forced`: so many tokens at the start end nothing. */
  constructor(
    private readonly strings: readonly string[],
    tokenizer: Streams,
    private readonly forced = 0,
  ) {
    this.stream = tokenizer.stream("show");
    this.longest = Math.max(...strings.map((text) => text.length));
  }

  /** True where this token completes a stop string: its last character is within what the token adds. */
  push(id: number): boolean {
    const { tail } = this;
    const text = tail + this.stream.push(id);
    this.tail = this.longest > 1 ? text.slice(1 - this.longest) : "";
    return ++this.count > this.forced && this.strings.some((each) => text.includes(each, Math.max(0, tail.length - each.length + 1)));
  }
}
