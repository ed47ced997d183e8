/** Byte-level vocabularies: each byte has a printable character that stands for it in the names of tokens (GPT-2's table). */

/** The character of each byte, [256]: printable ones of Latin-1 stand for themselves, the others for those from U+0100 on, in order. */
const characters: readonly string[] = (() => {
  const own = (byte: number): boolean => (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
  let next = 0x100;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(own(byte) ? byte : next++));
})();

const byteOf: ReadonlyMap<string, number> = new Map(characters.map((character, byte) => [character, byte]));

/** The bytes that a token's name stands for, or undefined where a character of it stands for none. */
export function bytesOfName(name: string): Uint8Array | undefined {
  const bytes = new Uint8Array(name.length);
  for (let i = 0; i < name.length; i++) {
    const byte = byteOf.get(name[i] as string);
    if (byte === undefined) return undefined;
    bytes[i] = byte;
  }
  return bytes;
}

/** The bytes for which a vocabulary has no token of their own: what needs one of them cannot be written. */
export function bytesWithout(vocabulary: { has(name: string): boolean }): ReadonlySet<number> {
  return new Set(characters.flatMap((character, byte) => (vocabulary.has(character) ? [] : [byte])));
}

/** A text without the characters whose UTF-8 needs one of these bytes. */
export function withoutBytes(text: string, missing: ReadonlySet<number>): string {
  if (missing.size === 0) return text;
  const encoder = new TextEncoder();
  // Bytes of which most texts have none: look at the whole before its characters.
  if (!encoder.encode(text).some((byte) => missing.has(byte))) return text;
  return [...text].filter((character) => !encoder.encode(character).some((byte) => missing.has(byte))).join("");
}
