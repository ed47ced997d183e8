/** Parts of a call: cutting its lists apart for the workers, and putting their answers together again. */
import { EngineError, errorFromJson, errorToJson, TouchstoneError } from "../../core/errors.js";
import type { Sample, Want } from "../contract.js";
import type { Replica } from "../replica.js";

/** What one worker has of a call: which of its requests or sequences. */
export interface Part {
  readonly worker: Replica;
  readonly indices: readonly number[];
}

export function pick<T>(items: readonly T[], indices: readonly number[]): T[] {
  return indices.map((index) => items[index]);
}

export function wantOf<W extends Want>(want: W | undefined, indices: readonly number[]): W | undefined {
  return want?.targets ? { ...want, targets: pick(want.targets, indices) } : want;
}

/** The samples of a part under the indices of the whole. */
export async function* renumbered(samples: AsyncIterable<Sample>, indices: readonly number[]): AsyncGenerator<Sample> {
  try {
    for await (const sample of samples) yield { ...sample, index: indices[sample.index] };
  } catch (error) {
    throw wholeError(error, indices);
  }
}

/** An error whose place counts requests or sequences, with the count of the whole instead of the part's. */
export function wholeError(error: unknown, indices: readonly number[]): unknown {
  const match = error instanceof TouchstoneError && /^(.*\b(?:request|sequence) )(\d+)$/.exec(error.place);
  if (!match || indices[Number(match[2])] === undefined) return error;
  const json = errorToJson(error);
  const place = match[1] + indices[Number(match[2])];
  return errorFromJson({ ...json, place, message: String(json.message).replace(String(json.place), place) });
}

/** Puts the answers of the parts into the order of the request. */
export function gathered<T>(parts: readonly Part[], answers: readonly (readonly T[])[], count: number): T[] {
  const result = new Array<T>(count);
  parts.forEach(({ indices }, k) => {
    const answer = answers[k];
    if (answer.length !== indices.length) {
      throw new EngineError({ place: "engine pool", cause: `a worker answered ${answer.length} of ${indices.length} sequences`, mend: "start a new engine" });
    }
    indices.forEach((index, i) => {
      result[index] = answer[i];
    });
  });
  return result;
}
