/** Half-precision formats to float32, exactly, and back, rounded to the nearest. */

let table: Float32Array | undefined;

/** The float32 of every float16 bit pattern, [65536]. */
function float16Table(): Float32Array {
  if (table) return table;
  table = new Float32Array(65536);
  for (let bits = 0; bits < 65536; bits++) {
    const exponent = (bits >> 10) & 31;
    const fraction = bits & 1023;
    const sign = bits & 0x8000 ? -1 : 1;
    if (exponent === 31) table[bits] = fraction ? Number.NaN : sign * Number.POSITIVE_INFINITY;
    else table[bits] = sign * (exponent === 0 ? fraction * 2 ** -24 : (1024 + fraction) * 2 ** (exponent - 25));
  }
  return table;
}

/** IEEE binary16 (1 sign, 5 exponent, 10 fraction bits) into `target`. */
export function float16ToFloat32(bits: Uint16Array, target: Float32Array | Float64Array): void {
  const values = float16Table();
  for (let i = 0; i < bits.length; i++) target[i] = values[bits[i]];
}

/** bfloat16, the high half of a float32, into `target`. */
export function bfloat16ToFloat32(bits: Uint16Array, target: Float32Array | Float64Array): void {
  const word = new Uint32Array(1);
  const value = new Float32Array(word.buffer);
  for (let i = 0; i < bits.length; i++) {
    word[0] = bits[i] << 16;
    target[i] = value[0];
  }
}

/** float32 as bfloat16: to the nearest, of two equally near ones the even. What is not finite stays so. */
export function float32ToBfloat16(values: Float32Array): Uint16Array {
  const words = new Uint32Array(values.buffer, values.byteOffset, values.length);
  const result = new Uint16Array(values.length);
  for (let i = 0; i < words.length; i++) {
    const word = words[i];
    const rounded = (word + 0x7fff + ((word >>> 16) & 1)) >>> 16;
    // Rounding must not carry the fraction of a NaN into the exponent.
    result[i] = (word & 0x7fffffff) > 0x7f800000 ? (word >>> 16) | 0x40 : rounded;
  }
  return result;
}

/** float32 as IEEE binary16: to the nearest, of two equally near ones the even. What is too large for it becomes infinite. */
export function float32ToFloat16(values: Float32Array): Uint16Array {
  const words = new Uint32Array(values.buffer, values.byteOffset, values.length);
  const result = new Uint16Array(values.length);
  for (let i = 0; i < words.length; i++) {
    const sign = (words[i] >>> 16) & 0x8000;
    const word = words[i] & 0x7fffffff;
    if (word > 0x7f800000) result[i] = sign | 0x7e00;
    else if (word >= 0x47800000) result[i] = sign | 0x7c00;
    else if (word >= 0x38800000) result[i] = sign | ((word - 0x38000000 + 0xfff + ((word >>> 13) & 1)) >>> 13);
    else result[i] = sign | toEven(Math.abs(values[i]) * 2 ** 24);
  }
  return result;
}

/** The nearest whole number, of two equally near ones the even. */
function toEven(x: number): number {
  const below = Math.floor(x);
  const rest = x - below;
  return rest > 0.5 || (rest === 0.5 && below % 2 === 1) ? below + 1 : below;
}
