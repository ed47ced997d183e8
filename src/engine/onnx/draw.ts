/**
 * Drawing one token a row inside the graph: an inverse transform in two levels over the engine's own float32
 * probabilities, with sums and the uniform number in double. A single float32 cumulative sum would lose up to 1e-4 of
 * the mass and give all of it to the last token.
 *
 * Level one finds the block of 256 in which u · total falls, level two the token within it; a vocabulary of one block has only the second. Both take the last entry
 * whose exclusive cumulative sum is at most the target, and both keep the target below the sum of what they look at, so
 * that a token of probability 0 is never drawn, also for u = 0 and u = 1 − 2⁻⁵³.
 *
 * A restricted draw (top-k, top-p, min-p) is the same transform over the masses that its rules keep; `kept` tells which.
 */
import type { DecoderConfig } from "./config.js";
import { Graph, type Value } from "./graph.js";
import { blockSize, blocksOf, padded, paddedLogits } from "./head.js";
import { add, mul, rmsNorm, sub } from "./ops.js";

/** Variants of the draw graph. */
export interface DrawWants {
  /** Some row has a temperature other than 1: raw log-probs are computed apart. */
  readonly tempered: boolean;
  /** Some row is greedy or forced. */
  readonly chosen: boolean;
  readonly topK: number;
  /** Some row draws from a part of the distribution. */
  readonly restricted: boolean;
}

const count = (g: Graph, condition: Value): Value => g.apply("ReduceSum", [g.apply("Cast", [condition], { to: 7 }), g.ints([1])], { keepdims: 1 });
const double = (g: Graph, x: Value): Value => g.apply("Cast", [x], { to: 11 });

/** The last column of [R, n] as [R, 1]. */
const lastColumn = (g: Graph, x: Value): Value => g.apply("Slice", [x, g.ints([-1]), g.ints([Number.MAX_SAFE_INTEGER]), g.ints([1])]);

/** Index [R, 1] of the last entry whose exclusive cumulative sum is at most the target, what is left of the target there, and the sum of all. */
function find(g: Graph, masses: Value, target: (total: Value) => Value): { index: Value; left: Value; total: Value } {
  const before = g.apply("CumSum", [masses, g.int(1)], { exclusive: 1 });
  const total = add(g, lastColumn(g, before), lastColumn(g, masses));
  // One or two units in the last place below the total. As a product with 1 − 2⁻⁵² the runtime would drop it, taking the factor for 1.
  const below = sub(g, total, mul(g, total, g.double(2 ** -52)));
  const t = g.apply("Min", [target(total), below]);
  const index = g.apply("Sub", [count(g, g.apply("LessOrEqual", [before, t])), g.ints([1])]);
  return { index, left: g.apply("Sub", [t, g.apply("GatherElements", [before, index], { axis: 1 })]), total };
}

/** Token [R, 1] for probabilities proportional to e [R, blocks · 256] and uniforms u [R, 1] in double; and Σ e in double. */
export function drawToken(g: Graph, e: Value, vocabulary: number, u: Value): { token: Value; total: Value } {
  const share = (total: Value): Value => mul(g, u, total);
  if (padded(vocabulary) === blockSize(vocabulary)) {
    const { index: token, total } = find(g, double(g, e), share);
    return { token, total };
  }
  const byBlock = g.apply("Reshape", [e, g.ints(blocksOf(vocabulary))]);
  const sums = g.apply("ReduceSum", [double(g, byBlock), g.ints([2])], { keepdims: 0 });
  const block = find(g, sums, share);
  const inside = double(g, g.apply("GatherND", [byBlock, block.index], { batch_dims: 1 }));
  const token = find(g, inside, () => block.left);
  return { token: add(g, mul(g, block.index, g.ints([blockSize(vocabulary)])), token.index), total: block.total };
}

/** Σ e · z in double, with float32 sums within blocks. */
function energy(g: Graph, e: Value, z: Value, vocabulary: number): Value {
  const blocks = g.apply("ReduceSum", [g.apply("Reshape", [mul(g, e, z), g.ints(blocksOf(vocabulary))]), g.ints([2])], {
    keepdims: 0,
  });
  return g.apply("ReduceSum", [double(g, blocks), g.ints([1])], { keepdims: 1 });
}

/** z = logits − max, e = exp(z). */
function exponentials(g: Graph, logits: Value): { z: Value; e: Value } {
  const z = sub(g, logits, g.apply("ReduceMax", [logits, g.ints([1])], { keepdims: 1 }));
  return { z, e: g.apply("Exp", [z]) };
}

/**
 * What the rules of each row keep of masses e = exp(z) [R, n] whose largest is 1, as true or false [R, n]. Ranks go by falling z, ties by lower
 * id. Kept are the first `mostRanks` [R, 1]; of these the ranks before which less than `share` [R, 1] of their mass lies; and of these
 * masses of at least `leastMass` [R, 1]. The sums are in double. Rules that restrict nothing (n, infinity, 0) keep everything.
 */
export function kept(g: Graph, z: Value, e: Value, mostRanks: Value, share: Value, leastMass: Value): Value {
  const n = g.apply("Slice", [g.apply("Shape", [e]), g.ints([1]), g.ints([2])]);
  // A sort must not meet what is no number; the total tells of it.
  const lowest = g.float(-3e38);
  const sortable = g.apply("Where", [g.apply("GreaterOrEqual", [z, lowest]), z, lowest]);
  const ids = g.applyMany("TopK", [sortable, n], 2, { axis: 1 })[1] as Value;
  const masses = double(g, g.apply("GatherElements", [e, ids], { axis: 1 }));
  const rank = g.apply("CumSum", [g.apply("Expand", [g.ints([1]), g.apply("Shape", [e])]), g.int(1)], { exclusive: 1 });
  const first = g.apply("Less", [rank, mostRanks]);
  const before = g.apply("CumSum", [mul(g, masses, double(g, first)), g.int(1)], { exclusive: 1 });
  const all = g.apply("ReduceSum", [mul(g, masses, double(g, first)), g.ints([1])], { keepdims: 1 });
  const likely = g.apply("Less", [before, mul(g, share, all)]);
  const large = g.apply("GreaterOrEqual", [masses, leastMass]);
  const stays = g.apply("Cast", [g.apply("And", [g.apply("And", [first, likely]), large])], { to: 7 });
  return g.apply("Cast", [g.apply("ScatterElements", [g.apply("Sub", [stays, stays]), ids, stays], { axis: 1 })], { to: 9 });
}

/**
 * Final norm, head and draw. Inputs: `x` [R, width] (last layer's output), `norm`, `table`, `inverseT` [R, 1], `u` [R, 1] in
 * double, and with `chosen`: `greedy` [R, 1] and `forced` [R, 1] (an id, or −1). Outputs, each [R, 1]: `token`, `z` of it, `total`, `energy`
 * (entropy = log total − energy / total), with `tempered` `rawZ` and `rawTotal`; with topK `topZ`, `topIds` [R, k] and `topTail`.
 * With `restricted` there are the inputs of `kept`, and the output `keptTotal`: the mass drawn from, or 0 where the token lies outside of it (a forced one).
 */
export function drawGraph(c: DecoderConfig, wants: DrawWants): Uint8Array {
  const g = new Graph();
  const V = c.vocabulary;
  const normed = rmsNorm(g, g.input("x", "float32", ["R", c.width]), g.input("norm", "float32", [c.width]), c.rmsEpsilon);
  const logits = paddedLogits(g, c, normed, g.input("table", "float32", [V, c.width]));
  const u = g.input("u", "float64", ["R", 1]);
  const { z, e } = exponentials(g, wants.tempered ? mul(g, logits, g.input("inverseT", "float32", ["R", 1])) : logits);
  const whole = drawToken(g, e, V, u);
  const stays = wants.restricted
    ? kept(g, z, e, g.input("mostRanks", "int64", ["R", 1]), g.input("share", "float64", ["R", 1]), g.input("leastMass", "float64", ["R", 1]))
    : undefined;
  const left = stays && g.apply("Where", [stays, e, mul(g, e, g.float(0))]);
  const drawn = left ? drawToken(g, left, V, u) : whole;
  let token = drawn.token;
  if (wants.chosen) {
    const forced = g.input("forced", "int64", ["R", 1]);
    const best = g.apply("ArgMax", [logits], { axis: 1, keepdims: 1 });
    token = g.apply("Where", [g.input("greedy", "bool", ["R", 1]), best, token]);
    token = g.apply("Where", [g.apply("GreaterOrEqual", [forced, g.ints([0])]), forced, token]);
  }
  const of = (x: Value) => g.apply("GatherElements", [x, token], { axis: 1 });
  g.output("token", token, "int64", ["R", 1]);
  g.output("z", of(z), "float32", ["R", 1]);
  g.output("total", whole.total, "float64", ["R", 1]);
  if (stays) g.output("keptTotal", g.apply("Where", [of(stays), drawn.total, mul(g, drawn.total, g.double(0))]), "float64", ["R", 1]);
  g.output("energy", energy(g, e, z, V), "float64", ["R", 1]);
  if (wants.tempered) {
    const raw = exponentials(g, logits);
    g.output("rawZ", of(raw.z), "float32", ["R", 1]);
    g.output("rawTotal", drawToken(g, raw.e, V, u).total, "float64", ["R", 1]);
  }
  if (wants.topK) {
    const [top, topIds] = g.applyMany("TopK", [z, g.ints([wants.topK])], 2, { axis: 1 }) as [Value, Value];
    g.output("topZ", top, "float32", ["R", wants.topK]);
    g.output("topIds", topIds, "int64", ["R", wants.topK]);
    const outside = g.apply("ScatterElements", [e, topIds, mul(g, top, g.float(0))], { axis: 1 });
    const blocks = g.apply("ReduceSum", [g.apply("Reshape", [outside, g.ints(blocksOf(V))]), g.ints([2])], { keepdims: 0 });
    g.output("topTail", g.apply("ReduceSum", [double(g, blocks), g.ints([1])], { keepdims: 1 }), "float64", ["R", 1]);
  }
  return g.build();
}

/** The draw alone over given float32 probabilities, for measuring it against an inverse transform in float64. */
export function drawOnlyGraph(vocabulary: number): Uint8Array {
  const g = new Graph();
  const e = g.input("e", "float32", ["R", padded(vocabulary)]);
  const { token, total } = drawToken(g, e, vocabulary, g.input("u", "float64", ["R", 1]));
  g.output("token", token, "int64", ["R", 1]);
  g.output("total", total, "float64", ["R", 1]);
  return g.build();
}
