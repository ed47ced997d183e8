/**
 * Batched decoding. Requests wait until a row is free; requests with the same context share one prefill; each step
 * decodes one token of every row, and between steps the loop yields, so that a cancelled request stops within two.
 * No number of a row depends on the other rows, so batch size, order and arrival change nothing.
 */
import type { Tensor } from "onnxruntime-node";
import { DivergenceError } from "../../core/errors.js";
import { uniform } from "../../core/random.js";
import type { StopReason, Truncation } from "../../core/trajectory.js";
import type { Sample, SampleOptions, SampleRequest, Scores } from "../contract.js";
import { KeyValueCache } from "./cache.js";
import { decodeGraph, fed } from "./decode.js";
import { type DrawWants, drawGraph } from "./draw.js";
import { padded } from "./head.js";
import { layerForward } from "./layer.js";
import { evenLength, packMask } from "./pack.js";
import { adaptedOf, adapterFeeds, embed, headName, layerFeeds, layersKey, type Model, shapeKey } from "./pass.js";
import { readTop } from "./readout.js";
import type { Feeds, Sessions } from "./sessions.js";

/** What the sampler counts for the ledger. */
export interface SampleCounts {
  prefillTokens: number;
  sampledTokens: number;
  slots: number;
}

type OnToken = SampleOptions["onToken"] | undefined;

interface Open {
  readonly index: number;
  readonly request: SampleRequest;
  readonly ids: number[];
  readonly logp: number[];
  readonly rawLogp: number[];
  readonly entropy: number[];
  readonly top: Scores["top"];
  stop: StopReason | undefined;
}

/** Prompts of one prefill take at most this many places together. */
const prefillPlaces = 4096;

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

export class Sampler {
  private readonly weights: Feeds;

  constructor(
    private readonly sessions: Sessions,
    private readonly model: Model,
    private readonly identity: string,
    private readonly maxRows: number,
    private readonly counts: SampleCounts,
  ) {
    this.weights = adapterFeeds(sessions, model);
    for (let layer = 0; layer < model.config.layers; layer++) {
      for (const [name, tensor] of Object.entries(layerFeeds(sessions, model, layer))) this.weights[fed(layer, name)] = tensor;
    }
  }

  /** Answers all requests, each as soon as it is finished. */
  async *run(requests: readonly { index: number; request: SampleRequest }[], { signal, onToken }: SampleOptions = {}): AsyncGenerator<Sample> {
    const waiting = byContext(requests).map(({ index, request }) => open(index, request));
    const rowsAtOnce = Math.min(this.maxRows, waiting.length);
    const first = Math.max(...requests.map(({ request }) => request.context.ids.length + Math.min(request.maxTokens, 16)));
    // A lone row is decoded beside an empty one, since a product with one row takes another kernel.
    const cache = new KeyValueCache(this.model.config, Math.max(2, rowsAtOnce), first);
    const rows: Open[] = [];
    while (waiting.length > 0 || rows.length > 0) {
      await nextTurn();
      if (signal?.aborted) break;
      if (waiting.length > 0 && rows.length < rowsAtOnce) await this.admit(waiting, rows, rowsAtOnce, cache, onToken);
      else await this.step(rows, cache, onToken);
      for (let row = rows.length - 1; row >= 0; row--) {
        const done = rows[row] as Open;
        if (done.stop === undefined) continue;
        const last = rows.pop() as Open;
        if (row < rows.length) {
          cache.move(rows.length, row);
          rows[row] = last;
        }
        yield this.answer(done);
      }
    }
    for (const cancelled of [...rows, ...waiting]) yield this.answer(cancelled, "cancelled");
  }

  /** Prefills as many waiting requests as there are free rows and draws the first token of each. */
  private async admit(waiting: Open[], rows: Open[], limit: number, cache: KeyValueCache, onToken: OnToken): Promise<void> {
    const { config: c } = this.model;
    const batch: { readonly prompt: number; readonly open: Open }[] = [];
    const prompts: Open[] = [];
    let longest = 0;
    while (waiting.length > 0 && rows.length + batch.length < limit) {
      const next = waiting[0] as Open;
      if (prompts.length === 0 || contextKey(next.request) !== contextKey((prompts.at(-1) as Open).request)) {
        const length = Math.max(longest, next.request.context.ids.length);
        if (prompts.length > 0 && length * (prompts.length + 1) > prefillPlaces) break;
        prompts.push(next);
        longest = length;
      }
      batch.push({ prompt: prompts.length - 1, open: waiting.shift() as Open });
    }
    const length = evenLength(longest);
    const x = new Float32Array(prompts.length * length * c.width);
    prompts.forEach(({ request }, p) => embed(this.model, request.context, new Int32Array(0), x, p * length));
    const positions = BigInt64Array.from({ length: prompts.length * length }, (_, i) => BigInt(i % length));
    const mask = packMask({ rows: 1, length, places: [{ sequence: 0, row: 0, start: 0 }] }, [length]);
    const common: Feeds = {
      positions: this.sessions.ints(positions, [prompts.length, length]),
      mask: this.sessions.float(mask.data, [1, 1, length, length]),
      ...this.sessions.rotation(c, length),
      ...adapterFeeds(this.sessions, this.model),
    };
    cache.reserve(longest);
    let stream: Float32Array = x;
    for (let layer = 0; layer < c.layers; layer++) {
      const feeds = { x: this.sessions.float(stream, [prompts.length * length, c.width]), ...layerFeeds(this.sessions, this.model, layer), ...common };
      const out = await this.sessions.run(`prefill ${layersKey(this.model)}`, () => layerForward(c, "cache", adaptedOf(this.model, this.sessions)), feeds);
      stream = out.y?.data as Float32Array;
      batch.forEach(({ prompt, open: { request } }, i) =>
        cache.fill(rows.length + i, layer, out.kept_k?.data as Float32Array, out.kept_v?.data as Float32Array, prompt, length, request.context.ids.length),
      );
    }
    this.counts.prefillTokens += prompts.reduce((sum, { request }) => sum + request.context.ids.length, 0);
    this.counts.slots += prompts.length * length;
    const last = new Float32Array(Math.max(2, batch.length) * c.width);
    batch.forEach(({ prompt, open: { request } }, i) => {
      const from = (prompt * length + request.context.ids.length - 1) * c.width;
      last.set(stream.subarray(from, from + c.width), i * c.width);
    });
    const opened = batch.map((b) => b.open);
    await this.draw(opened, last, onToken);
    rows.push(...opened);
  }

  /** Decodes the last token of every row and draws the next. */
  private async step(rows: readonly Open[], cache: KeyValueCache, onToken: OnToken): Promise<void> {
    const { config: c } = this.model;
    const R = Math.max(2, rows.length);
    const places = rows.map(({ request, ids }) => request.context.ids.length + ids.length - 1);
    cache.reserve(Math.max(...places) + 1);
    const S = cache.capacity;
    const x = new Float32Array(R * c.width);
    const mask = new Float32Array(R * (S + 1)).fill(-1e9);
    const positions = new BigInt64Array(R);
    const table = this.model.get("embed").data;
    for (let row = 0; row < R; row++) {
      mask[row * (S + 1)] = 0;
      if (row >= rows.length) continue;
      const place = places[row] as number;
      const id = (rows[row] as Open).ids.at(-1) as number;
      for (let i = 0; i < c.width; i++) x[row * c.width + i] = table[id * c.width + i];
      mask.fill(0, row * (S + 1), row * (S + 1) + 1 + place);
      positions[row] = BigInt(place);
    }
    const out = await this.sessions.run(`decode ${layersKey(this.model)}`, () => decodeGraph(c, adaptedOf(this.model, this.sessions)), {
      x: this.sessions.float(x, [R, c.width]),
      mask: this.sessions.float(mask, [R, 1, 1, S + 1]),
      positions: this.sessions.ints(positions, [R, 1]),
      splits: this.sessions.ints(BigInt64Array.of(1n, BigInt(S)), [2]),
      ...this.sessions.rotation(c, S + 1),
      ...cache.feeds(this.sessions, R),
      ...this.weights,
    });
    cache.append(out, places);
    this.counts.slots += R;
    await this.draw(rows, out.y?.data as Float32Array, onToken);
  }

  /** Draws one token a row from the last layer's output `y` [max(2, rows), width]. */
  private async draw(rows: readonly Open[], y: Float32Array, onToken: OnToken): Promise<void> {
    const { config: c } = this.model;
    const { sessions } = this;
    const R = Math.max(2, rows.length);
    const wants: DrawWants = {
      tempered: rows.some(({ request }) => request.temperature !== 1),
      chosen: rows.some(({ request, ids }) => request.greedy || ids.length < (request.forced?.length ?? 0)),
      topK: rows[0]?.request.topK ?? 0,
      restricted: rows.some(({ request }) => restricts(request.truncation)),
    };
    const u = new Float64Array(R);
    const inverseT = new Float32Array(R).fill(1);
    const greedy = new Uint8Array(R);
    const forced = new BigInt64Array(R).fill(-1n);
    const rules = {
      mostRanks: new BigInt64Array(R).fill(BigInt(padded(c.vocabulary))),
      share: new Float64Array(R).fill(Number.POSITIVE_INFINITY),
      leastMass: new Float64Array(R),
    };
    rows.forEach(({ request, ids }, row) => {
      u[row] = uniform(request.key, ids.length);
      inverseT[row] = 1 / request.temperature;
      greedy[row] = request.greedy ? 1 : 0;
      const next = request.forced?.[ids.length];
      if (next !== undefined) forced[row] = BigInt(next);
      const { topK, topP, minP } = request.truncation ?? {};
      if (topK !== undefined) rules.mostRanks[row] = BigInt(topK);
      // A share of 1 is all, whatever the rounding of the sums.
      if (topP !== undefined && topP < 1) rules.share[row] = topP;
      if (minP !== undefined) rules.leastMass[row] = minP;
    });
    const out = await sessions.run(`draw ${Object.values(wants).join()} ${shapeKey(c)}`, () => drawGraph(c, wants), {
      x: sessions.float(y.length === R * c.width ? y : y.subarray(0, R * c.width), [R, c.width]),
      norm: sessions.weight(this.model.get("norm").data, [c.width]),
      table: sessions.weight(this.model.get(headName(c)).data, [c.vocabulary, c.width]),
      u: sessions.double(u, [R, 1]),
      inverseT: sessions.float(inverseT, [R, 1]),
      greedy: sessions.bools(greedy, [R, 1]),
      forced: sessions.ints(forced, [R, 1]),
      mostRanks: sessions.ints(rules.mostRanks, [R, 1]),
      share: sessions.double(rules.share, [R, 1]),
      leastMass: sessions.double(rules.leastMass, [R, 1]),
    });
    const array = (name: string) => (out[name] as Tensor).data as Float32Array | Float64Array;
    const tokens = out.token?.data as BigInt64Array;
    rows.forEach((row, r) => {
      const { request, ids } = row;
      const total = array("total")[r] as number;
      const log = Math.log(total);
      const z = array("z")[r] as number;
      const whole = z - log;
      if (row.top) readTop(row.top, ids.length, r, out, log);
      const token = Number(tokens[r]);
      if (!Number.isFinite(total) || token < 0 || token >= c.vocabulary) throw notFinite(this.identity, request.weights.role, ids.length);
      ids.push(token);
      row.logp.push(wants.restricted ? restrictedLogp(z, array("keptTotal")[r] as number) : whole);
      row.rawLogp.push(request.temperature === 1 ? whole : (array("rawZ")[r] as number) - Math.log(array("rawTotal")[r] as number));
      row.entropy.push(log - (array("energy")[r] as number) / total);
      if (ids.length > (request.forced?.length ?? 0)) this.counts.sampledTokens++;
      const told = onToken?.(row.index, token) === true;
      if (request.stop.ids.includes(token)) row.stop = "eos";
      else if (told) row.stop = "stop";
      else if (ids.length >= request.maxTokens) row.stop = "length";
    });
  }

  private answer({ index, request, ids, logp, rawLogp, entropy, top, stop }: Open, otherwise: StopReason = "cancelled"): Sample {
    const n = ids.length;
    const forced = request.forced?.length ?? 0;
    return {
      index,
      ids: Int32Array.from(ids),
      sampled: Uint8Array.from({ length: n }, (_, t) => (t < forced ? 0 : 1)),
      rawLogp: Float64Array.from(rawLogp),
      logp: Float64Array.from(logp),
      entropy: Float64Array.from(entropy),
      stop: stop ?? otherwise,
      ...(top ? { top: { k: top.k, ids: top.ids.slice(0, n * top.k), logp: top.logp.slice(0, n * top.k), tail: top.tail.slice(0, n) } } : {}),
      weights: this.identity,
    };
  }
}

function open(index: number, request: SampleRequest): Open {
  const { topK: k, maxTokens: n } = request;
  const top = k ? { k, ids: new Int32Array(n * k), logp: new Float64Array(n * k), tail: new Float64Array(n) } : undefined;
  return { index, request, ids: [], logp: [], rawLogp: [], entropy: [], top, stop: undefined };
}

/** Whether there is a rule, even one that keeps all. */
const restricts = (truncation: Truncation | undefined): boolean => truncation !== undefined && Object.values(truncation).some((rule) => rule !== undefined);

/** −Infinity for a token outside of what was drawn from: it was forced. */
const restrictedLogp = (z: number, keptTotal: number): number => (keptTotal > 0 ? z - Math.log(keptTotal) : Number.NEGATIVE_INFINITY);

function notFinite(identity: string, role: string, position: number): DivergenceError {
  return new DivergenceError({
    place: `sampling from ${role}`,
    cause: `the logits of token ${position} under ${identity} are not finite`,
    mend: "go on from an earlier checkpoint with a lower learning rate",
    data: { reason: "non-finite" },
  });
}

const keys = new WeakMap<SampleRequest, string>();

/** Equal for requests that can share a prefill. */
function contextKey(request: SampleRequest): string {
  let key = keys.get(request);
  if (key === undefined) {
    const { ids, rows } = request.context;
    key = `${ids.join()}${rows ? `;${rows.mode};${rows.positions.join()};${rows.rows.join()}` : ""}`;
    keys.set(request, key);
  }
  return key;
}

/** Requests of one context next to each other, contexts in the order in which they first come. */
function byContext<T extends { readonly request: SampleRequest }>(requests: readonly T[]): T[] {
  const groups = new Map<string, T[]>();
  for (const item of requests) {
    const key = contextKey(item.request);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return [...groups.values()].flat();
}
