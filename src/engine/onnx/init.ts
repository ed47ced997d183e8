/** Random initial weights: normal numbers by the million, a pure function of seed, tensor name and index. */
import { philox, randomKey, uniform } from "../../core/random.js";

const levels = 65536;
let quantiles: Float32Array | undefined;

/** The standard normal's quantiles at (k + 1/2) / 65536, scaled to unit variance; the outermost are ±4.2. */
function normalQuantiles(): Float32Array {
  if (quantiles) return quantiles;
  const end = 6;
  const points = 1 << 17;
  const width = (2 * end) / points;
  const density = (i: number): number => Math.exp(-((-end + i * width) ** 2) / 2);
  let total = 0;
  for (let i = 0; i < points; i++) total += (density(i) + density(i + 1)) / 2;
  const values = new Float64Array(levels);
  // The lower half by walking the integral up from −6; the upper half by symmetry.
  let i = 0;
  let below = 0;
  for (let k = 0; k < levels / 2; k++) {
    const wanted = ((k + 0.5) / levels) * total;
    let piece = (density(i) + density(i + 1)) / 2;
    while (below + piece < wanted) {
      below += piece;
      i++;
      piece = (density(i) + density(i + 1)) / 2;
    }
    values[k] = -end + (i + (wanted - below) / piece) * width;
    values[levels - 1 - k] = -values[k];
  }
  const deviation = Math.sqrt(values.reduce((sum, x) => sum + x * x, 0) / levels);
  quantiles = Float32Array.from(values, (x) => x / deviation);
  return quantiles;
}

/**
 * Fills `target` with normal numbers of mean 0 and the given standard deviation, keyed by (seed, name). Our choice: each
 * is one of 65,536 quantiles drawn by 16 bits of Philox, eight to a block, so that 135M take about two seconds.
 */
export function fillNormal(target: Float32Array, seed: number, name: string, deviation: number): void {
  const key = randomKey({ seed, purpose: `init:${name}` });
  const table = normalQuantiles();
  const block = new Uint32Array(4);
  const halves = new Uint16Array(block.buffer);
  for (let at = 0, counter = 0; at < target.length; counter++) {
    philox(counter >>> 0, 0, key[2], key[3], key[0], key[1], block);
    const end = Math.min(at + 8, target.length);
    for (let lane = 0; at < end; lane++, at++) target[at] = deviation * table[halves[lane]];
  }
}

/** Fills `target` with numbers uniform in [−bound, bound), keyed by (seed, name). */
export function fillUniform(target: Float32Array, seed: number, name: string, bound: number): void {
  const key = randomKey({ seed, purpose: `init:${name}` });
  for (let i = 0; i < target.length; i++) target[i] = bound * (2 * uniform(key, i) - 1);
}
