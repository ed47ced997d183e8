/** Numbers as GGUF files hold them: float16, and blocks of eight bits, with the bits of the reference implementation. */
import { float32ToFloat16 } from "../half.js";

/** Types that can be written, with their numbers in the file. */
export const writable = { F32: 0, F16: 1, Q8_0: 8 } as const;
export type WritableType = keyof typeof writable;

/** Numbers of a block of Q8_0. */
export const blockOf8 = 32;
const bytesOf8 = 34;

export const bytesOfType = (type: WritableType, count: number): number =>
  type === "F32" ? 4 * count : type === "F16" ? 2 * count : (count / blockOf8) * bytesOf8;

/** The bytes of numbers in a type; undefined where one of them is too large for it. Q8_0 takes whole blocks. */
export function quantised(values: Float32Array, type: WritableType): Uint8Array | undefined {
  if (type === "F32") return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  if (type === "Q8_0") return eights(values);
  const halves = float32ToFloat16(values);
  return halves.some(isInfinite) ? undefined : new Uint8Array(halves.buffer);
}

const isInfinite = (half: number): boolean => (half & 0x7fff) >= 0x7c00;

/** A float16 scale d = max / 127 and 32 whole numbers x / d, halves away from zero; each product is rounded to float32, as the reference rounds. */
function eights(values: Float32Array): Uint8Array | undefined {
  const blocks = values.length / blockOf8;
  const scales = new Float32Array(blocks);
  const out = new Int8Array(blocks * bytesOf8);
  for (let b = 0; b < blocks; b++) {
    const block = values.subarray(b * blockOf8, (b + 1) * blockOf8);
    let most = 0;
    for (const x of block) most = Math.max(most, Math.abs(x));
    const scale = Math.fround(most / 127);
    const inverse = scale === 0 ? 0 : Math.fround(1 / scale);
    scales[b] = scale;
    for (let i = 0; i < blockOf8; i++) {
      const x = Math.fround(block[i] * inverse);
      out[b * bytesOf8 + 2 + i] = Math.sign(x) * Math.floor(Math.abs(x) + 0.5);
    }
  }
  const halves = float32ToFloat16(scales);
  if (halves.some(isInfinite)) return undefined;
  for (let b = 0; b < blocks; b++) {
    out[b * bytesOf8] = halves[b] & 255;
    out[b * bytesOf8 + 1] = halves[b] >> 8;
  }
  return new Uint8Array(out.buffer);
}
