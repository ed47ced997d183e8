/** What the view answers, by path: one place for its server and for a page in one file. */
import { ArgumentError, TouchstoneError } from "../core/errors.js";
import { packageVersion } from "../core/version.js";
import { runPaths } from "../train/store/reader.js";
import { compare } from "./comparing.js";
import { type Finding, find } from "./find.js";
import { Rollouts } from "./rollouts.js";
import { searchApart } from "./search-apart.js";
import type {
  ArchivedRun,
  AuditCard,
  Comparison,
  Filter,
  GroupDetail,
  GroupWindow,
  Had,
  Home,
  Overview,
  RunCard,
  SearchLine,
  ShownAudit,
  ShownRecord,
  TokenSlice,
  VerdictKind,
} from "./shapes.js";
import { WatchedRun } from "./watched.js";

export interface AnswersOptions {
  /** Folders and files, as `find` takes them. */
  readonly paths: readonly string[];
  /** Those of them that will become runs. */
  readonly expected?: readonly string[];
}

/** Milliseconds between two walks through the folders, and before a page that is opened has another one. */
const lookMs = 5000;
const freshMs = 500;

export class Answers {
  private finding: Finding = { runs: [], records: [], audits: [], shipped: [] };
  private looked = performance.now();
  private readonly watched = new Map<string, WatchedRun>();
  private readonly shelves = new Map<string, Rollouts>();
  private compared: { readonly asked: string; readonly comparison: Comparison } | undefined;

  /** Throws RunError where a path is nothing that can be shown. */
  constructor(private readonly options: AnswersOptions) {
    this.take(find(options.paths, options.expected));
  }

  /** Finds runs that have come since; what is shown already stays, also where its folder has gone. */
  private look(): void {
    this.looked = performance.now();
    try {
      this.take(find(this.options.paths, this.options.expected));
    } catch (error) {
      if (!(error instanceof TouchstoneError)) throw error;
    }
  }

  private take(finding: Finding): void {
    this.finding = finding;
    for (const { id, name, folder, kind } of this.finding.runs) {
      if (kind === "run" && !this.watched.has(id)) this.watched.set(id, new WatchedRun(id, name, folder));
    }
  }

  /** The runs, with those that came since some seconds ago: folders are walked through for them. */
  runs(): readonly WatchedRun[] {
    if (performance.now() - this.looked > lookMs) this.look();
    return [...this.watched.values()];
  }

  /** Reports that were named, without those that come with this version. */
  get ownRecords(): readonly ShownRecord[] {
    return this.finding.records;
  }

  async home(live = true): Promise<Home> {
    if (performance.now() - this.looked > freshMs) this.look();
    const runs: RunCard[] = [];
    for (const run of this.watched.values()) {
      await run.refresh();
      runs.push(run.card());
    }
    const records = [...this.finding.records, ...this.finding.shipped].map(({ id, paper, outcome, date, seeds }) => ({
      id,
      paper,
      outcome,
      date,
      seeds: seeds.length,
    }));
    const samples = this.finding.runs.filter(({ kind }) => kind === "samples").map(({ id, name }) => ({ id, name }));
    return { version: packageVersion(), runs, samples, records, audits: this.finding.audits.map(cardOf), live };
  }

  run(id: string): WatchedRun {
    const run = this.watched.get(id);
    if (run) return run;
    throw new ArgumentError({ place: `run ${id}`, cause: "there is no such run in this view", mend: "choose one from the list" });
  }

  async overview(id: string, had?: Had): Promise<Overview> {
    const run = this.run(id);
    await run.refresh();
    return run.overview(had);
  }

  groups(id: string, from: { readonly group: number } | { readonly step: number }, count: number): Promise<GroupWindow> {
    return this.shelf(id).window(from, count);
  }

  group(id: string, step: number, index: number, whole?: number): Promise<GroupDetail> {
    return this.shelf(id).group(step, index, whole);
  }

  tokens(id: string, step: number, index: number, member: number, from = 0): Promise<TokenSlice> {
    return this.shelf(id).tokens(step, index, member, from);
  }

  tokensOfAll(id: string, step: number, index: number, members: number): Promise<TokenSlice[]> {
    return this.shelf(id).tokensOfAll(step, index, members);
  }

  /** Steps that have rollouts, and how many groups each. Throws RunError where the index is damaged. */
  steps(id: string): readonly { readonly step: number; readonly groups: number }[] {
    return this.shelf(id).index().rows;
  }

  /** All of a group that a page in one file shows. */
  async archived(id: string, step: number, index: number): Promise<ArchivedRun["groups"][number]> {
    const detail = await this.group(id, step, index);
    const { rows } = await this.shelf(id).window({ group: detail.number }, 1);
    const [row] = rows;
    return { row, detail, tokens: await this.tokensOfAll(id, step, index, detail.members.length).catch(() => []) };
  }

  search(id: string, filter: Filter, signal: AbortSignal): AsyncGenerator<SearchLine> {
    const { rows } = this.shelf(id).index();
    return searchApart({ path: runPaths(this.run(id).folder).rollouts, rows, filter, signal });
  }

  async compare(ids: readonly string[], metric: string): Promise<Comparison> {
    const compared = [];
    for (const id of ids) {
      const found = this.finding.runs.find((each) => each.id === id);
      if (!found) throw new ArgumentError({ place: `run ${id}`, cause: "there is no such run in this view", mend: "choose some from the list" });
      const watched = this.watched.get(id);
      await watched?.refresh();
      compared.push({ found, ...(watched && { watched }) });
    }
    // Runs are read from their start for it: once as long as they stay as they are.
    const asked = JSON.stringify([metric, compared.map(({ found, watched }) => [found.id, watched?.stamp()])]);
    if (this.compared?.asked !== asked) this.compared = { asked, comparison: await compare(compared, metric) };
    return this.compared.comparison;
  }

  record(id: string): ShownRecord {
    const record = [...this.finding.records, ...this.finding.shipped].find((each) => each.id === id);
    if (record) return record;
    throw new ArgumentError({ place: `record ${id}`, cause: "there is no such record", mend: "choose one from the list" });
  }

  audit(id: string): ShownAudit {
    const audit = this.finding.audits.find((each) => each.id === id);
    if (audit) return audit;
    throw new ArgumentError({ place: `audit ${id}`, cause: "there is no such audit", mend: "choose one from the list" });
  }

  private shelf(id: string): Rollouts {
    const { run } = this.run(id);
    const kept = this.shelves.get(id);
    // Another run may have taken its place.
    const shelf = kept?.reader === run ? kept : new Rollouts(run);
    this.shelves.set(id, shelf);
    return shelf;
  }
}

function cardOf({ id, name, verifier, clean, verdicts, in_contract, mutants, hacks }: ShownAudit): AuditCard {
  const wrong = [...mutants, ...hacks];
  const sum = (of: "n" | "accepted"): number => wrong.reduce((total, cell) => total + cell[of], 0);
  return { id, name, verifier, clean, verdicts, missed: [in_contract.failures, in_contract.n], wrong: [sum("accepted"), sum("n")] };
}

type Query = { get(name: string): string | null };

const verdicts: readonly string[] = ["accept", "reject", "partial", "unscored"] satisfies VerdictKind[];

/** The filter that an address writes. Throws ArgumentError for what it cannot mean. */
export function filterOf(query: Query): Filter {
  const text = (name: string): string | undefined => query.get(name) || undefined;
  const verdict = text("verdict");
  if (verdict !== undefined && !verdicts.includes(verdict)) {
    throw new ArgumentError({ place: "filter", cause: `there is no verdict ${JSON.stringify(verdict)}`, mend: `give one of ${verdicts.join(", ")}` });
  }
  const filter = {
    verdict: verdict as VerdictKind | undefined,
    reason: text("reason"),
    problem: text("problem"),
    text: text("text"),
    tag: text("tag"),
    stop: text("stop"),
    least: numberOf(query, "least"),
    most: numberOf(query, "most"),
  };
  return Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined));
}

/** A whole number of an address; undefined where it is not there. Throws ArgumentError for another text. */
export function numberOf(query: Query, name: string): number | undefined {
  const text = query.get(name);
  if (text === null || text === "") return undefined;
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new ArgumentError({ place: `the address, ${name}`, cause: `got ${JSON.stringify(text.slice(0, 40))}`, mend: "give a whole number" });
}

/** The answer to a path below /api/ that is one JSON value; undefined: there is no such path. */
export async function answer(answers: Answers, path: string, query: Query): Promise<object | undefined> {
  const [what, id = "", ...rest] = path.split("/").map(decodeURIComponent);
  if (what === "home" && id === "") return answers.home();
  if (what === "records" && rest.length === 0) return answers.record(id);
  if (what === "audits" && rest.length === 0) return answers.audit(id);
  if (what === "compare" && id === "") return answers.compare((query.get("runs") ?? "").split(",").filter(Boolean), query.get("metric") ?? "eval.score");
  if (what !== "runs") return undefined;
  const number = (name: string, fallback: number): number => numberOf(query, name) ?? fallback;
  const [part, ...places] = rest;
  if (part === "overview") {
    const after = numberOf(query, "after");
    return answers.overview(id, after === undefined ? undefined : { after, generation: number("generation", 0), every: number("every", 1) });
  }
  if (part === "groups") {
    const step = numberOf(query, "step");
    return answers.groups(id, step === undefined ? { group: number("from", 0) } : { step }, number("count", 50));
  }
  if (part !== "steps") return undefined;
  const [step, groups, group, members, member] = places;
  if (groups !== "groups" || !/^\d+$/.test(step) || !/^\d+$/.test(group ?? "")) return undefined;
  if (members === undefined) return answers.group(id, Number(step), Number(group), numberOf(query, "whole"));
  if (members === "tokens") return answers.tokensOfAll(id, Number(step), Number(group), number("members", 8));
  if (members !== "members" || !/^\d+$/.test(member ?? "")) return undefined;
  return answers.tokens(id, Number(step), Number(group), Number(member), number("from", 0));
}
