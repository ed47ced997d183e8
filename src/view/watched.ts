/** A run as the view knows it: its folder read once, then what was appended. Nothing in the folder is changed. */
import { existsSync, statSync } from "node:fs";
import { methodName } from "../compare/run.js";
import { TouchstoneError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import { nodeFiles } from "../train/store/files.js";
import { isWritten } from "../train/store/lock.js";
import { linesOf } from "../train/store/log.js";
import { RunReader, runPaths } from "../train/store/reader.js";
import { eventKinds, type RunEvent } from "../train/store/schema.js";
import { insightOf } from "./insight.js";
import { Series } from "./series.js";
import { problemsOf, settingsOf } from "./settings.js";
import type { EvaluationPoint, Had, Overview, RunCard } from "./shapes.js";
import { slices } from "./slices.js";

type Data = { readonly [name: string]: Json };

/** Reasons of verdicts that have curves of their own. */
const mostReasons = 12;
/** Notices that are kept; a run can warn at every step. */
const mostNotices = 200;
const mostDamage = 20;

interface Seen {
  readonly series: Series;
  readonly evaluations: EvaluationPoint[];
  readonly notices: { step: number; kind: string; text: string }[];
  readonly heldout: { key: string; text: string }[];
  readonly damage: string[];
  left: number;
  end?: { readonly reason: string; readonly message: string };
}

const nothing = (): Seen => ({ series: new Series(), evaluations: [], notices: [], heldout: [], damage: [], left: 0 });

export class WatchedRun {
  private reader: RunReader | undefined;
  private fault: string | undefined;
  private seen = nothing();
  private offset = 0;
  private generation = 0;
  private reading: Promise<boolean> | undefined;
  private going = false;
  private birth = "";

  constructor(
    readonly id: string,
    readonly name: string,
    readonly folder: string,
  ) {}

  /** Reads what is new. True: something is. Calls at the same time share one reading. */
  refresh(): Promise<boolean> {
    this.reading ??= this.read()
      .catch((error: NodeJS.ErrnoException) => {
        // Of one run: the others are still to be seen.
        this.fault = error instanceof TouchstoneError ? error.message : `${this.folder}: the run cannot be read (${error.code ?? error.message})`;
        return true;
      })
      .finally(() => {
        this.reading = undefined;
      });
    return this.reading;
  }

  /** What is there to read, as a text that changes with it: a cheap look without reading. */
  stamp(): string {
    const { events, run, index } = runPaths(this.folder);
    return [run, events, index].map((path) => nodeFiles.size(path) ?? "-").join(" ") + (isWritten(this.folder) ? " going" : "");
  }

  private async read(): Promise<boolean> {
    const going = isWritten(this.folder);
    let changed = going !== this.going;
    this.going = going;
    const before = this.fault;
    this.fault = undefined;
    if (this.reader && nodeFiles.size(runPaths(this.folder).run) === undefined) {
      this.fault = `${this.folder}: the run is not there any more; put it back, and this page goes on with it`;
      return changed || this.fault !== before;
    }
    if (before !== undefined) changed = true;
    const birth = birthOf(runPaths(this.folder).run);
    if (this.reader && this.birth !== "" && birth !== this.birth) {
      // Another run has taken its place.
      this.reader = undefined;
      this.anew();
    }
    this.birth = birth;
    if (!this.reader) {
      try {
        this.reader = RunReader.open(this.folder);
      } catch (error) {
        if (!(error instanceof TouchstoneError)) throw error;
        this.fault = error.message;
        return changed || this.fault !== before;
      }
      changed = true;
    }
    const { events } = runPaths(this.folder);
    if ((nodeFiles.size(events) ?? 0) < this.offset) this.anew();
    const giveWay = slices();
    for (const { text, end } of linesOf(nodeFiles, events, this.offset)) {
      this.take(text, end);
      this.offset = end;
      changed = true;
      await giveWay();
    }
    return changed;
  }

  /** A resume cut the log: what was read beyond the cut did not happen. */
  private anew(): void {
    this.seen = nothing();
    this.offset = 0;
    this.generation++;
  }

  private take(text: string, end: number): void {
    const event = eventOf(text);
    if (!event) {
      if (this.seen.damage.length < mostDamage) this.seen.damage.push(`events.jsonl, the line before byte ${end}, is damaged and is left out`);
      return;
    }
    const { kind, step, data } = event;
    const { series, evaluations, notices, heldout } = this.seen;
    // A cut and a resume between two looks can leave the file longer than before.
    if (kind === "step" && series.steps.length > 0 && step <= (series.steps.at(-1) as number)) {
      this.anew();
      return;
    }
    delete this.seen.end;
    if (kind === "step") series.add(step, numbersOf(event));
    else if (kind === "evaluation") evaluations.push(evaluationOf(step, data as Data));
    else if (kind === "end") this.seen.end = { reason: String(data.reason ?? "done"), message: String(data.message ?? "it says no more about its end") };
    else if (kind === "start") heldout.push(...heldoutOf(data as Data));
    if (kind === "start" || kind === "step" || kind === "evaluation") return;
    if (notices.length < mostNotices) notices.push({ step, kind, text: noticeText(kind, data as Data) });
    else this.seen.left++;
  }

  /** The reader of the folder. Throws RunError with the fault where there is none. */
  get run(): RunReader {
    this.reader ??= RunReader.open(this.folder);
    return this.reader;
  }

  /** What the held-out problems are, in the order of the scores; none in runs that did not keep them. */
  get heldout(): readonly { readonly key: string; readonly text: string }[] {
    return this.seen.heldout;
  }

  card(): RunCard {
    const { id, name, folder, reader, fault, seen } = this;
    const { series, evaluations, end } = seen;
    const config = (reader?.run.config ?? {}) as Data;
    const waiting = reader === undefined && fault !== undefined && !existsSync(runPaths(folder).run) && (!existsSync(folder) || isWritten(folder));
    const ended = end !== undefined && end.reason !== "interrupted" && end.reason !== "error";
    return {
      id,
      name,
      folder,
      standing: waiting ? "waiting" : fault !== undefined ? "fault" : this.going ? "going" : ended ? "ended" : "stopped",
      method: reader ? methodName(config) : "",
      problems: (reader && problemsOf(config)) ?? "",
      seed: typeof config.seed === "number" ? config.seed : null,
      step: series.steps.at(-1) ?? 0,
      steps: typeof config.steps === "number" ? config.steps : 0,
      reward: series.last("reward"),
      score: evaluations.at(-1)?.score ?? null,
      rollouts: rolloutsOf(reader),
      ...(fault !== undefined && !waiting && { fault }),
    };
  }

  /** `had`: what the page has already; it is sent all where the run was read anew since, or its points are of more steps now. */
  overview(had?: Had): Overview {
    const { seen, generation } = this;
    const { series, evaluations, notices, damage, end, left } = seen;
    const whole = had === undefined || had.generation !== generation || had.every !== series.every();
    const table = series.table(whole ? {} : { after: had.after });
    const more = left > 0 ? [{ step: series.steps.at(-1) ?? 0, kind: "warning", text: `and ${left} more, in events.jsonl` }] : [];
    const config = (this.reader?.run.config ?? null) as Data | null;
    return {
      card: this.card(),
      generation,
      ...(!whole && { after: had.after }),
      table,
      settings: config === null ? [] : settingsOf(config),
      config,
      evaluations,
      notices: [...notices, ...more],
      insight: insightOf({ series, evaluations, config: config ?? {}, ...(end && { end }), going: this.going }),
      ...(end && { end: end.message }),
      damage,
    };
  }
}

/** A line as an event; undefined where it is none. By hand: the schema of the store costs more than all else, and a view shows what it can. */
function eventOf(text: string): RunEvent | undefined {
  try {
    const event = JSON.parse(text) as RunEvent | null;
    const whole = event !== null && typeof event === "object" && Number.isSafeInteger(event.step) && eventKinds.includes(event.kind);
    return whole && typeof event.data === "object" && event.data !== null ? event : undefined;
  } catch {
    return undefined;
  }
}

/** Which file it is: another one has another number or another time. */
function birthOf(path: string): string {
  const found = statSync(path, { throwIfNoEntry: false });
  return found === undefined ? "" : `${found.ino} ${found.mtimeMs}`;
}

function heldoutOf({ heldout }: Data): { key: string; text: string }[] {
  return (Array.isArray(heldout) ? heldout : []).map((each, i) => {
    const { key, text } = (each ?? {}) as Data;
    return { key: typeof key === "string" ? key : `problem ${i + 1}`, text: typeof text === "string" ? text : "" };
  });
}

function* numbersOf({ data, clock }: RunEvent): Generator<readonly [string, number]> {
  for (const [name, value] of Object.entries((data.metrics ?? {}) as Data)) if (typeof value === "number" && !name.startsWith("eval.")) yield [name, value];
  for (const [name, value] of Object.entries(clock ?? {})) if (typeof value === "number") yield [`clock.${name}`, value];
  const { reasons = {}, ...kinds } = (data.verdicts ?? {}) as { readonly [kind: string]: Json };
  const counts = Object.entries(kinds).filter((entry): entry is [string, number] => typeof entry[1] === "number");
  const all = Math.max(
    1,
    counts.reduce((sum, [, count]) => sum + count, 0),
  );
  for (const [kind, count] of counts) yield [`verdict.${kind}`, count / all];
  const named = Object.entries(reasons as Data).filter((entry): entry is [string, number] => typeof entry[1] === "number");
  for (const [reason, count] of named.slice(0, mostReasons)) yield [`reason.${reason}`, count / all];
}

function evaluationOf(step: number, data: Data): EvaluationPoint {
  return {
    step,
    score: typeof data.score === "number" ? data.score : null,
    problems: Number(data.problems ?? 0),
    estimates: (Array.isArray(data.estimates) ? data.estimates : []).filter(isEstimate) as unknown as EvaluationPoint["estimates"],
  };
}

const isEstimate = (each: Json): boolean => each !== null && typeof each === "object" && typeof (each as Data).name === "string";

function noticeText(kind: string, data: Data): string {
  if (typeof data.message === "string") return data.message;
  if (kind !== "stage") return JSON.stringify(data);
  const next = data.method === undefined ? "" : `${data.ended === undefined ? "" : "; now "}${String(data.method)}`;
  return `${data.ended === undefined ? "" : `stage ${String(data.ended)} ended`}${next}${data.reason === undefined ? "" : ` (${String(data.reason)})`}`;
}

function rolloutsOf(reader: RunReader | undefined): number {
  try {
    const last = reader?.rolloutIndex().at(-1);
    return last ? last.first + last.count : 0;
  } catch {
    // A damaged index is told where rollouts are asked for.
    return 0;
  }
}
