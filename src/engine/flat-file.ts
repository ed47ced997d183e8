/** Arrays of numbers as raw files, end to end in the machine's own order: how gradients pass between engines of one machine. */
import { closeSync, constants, fstatSync, ftruncateSync, openSync, readSync, writeSync } from "node:fs";
import { ArgumentError } from "../core/errors.js";

export type Numbers = Float32Array | Float64Array;

/** Node takes at most 2 GiB at once. */
const chunkBytes = 2 ** 30;

const bytesOf = (numbers: Numbers): Uint8Array => new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength);

/** Writes arrays end to end. An older file is overwritten in place, since its pages are there already. */
export function writeNumbers(file: string, arrays: Iterable<Numbers>): void {
  const descriptor = openSync(file, constants.O_RDWR | constants.O_CREAT, 0o600);
  try {
    let at = 0;
    for (const array of arrays) {
      const bytes = bytesOf(array);
      for (let from = 0; from < bytes.length; ) {
        const written = writeSync(descriptor, bytes, from, Math.min(chunkBytes, bytes.length - from), at);
        from += written;
        at += written;
      }
    }
    if (fstatSync(descriptor).size !== at) ftruncateSync(descriptor, at);
  } finally {
    closeSync(descriptor);
  }
}

/** Fills arrays with the elementwise sum of files in their order. Throws an ArgumentError for a file of another length. */
export function sumNumbers(files: readonly string[], into: readonly Numbers[]): void {
  const total = into.reduce((sum, array) => sum + array.byteLength, 0);
  const scratch = files.length > 1 ? new ArrayBuffer(Math.max(0, ...into.map((array) => array.byteLength))) : undefined;
  files.forEach((file, index) => {
    const descriptor = openSync(file, "r");
    try {
      const { size } = fstatSync(descriptor);
      if (size !== total) {
        throw new ArgumentError({ place: file, cause: `it has ${size} bytes and the gradient has ${total}`, mend: "load the same model on all workers" });
      }
      let at = 0;
      for (const array of into) {
        const part = index === 0 ? array : view(array, scratch as ArrayBuffer);
        fill(descriptor, bytesOf(part), at);
        if (index > 0) addTo(array, part);
        at += array.byteLength;
      }
    } finally {
      closeSync(descriptor);
    }
  });
}

/** A function of its own, which the compiler sees with one type of array: inside the loop over files it took ten times as long. */
function addTo(sum: Numbers, part: Numbers): void {
  for (let i = 0; i < sum.length; i++) sum[i] += part[i];
}

const view = (like: Numbers, buffer: ArrayBuffer): Numbers =>
  like instanceof Float32Array ? new Float32Array(buffer, 0, like.length) : new Float64Array(buffer, 0, like.length);

function fill(descriptor: number, bytes: Uint8Array, at: number): void {
  for (let from = 0; from < bytes.length; ) {
    const read = readSync(descriptor, bytes, from, Math.min(chunkBytes, bytes.length - from), at + from);
    if (read === 0) throw new ArgumentError({ place: "gradient file", cause: "it ended early", mend: "leave the files of running engines alone" });
    from += read;
  }
}
