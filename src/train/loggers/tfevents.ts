/**
 * TensorBoard's event files: records of TFRecord (length, masked CRC of the length, data, masked CRC of the data), each a
 * protobuf Event. Field numbers are those of TensorFlow's event.proto and summary.proto.
 */
import protobuf from "protobufjs";

const types = protobuf.parse(
  `syntax = "proto3";
  message Value { string tag = 1; oneof value { float simple_value = 2; } }
  message Summary { repeated Value value = 1; }
  message Event { double wall_time = 1; int64 step = 2; oneof what { string file_version = 3; Summary summary = 5; } }`,
  { keepCase: true },
).root;
const eventType = types.lookupType("Event");

export interface TfEvent {
  /** Seconds since 1970. */
  readonly wall_time: number;
  readonly step?: number;
  readonly file_version?: string;
  readonly summary?: { readonly value: readonly { readonly tag: string; readonly simple_value: number }[] };
}

/** An event as a record. */
export function encodeRecord(event: TfEvent): Buffer {
  const data = eventType.encode(eventType.fromObject(event)).finish();
  const record = Buffer.alloc(data.length + 16);
  record.writeUInt32LE(data.length, 0); // The upper half of the length stays 0.
  record.writeUInt32LE(maskedCrc(record.subarray(0, 8)), 8);
  record.set(data, 12);
  record.writeUInt32LE(maskedCrc(data), data.length + 12);
  return record;
}

/** The step of each record of a file with the offset after it, up to the first that is damaged or torn. */
export function* steps(file: Buffer): Generator<{ readonly step: number; readonly end: number }> {
  let at = 0;
  while (at + 16 <= file.length) {
    const length = Number(file.readBigUInt64LE(at));
    const end = at + length + 16;
    if (end > file.length || file.readUInt32LE(at + 8) !== maskedCrc(file.subarray(at, at + 8))) return;
    const data = file.subarray(at + 12, end - 4);
    if (file.readUInt32LE(end - 4) !== maskedCrc(data)) return;
    yield { step: Number(eventType.toObject(eventType.decode(data), { longs: Number, defaults: true }).step), end };
    at = end;
  }
}

const polynomial = 0x82f63b78;
const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ polynomial : crc >>> 1;
  return crc;
});

/** CRC-32C (Castagnoli, RFC 3720). */
export function crc32c(data: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of data) crc = (crc >>> 8) ^ table[(crc ^ byte) & 255];
  return (crc ^ 0xffffffff) >>> 0;
}

/** The CRC as TFRecord stores it: turned by 15 bits, and a constant added. */
function maskedCrc(data: Uint8Array): number {
  const crc = crc32c(data);
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0;
}
