import { uniform } from "../../core/random.js";
import type { StopReason } from "../../core/trajectory.js";
import type { Sample, SampleOptions, SampleRequest } from "../contract.js";
import { draw, entropyOf, logSoftmax, mostLikely, topOf, truncated } from "../values.js";
import type { TableModel } from "./model.js";
import type { Weighted } from "./roles.js";

/** One response being drawn. All requests of a call go one token at a time, so that a cancelled call stops between tokens. */
export class Drawing {
  private readonly ids: number[] = [];
  private readonly rawLogp: number[] = [];
  private readonly logp: number[] = [];
  private readonly entropy: number[] = [];
  private readonly top: { ids: number[]; logp: number[]; tail: number[] } = { ids: [], logp: [], tail: [] };
  private readonly sequence: number[];
  private stop: StopReason = "cancelled";

  constructor(
    private readonly index: number,
    private readonly request: SampleRequest,
    private readonly model: TableModel,
    private readonly weights: Weighted,
  ) {
    this.sequence = Array.from(request.context.ids);
  }

  /** Takes one token; true when it was the last. `onToken`: as the contract has it. */
  advance(onToken: SampleOptions["onToken"] | undefined): boolean {
    const { model, request, ids } = this;
    const { temperature, truncation, forced, topK } = request;
    const logits = model.logits(this.weights.tensors, model.features(request.context, this.sequence, this.sequence.length - 1));
    const full = logSoftmax(logits, temperature);
    const from = truncation ? truncated(full, truncation) : full;
    const position = ids.length;
    let token: number;
    if (position < (forced?.length ?? 0)) token = forced![position];
    else token = request.greedy ? mostLikely(from) : draw(from, uniform(request.key, position));
    ids.push(token);
    this.sequence.push(token);
    this.rawLogp.push(temperature === 1 ? full[token] : logSoftmax(logits)[token]);
    this.logp.push(from[token]);
    this.entropy.push(entropyOf(full));
    if (topK !== undefined) {
      const top = topOf(full, topK);
      this.top.ids.push(...top.ids);
      this.top.logp.push(...top.logp);
      this.top.tail.push(top.tail);
    }
    const told = onToken?.(this.index, token) === true;
    if (request.stop.ids.includes(token)) this.stop = "eos";
    else if (told) this.stop = "stop";
    else if (ids.length === request.maxTokens) this.stop = "length";
    return this.stop !== "cancelled";
  }

  /** Tokens drawn so far, forced ones left out. */
  get drawn(): number {
    return Math.max(0, this.ids.length - (this.request.forced?.length ?? 0));
  }

  /** What there is of it: complete, or `cancelled`. */
  answer(): Sample {
    const { topK, forced } = this.request;
    const top =
      topK === undefined
        ? {}
        : { top: { k: topK, ids: Int32Array.from(this.top.ids), logp: Float64Array.from(this.top.logp), tail: Float64Array.from(this.top.tail) } };
    return {
      index: this.index,
      ids: Int32Array.from(this.ids),
      sampled: Uint8Array.from(this.ids, (_, t) => (t < (forced?.length ?? 0) ? 0 : 1)),
      rawLogp: Float64Array.from(this.rawLogp),
      logp: Float64Array.from(this.logp),
      entropy: Float64Array.from(this.entropy),
      stop: this.stop,
      ...top,
      weights: this.weights.identity,
    };
  }
}
