/** Random points, as a pure function of what they are for: the same comparison draws the same points everywhere. */
import { philox, type RandomKey, randomKey } from "../../core/random.js";

const keys = new Map<string, RandomKey>();
const mostKeys = 2048;
const block = new Uint32Array(4);

/** A uniform 32-bit number for a purpose and a counter (Philox4x32-10). */
export function draw(purpose: string, counter: number): number {
  let key = keys.get(purpose);
  if (key === undefined) {
    key = randomKey({ seed: 0, purpose: `math ${purpose}` });
    if (keys.size >= mostKeys) keys.clear();
    keys.set(purpose, key);
  }
  philox(counter, 0, key[2], key[3], key[0], key[1], block);
  return block[0] as number;
}
