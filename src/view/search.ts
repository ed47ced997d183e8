/**
 * Search over the rollouts of a run, in order, line by line, in short pieces with pauses between them: a run beside it does
 * not notice. A text is looked for in the bytes of a line first: most lines are left without being read as JSON.
 */
import { open } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import { TouchstoneError } from "../core/errors.js";
import type { GroupRecord, StepRow } from "../train/store/schema.js";
import { kept } from "./filter.js";
import { recordOf, rowOf } from "./rollouts.js";
import type { Filter, SearchLine } from "./shapes.js";

/** Groups that a search finds before it ends. */
export const mostFound = 500;
/** Bytes that are read at a time. */
const piece = 1 << 20;
/** Milliseconds of work before a pause, and of the pause: one third of a core at most. */
const workMs = 10;
const pauseMs = 20;

export interface SearchParts {
  /** File of the rollouts. */
  readonly path: string;
  readonly rows: readonly StepRow[];
  readonly filter: Filter;
  readonly signal: AbortSignal;
}

/** Yields what is found as it is found, and how far it is now and then. */
export async function* search({ path, rows, filter, signal }: SearchParts): AsyncGenerator<SearchLine> {
  const total = rows.reduce((sum, { groups }) => sum + groups, 0);
  const needles = needlesOf(filter);
  const room = Buffer.allocUnsafe(piece);
  let [done, found] = [0, 0];
  let began = performance.now();
  let told = began;
  const file = await open(path, "r");
  try {
    for (const row of rows) {
      let index = 0;
      for await (const line of linesIn(file, row, room)) {
        if (signal.aborted) return;
        done++;
        if (needles.every((needle) => line.includes(needle))) {
          try {
            const record = recordOf(line.toString("utf8"), `${path}, group ${index} of step ${row.step}`);
            const members = membersOf(filter, record);
            if (members.length > 0) {
              found++;
              yield { found: { row: rowOf(record, index), members }, done, total };
            }
          } catch (error) {
            if (!(error instanceof TouchstoneError)) throw error;
            yield { fault: error.message, done, total };
          }
          if (found >= mostFound) {
            yield { done, total, end: "enough" };
            return;
          }
        }
        index++;
        const now = performance.now();
        if (now - began < workMs) continue;
        if (now - told > 200) {
          yield { done, total };
          told = now;
        }
        await pause(pauseMs);
        began = performance.now();
      }
    }
    yield { done, total, end: "all" };
  } finally {
    await file.close();
  }
}

/** The lines of a step, each good until the next is asked for: all are read into `room`, so that nothing is left to be collected. */
async function* linesIn(file: Awaited<ReturnType<typeof open>>, { clock: { offset, bytes } }: StepRow, room: Buffer): AsyncGenerator<Buffer> {
  let parts: Buffer[] = [];
  for (let at = offset; at < offset + bytes; ) {
    const { bytesRead } = await file.read(room, 0, Math.min(room.length, offset + bytes - at), at);
    if (bytesRead === 0) return;
    at += bytesRead;
    const part = room.subarray(0, bytesRead);
    let begin = 0;
    for (let end = part.indexOf(10); end >= 0; end = part.indexOf(10, begin)) {
      const line = part.subarray(begin, end);
      yield parts.length === 0 ? line : Buffer.concat([...parts, line]);
      parts = [];
      begin = end + 1;
    }
    if (begin < part.length) parts.push(Buffer.from(part.subarray(begin)));
  }
}

/** Bytes that a line has if it can match: the filter's texts as JSON writes them. */
function needlesOf({ verdict, reason, problem, text, stop }: Filter): Buffer[] {
  const inside = (part: string): string => JSON.stringify(part).slice(1, -1);
  const whole = [
    ...(verdict === undefined ? [] : [`"kind":${JSON.stringify(verdict)}`]),
    ...(stop === undefined ? [] : [`"stop":${JSON.stringify(stop)}`]),
    ...(problem === undefined ? [] : [inside(problem)]),
    ...(text === undefined ? [] : [inside(text)]),
    ...(reason === undefined ? [] : [inside(reason)]),
  ];
  return whole.filter((needle) => needle !== "").map((needle) => Buffer.from(needle));
}

function membersOf(filter: Filter, { problem, rollouts }: GroupRecord): number[] {
  return kept(
    filter,
    { problem: problem.key, ...(problem.tags && { tags: problem.tags }), prompt: problem.prompt.map(({ content }) => content) },
    rollouts.map(({ verdict, stop, tokens, text, turns = [] }) => ({
      kind: verdict.kind,
      ...("reason" in verdict && { reason: verdict.reason }),
      stop,
      tokens: tokens[1] - tokens[0],
      texts: () => [text, ...turns.flatMap(({ action, observation }) => [action, observation])],
    })),
  );
}
