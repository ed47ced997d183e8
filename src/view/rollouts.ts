/** The rollouts of a run by position, through the index that was written with them: nothing else of them is read or kept. */
import { open } from "node:fs/promises";
import { ArgumentError, RunError, TouchstoneError } from "../core/errors.js";
import type { Tokenizer } from "../core/tokenizer.js";
import { SafetensorsFile } from "../engine/safetensors.js";
import { hasTokenizer, loadTokenizer } from "../tokenizers/load.js";
import { checkpointPaths } from "../train/store/checkpoints.js";
import { type RunReader, runPaths } from "../train/store/reader.js";
import { extraName } from "../train/store/record.js";
import type { GroupRecord, RolloutRecord, StepRow } from "../train/store/schema.js";
import { rounded } from "./series.js";
import type { Cut, GroupDetail, GroupRow, GroupWindow, Member, MemberRow, ShownVerdict, TokenSlice } from "./shapes.js";
import { slices } from "./slices.js";

/** Characters of a text that are sent unasked. */
export const textLimit = 20_000;
/** Tokens that are sent at a time. */
export const tokenLimit = 4096;
/** Groups of a list that are sent at a time, and members of one that are listed. */
const windowLimit = 200;
const memberLimit = 128;
/** Characters of a problem in a list. */
const lineLimit = 160;
/** Bytes of blocks that are kept, so that scrolling within a step reads it once. */
const keptBytes = 8 << 20;

export class Rollouts {
  private blocks = new Map<number, string[]>();
  private held = 0;
  /** Number of the first group of each row of the index. */
  private starts: number[] = [];
  private rows: readonly StepRow[] = [];
  private tokenizer: Promise<Tokenizer | string> | undefined;

  constructor(readonly reader: RunReader) {}

  /** The index as it is now. Throws RunError where it is damaged. */
  index(): { readonly rows: readonly StepRow[]; readonly groups: number; readonly rollouts: number } {
    const rows = this.reader.rolloutIndex();
    // A resume cut it: what was kept may be of steps that did not happen.
    if (rows !== this.rows && this.rows.length > 0) this.forget();
    this.rows = rows;
    for (let i = this.starts.length; i < rows.length; i++) this.starts.push(i === 0 ? 0 : this.starts[i - 1] + rows[i - 1].groups);
    const last = rows.at(-1);
    return { rows, groups: last ? (this.starts.at(-1) as number) + last.groups : 0, rollouts: last ? last.first + last.count : 0 };
  }

  private forget(): void {
    this.blocks.clear();
    this.held = 0;
    this.starts = [];
  }

  /** Groups from a number on, or from the first one of a step on. */
  async window(from: { readonly group: number } | { readonly step: number }, count: number): Promise<GroupWindow> {
    const { rows, groups, rollouts } = this.index();
    const steps = rows.length === 0 ? null : ([rows[0].step, (rows.at(-1) as StepRow).step] as const);
    const first = Math.max(0, "step" in from ? this.firstOf(from.step) : from.group);
    const found: GroupRow[] = [];
    let damage: string | undefined;
    const giveWay = slices();
    for (let at = first; at < Math.min(groups, first + Math.min(count, windowLimit)); at++) {
      const row = this.rowOf(at);
      const index = at - this.starts[row];
      try {
        found.push(rowOf(await this.record(rows[row], index), index));
      } catch (error) {
        if (!(error instanceof TouchstoneError)) throw error;
        damage ??= error.message;
        found.push({ step: rows[row].step, index, problem: "", text: "(damaged)", members: [] });
      }
      await giveWay();
    }
    return { from: first, total: groups, rollouts, steps, rows: found, ...(damage !== undefined && { damage }) };
  }

  /** The number of the first group of a step, or of the next step that has rollouts. */
  private firstOf(step: number): number {
    const at = this.rows.findIndex((row) => row.step >= step);
    return at < 0 ? Math.max(0, this.starts.at(-1) ?? 0) : this.starts[at];
  }

  /** The row of the index that a group is in. */
  private rowOf(group: number): number {
    let [low, high] = [0, this.starts.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.starts[middle] <= group) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  private rowOfStep(step: number): { readonly at: number; readonly row: StepRow } {
    const { rows } = this.index();
    const at = rows.findIndex((row) => row.step === step);
    if (at >= 0) return { at, row: rows[at] };
    throw new ArgumentError({
      place: `step ${step}`,
      cause: "it has no rollouts",
      mend: rows.length === 0 ? "wait for the first step" : `give a step from ${rows[0].step} to ${rows.at(-1)?.step}`,
    });
  }

  /** A group with all that is stored of it but its tokens. `whole`: the member whose texts are not cut. */
  async group(step: number, index: number, whole?: number): Promise<GroupDetail> {
    const { at, row } = this.rowOfStep(step);
    const record = await this.record(row, index);
    const tokenizer = await this.words();
    const ids = await this.contextIds(row, record);
    const elapsed = record.clock.elapsedMs as readonly (number | null)[] | undefined;
    return {
      step,
      index,
      groups: row.groups,
      number: this.starts[at] + index,
      key: record.key,
      kind: record.kind,
      weight: record.weight,
      problem: {
        key: record.problem.key,
        prompt: record.problem.prompt.map(({ role, content }) => ({ role, content: cut(content, whole !== undefined) })),
        reference: { state: record.problem.reference.state, ...(record.problem.reference.answer !== undefined && { answer: record.problem.reference.answer }) },
        ...(record.problem.privileged && { privileged: record.problem.privileged }),
        ...(record.problem.tags && { tags: record.problem.tags }),
      },
      notes: record.notes,
      problemNotes: record.problemNotes,
      contexts: record.contexts.map(({ label, ids: [from, to] }, i) => ({
        label,
        tokens: to - from,
        text: typeof tokenizer === "string" || ids[i] === undefined ? null : cut(tokenizer.decode(ids[i], "show"), false),
      })),
      members: record.rollouts.map((rollout, i) => memberOf(rollout, elapsed?.[i] ?? null, whole === i)),
      ...(typeof tokenizer === "string" && { untold: tokenizer }),
    };
  }

  /** Tokens of a member from a place on, at most as many as are sent at a time. */
  async tokens(step: number, index: number, member: number, from = 0): Promise<TokenSlice> {
    const { row } = this.rowOfStep(step);
    const record = await this.record(row, index);
    const rollout = record.rollouts[member];
    if (!rollout)
      throw new ArgumentError({ place: `step ${step}, group ${index}`, cause: `it has no member ${member}`, mend: `give one below ${record.rollouts.length}` });
    const [slice] = await this.slices(row, [rollout], from);
    return slice;
  }

  /** The first tokens of the first members. */
  async tokensOfAll(step: number, index: number, members: number): Promise<TokenSlice[]> {
    const { row } = this.rowOfStep(step);
    const { rollouts } = await this.record(row, index);
    return this.slices(row, rollouts.slice(0, Math.min(members, memberLimit)), 0);
  }

  private async slices(row: StepRow, rollouts: readonly RolloutRecord[], from: number): Promise<TokenSlice[]> {
    const tokenizer = await this.words();
    const file = await SafetensorsFile.open(this.columns(row));
    try {
      const slices: TokenSlice[] = [];
      for (const { tokens } of rollouts) slices.push(await sliceOf(file, tokens, from, tokenizer));
      return slices;
    } finally {
      await file.close();
    }
  }

  /** Lines of a step, of which those that were read last are kept. */
  private async record(row: StepRow, index: number): Promise<GroupRecord> {
    const lines = await this.block(row);
    const line = lines[index];
    if (line === undefined) {
      throw new ArgumentError({ place: `step ${row.step}`, cause: `it has no group ${index}`, mend: `give one below ${row.groups}` });
    }
    return recordOf(line, `${runPaths(this.reader.folder).rollouts}, group ${index} of step ${row.step}`);
  }

  private async block(row: StepRow): Promise<string[]> {
    const kept = this.blocks.get(row.step);
    if (kept) return kept;
    const { offset, bytes } = row.clock;
    const text = new TextDecoder().decode(await readPart(runPaths(this.reader.folder).rollouts, offset, offset + bytes));
    const lines = text.split("\n").slice(0, row.groups);
    this.blocks.set(row.step, lines);
    this.held += bytes;
    for (const [step, old] of this.blocks) {
      if (this.held <= keptBytes || step === row.step) break;
      this.blocks.delete(step);
      this.held -= old.reduce((sum, line) => sum + line.length, 0);
    }
    return lines;
  }

  private columns(row: StepRow): string {
    return `${runPaths(this.reader.folder).columns}/${row.columns}`;
  }

  /** Token ids of the contexts of a group; none where the columns are gone, which tokens say then. */
  private async contextIds(row: StepRow, record: GroupRecord): Promise<(Int32Array | undefined)[]> {
    try {
      const file = await SafetensorsFile.open(this.columns(row));
      try {
        const parts = record.contexts.map(async ({ ids: [from, to] }) => {
          return new Int32Array((await file.readPart("context_ids", 4 * from, 4 * Math.min(to, from + tokenLimit))).buffer as ArrayBuffer);
        });
        return await Promise.all(parts);
      } finally {
        await file.close();
      }
    } catch (error) {
      if (!(error instanceof TouchstoneError)) throw error;
      return [];
    }
  }

  /** The tokenizer beside the newest weights that the run still has, or why there is none. */
  private words(): Promise<Tokenizer | string> {
    this.tokenizer ??= this.loadWords();
    return this.tokenizer;
  }

  private async loadWords(): Promise<Tokenizer | string> {
    const { checkpoints } = this.reader;
    try {
      const folder = checkpoints
        .steps()
        .map((step) => checkpointPaths(checkpoints.pathOf(step)).policy)
        .findLast(hasTokenizer);
      if (folder !== undefined) return await loadTokenizer(folder);
      // The next checkpoint may bring one.
      this.tokenizer = undefined;
      return "no checkpoint of the run has a tokenizer";
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }
}

const fixedColumns = ["behaviour", "old", "entropy"];

async function sliceOf(file: SafetensorsFile, [start, end]: readonly [number, number], from: number, tokenizer: Tokenizer | string): Promise<TokenSlice> {
  const total = end - start;
  const first = Math.min(from, total);
  const last = Math.min(total, first + tokenLimit);
  const bytes = (name: string, width: number): Promise<Uint8Array> => file.readPart(name, (start + first) * width, (start + last) * width);
  const ids = [...new Int32Array((await bytes("response", 4)).buffer as ArrayBuffer)];
  const columns: { [name: string]: (number | null)[] } = {};
  for (const name of file.entries.keys()) {
    const shown = extraName(name) ?? (fixedColumns.includes(name) ? name : undefined);
    if (shown !== undefined) columns[shown] = [...new Float64Array((await bytes(name, 8)).buffer as ArrayBuffer)].map(rounded);
  }
  return {
    from: first,
    total,
    ids,
    ...(typeof tokenizer !== "string" && { texts: textsOf(tokenizer, ids) }),
    sampled: [...(await bytes("sampled", 1))],
    reward: [...(await bytes("reward", 1))],
    loss: [...(await bytes("loss", 1))],
    columns,
  };
}

/** Bytes of a file that is there, without keeping it open. Throws RunError where it ends before. */
async function readPart(path: string, from: number, to: number): Promise<Uint8Array> {
  const file = await open(path, "r").catch((error: NodeJS.ErrnoException) => {
    throw new RunError({ place: path, cause: `it cannot be read (${error.code})`, mend: "put it back from a copy" }, { cause: error });
  });
  try {
    const { size } = await file.stat();
    if (to > size)
      throw new RunError({ place: path, cause: `it ends at byte ${size}, before its index says`, mend: "resume the run, which cuts damaged ends off" });
    const bytes = new Uint8Array(to - from);
    for (let done = 0; done < bytes.length; ) {
      const { bytesRead } = await file.read(bytes, done, Math.min(bytes.length - done, 1 << 20), from + done);
      if (bytesRead === 0) throw new RunError({ place: path, cause: "it was cut while it was read", mend: "look again" });
      done += bytesRead;
    }
    return bytes;
  } finally {
    await file.close();
  }
}

/** A line as a record. Checked in outline alone: the schema of the store would cost more than all else. */
export function recordOf(line: string, place: string): GroupRecord {
  try {
    const record = JSON.parse(line) as GroupRecord;
    if (isWhole(record)) return record;
  } catch {
    // Said below.
  }
  throw new RunError({ place, cause: "the line is damaged", mend: "take the file from a copy; the other groups can still be read" });
}

const isPair = (value: unknown): boolean => Array.isArray(value) && value.length === 2 && value.every(Number.isSafeInteger);
const isObject = (value: unknown): boolean => typeof value === "object" && value !== null;

/** Whether a record has what is shown of it, in the types that it has it in. May throw where it has not. */
function isWhole({ rollouts, problem, contexts, clock }: GroupRecord): boolean {
  return (
    isObject(clock) &&
    isObject(problem.reference) &&
    isObject(problem.tags ?? {}) &&
    problem.prompt.every(({ role, content }) => typeof role === "string" && typeof content === "string") &&
    contexts.every(({ ids }) => isPair(ids)) &&
    rollouts.every(
      ({ text, verdict, numbers, tokens, spans, behaviour, turns = [] }) =>
        typeof text === "string" &&
        typeof verdict.kind === "string" &&
        isObject(numbers) &&
        isPair(tokens) &&
        Array.isArray(spans) &&
        isObject(behaviour) &&
        turns.every(({ action, observation }) => typeof action === "string" && typeof observation === "string"),
    )
  );
}

/** A group as lists show it. */
export function rowOf({ step, problem, rollouts }: GroupRecord, index: number): GroupRow {
  return {
    step,
    index,
    problem: problem.key,
    text: (problem.prompt.findLast(({ role }) => role === "user") ?? problem.prompt.at(-1))?.content.slice(0, lineLimit) ?? "",
    ...(problem.tags && { tags: problem.tags }),
    members: rollouts.slice(0, memberLimit).map(memberRowOf),
  };
}

function memberRowOf({ verdict, numbers, tokens, stop, purpose }: RolloutRecord): MemberRow {
  return {
    kind: verdict.kind,
    ...("reason" in verdict && { reason: verdict.reason }),
    reward: rounded(numbers.reward ?? null),
    tokens: tokens[1] - tokens[0],
    stop,
    ...(purpose === "aux" && { aux: true as const }),
  };
}

function memberOf(rollout: RolloutRecord, elapsedMs: number | null, whole: boolean): Member {
  const { key, member, role, purpose, stop, numbers, notes, spans, parent, behaviour, policyVersion, tokens, sampledUnder, trainedUnder, turns } = rollout;
  return {
    key,
    member,
    role,
    purpose,
    text: cut(rollout.text, whole),
    stop,
    verdict: verdictOf(rollout.verdict),
    elapsedMs: rounded(elapsedMs),
    numbers,
    notes: notes,
    spans,
    ...(turns && {
      turns: turns.map(({ action, observation, verdict, ...turn }) => ({
        ...turn,
        action: cut(action, whole),
        observation: cut(observation, whole),
        ...(verdict && { verdict: verdictOf(verdict) }),
      })),
    }),
    ...(parent && { parent }),
    weights: behaviour.weights,
    temperature: behaviour.temperature,
    policyVersion,
    tokens: tokens[1] - tokens[0],
    sampledUnder,
    trainedUnder,
  };
}

function verdictOf(verdict: RolloutRecord["verdict"]): ShownVerdict {
  return verdict as ShownVerdict;
}

function cut(text: string, whole: boolean): Cut {
  return { text: whole || text.length <= textLimit ? text : text.slice(0, textLimit), total: text.length };
}

/** The text of each token; empty where a character is not whole before a later one. */
function textsOf(tokenizer: Tokenizer, ids: readonly number[]): string[] {
  const stream = tokenizer.stream("show");
  const texts = ids.map((id) => stream.push(id));
  const rest = stream.end();
  if (rest !== "" && texts.length > 0) texts[texts.length - 1] += rest;
  return texts;
}
