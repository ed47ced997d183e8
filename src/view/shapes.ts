/** What the view's server says and its page reads: types alone, so that both sides share them and neither the other's code. */
/** How a run stands. `waiting`: its folder is not there yet; `fault`: it cannot be read, and `fault` says why. */
export type RunStanding = "waiting" | "going" | "stopped" | "ended" | "fault";

export interface RunCard {
  /** Stands in addresses; unique in the view. */
  readonly id: string;
  readonly name: string;
  readonly folder: string;
  readonly standing: RunStanding;
  readonly method: string;
  /** Task or data in a few words; "": not known. */
  readonly problems: string;
  readonly seed: number | null;
  /** The last step that is done, and how many there are to be; 0: not known. */
  readonly step: number;
  readonly steps: number;
  /** Reward of the last step, and the last held-out score. */
  readonly reward: number | null;
  readonly score: number | null;
  readonly rollouts: number;
  readonly fault?: string;
}

export interface RecordCard {
  readonly id: string;
  readonly paper: string;
  readonly outcome: string | null;
  readonly date: string;
  readonly seeds: number;
}

export interface AuditCard {
  readonly id: string;
  readonly name: string;
  readonly verifier: string;
  readonly clean: boolean;
  readonly verdicts: number;
  /** Right answers within the contract that were not accepted, of all of them. */
  readonly missed: readonly [count: number, of: number];
  /** Wrong answers that were accepted, of all of them. */
  readonly wrong: readonly [count: number, of: number];
}

/** The first thing that a page asks for. */
export interface Home {
  readonly version: string;
  readonly runs: readonly RunCard[];
  /** Folders of samples: what is compared with the ends of runs. */
  readonly samples: readonly { readonly id: string; readonly name: string }[];
  readonly records: readonly RecordCard[];
  readonly audits: readonly AuditCard[];
  /** False of a page in one file. */
  readonly live: boolean;
}

export interface EvaluationPoint {
  readonly step: number;
  readonly score: number | null;
  readonly problems: number;
  readonly estimates: readonly {
    readonly name: string;
    readonly k: number;
    readonly value: number | null;
    readonly interval: { readonly low: number; readonly high: number } | null;
  }[];
}

/** A sentence about the run. `good`: as it should be; `bad`: it keeps the run from learning or makes its numbers wrong. */
export interface Remark {
  readonly level: "good" | "note" | "bad";
  /** What is measured: `learning`, `signal`, `entropy`, `length`, `verifier`, `gap`, `update`, `end`. */
  readonly about: string;
  readonly text: string;
  /** Number of the steps to look at (docs/metrics.md). */
  readonly metric?: string;
}

export interface Insight {
  readonly verdict: "learning" | "not learning" | "too early";
  readonly headline: string;
  readonly remarks: readonly Remark[];
}

/** Columns over the steps. Where a run has more steps than are sent, each point is the mean of `every` steps. */
export interface Table {
  readonly every: number;
  readonly steps: readonly number[];
  /** By name (docs/metrics.md), clocks under `clock.`, shares of verdicts under `verdict.` and of reasons under `reason.`; null: that step has none. */
  readonly columns: { readonly [name: string]: readonly (number | null)[] };
}

/** What a page has of a table: the points up to the step `after`, which must end one, of `every` steps each. */
export interface Had {
  readonly after: number;
  readonly generation: number;
  readonly every: number;
}

export interface Overview {
  readonly card: RunCard;
  /** Counts how often the run was read anew from its start, as after a resume. */
  readonly generation: number;
  /** The table holds the steps after this one alone, to be added to what was sent before; absent: it is whole. */
  readonly after?: number;
  readonly table: Table;
  readonly settings: readonly (readonly [string, string])[];
  readonly config: unknown;
  readonly evaluations: readonly EvaluationPoint[];
  readonly notices: readonly { readonly step: number; readonly kind: string; readonly text: string }[];
  readonly insight: Insight;
  readonly end?: string;
  /** Lines that cannot be read, in words. */
  readonly damage: readonly string[];
}

export type VerdictKind = "accept" | "reject" | "partial" | "unscored";

export interface MemberRow {
  readonly kind: VerdictKind;
  readonly reason?: string;
  readonly reward: number | null;
  readonly tokens: number;
  readonly stop: string;
  readonly aux?: true;
}

/** A group in a list. `index`: its place within the step. */
export interface GroupRow {
  readonly step: number;
  readonly index: number;
  readonly problem: string;
  readonly text: string;
  readonly tags?: { readonly [name: string]: string | number | boolean };
  readonly members: readonly MemberRow[];
}

/** Some groups of a run, counted over the run from 0. */
export interface GroupWindow {
  readonly from: number;
  readonly total: number;
  readonly rollouts: number;
  /** First and last step that has rollouts; null: none has. */
  readonly steps: readonly [number, number] | null;
  readonly rows: readonly GroupRow[];
  /** Groups that a page in one file leaves out. */
  readonly without?: number;
  readonly damage?: string;
}

/** A text, cut where it is long; `total` counts its characters. */
export interface Cut {
  readonly text: string;
  readonly total: number;
}

export interface ShownVerdict {
  readonly kind: VerdictKind;
  readonly reason?: string;
  readonly score?: number;
  readonly reward?: number;
  readonly parts?: { readonly [name: string]: number };
  readonly evidence?: unknown;
}

export interface ShownTurn {
  readonly action: Cut;
  readonly observation: Cut;
  readonly verdict?: ShownVerdict;
  readonly info: { readonly [name: string]: number };
  readonly cut?: number;
  readonly fault?: string;
}

export interface Member {
  readonly key: string;
  readonly member: number;
  readonly role: string;
  readonly purpose: string;
  readonly text: Cut;
  readonly stop: string;
  readonly verdict: ShownVerdict;
  readonly elapsedMs: number | null;
  readonly numbers: { readonly [name: string]: number | null };
  readonly notes: unknown;
  readonly spans: readonly { readonly name: string; readonly start: number; readonly end: number }[];
  readonly turns?: readonly ShownTurn[];
  readonly parent?: { readonly key: string; readonly fork: number };
  readonly weights: string;
  readonly temperature: number;
  readonly policyVersion: number;
  readonly tokens: number;
  /** Indices into the group's contexts. */
  readonly sampledUnder: number;
  readonly trainedUnder: number;
}

export interface GroupDetail {
  readonly step: number;
  readonly index: number;
  /** Groups of the step. */
  readonly groups: number;
  /** Its number among all groups of the run. */
  readonly number: number;
  readonly key: string;
  readonly kind: string;
  readonly weight: number;
  readonly problem: {
    readonly key: string;
    readonly prompt: readonly { readonly role: string; readonly content: Cut }[];
    readonly reference: { readonly state: string; readonly answer?: unknown };
    readonly privileged?: unknown;
    readonly tags?: { readonly [name: string]: string | number | boolean };
  };
  readonly notes: unknown;
  readonly problemNotes: unknown;
  readonly contexts: readonly { readonly label: string; readonly tokens: number; readonly text: Cut | null }[];
  readonly members: readonly Member[];
  /** Why tokens are shown by number; absent: they have texts. */
  readonly untold?: string;
}

/** Tokens of a member from `from` on, arrays of one entry each. */
export interface TokenSlice {
  readonly from: number;
  readonly total: number;
  readonly ids: readonly number[];
  /** Absent without a tokenizer. */
  readonly texts?: readonly string[];
  readonly sampled: readonly number[];
  readonly reward: readonly number[];
  readonly loss: readonly number[];
  /** `behaviour`, `old`, `entropy`, and what the run added: `coefficient`, `weight`, `logp`, `coefficient.SLOT.STAGE.METHOD`; null: not there. */
  readonly columns: { readonly [name: string]: readonly (number | null)[] };
}

/** What rollouts are looked for; all that is given must hold. */
export interface Filter {
  readonly verdict?: VerdictKind;
  readonly reason?: string;
  readonly problem?: string;
  readonly text?: string;
  /** `NAME=VALUE`, or a name. */
  readonly tag?: string;
  readonly stop?: string;
  readonly least?: number;
  readonly most?: number;
}

/** A line of a search's answer: found groups as they are found, and how far it is. */
export interface SearchLine {
  readonly found?: { readonly row: GroupRow; readonly members: readonly number[] };
  readonly done: number;
  readonly total: number;
  /** It has ended: `all` was read, or there were too many to go on. */
  readonly end?: "all" | "enough";
  readonly fault?: string;
}

export interface Interval {
  readonly low: number;
  readonly high: number;
}

export interface MeanOf {
  readonly mean: number;
  readonly interval: Interval | null;
}

/** An arm of a comparison; docs/compare.md says what its numbers mean. */
export interface ComparedArm {
  readonly label: string;
  readonly runs: readonly { readonly folder: string; readonly seed?: number; readonly final: number; readonly steps: number }[];
  readonly final: MeanOf;
  readonly difference: { readonly mean: number; readonly pairs: number; readonly seeds: Interval | null; readonly problems: Interval | null } | null;
  readonly area: MeanOf | null;
  readonly area_difference: { readonly mean: number; readonly pairs: number; readonly seeds: Interval | null } | null;
  readonly tokens: { readonly sampled: number; readonly trained: number; readonly evaluation: number };
  readonly curve: readonly { readonly step: number; readonly mean: number; readonly low: number; readonly high: number }[];
}

export interface ComparedProblem {
  readonly key: string;
  readonly text: string;
  /** By arm: mean score over its runs; null: not scored. */
  readonly scores: readonly (number | null)[];
}

export interface Comparison {
  readonly report: { readonly metric: string; readonly arms: readonly ComparedArm[]; readonly notes: readonly string[] };
  /** Names of the runs of each arm, in the order of the report. */
  readonly arms: readonly { readonly label: string; readonly runs: readonly string[] }[];
  /** Held-out problems that all arms were measured on; none where they are not the same. */
  readonly problems: readonly ComparedProblem[];
  /** Why problems or runs are not there. */
  readonly missing: readonly string[];
}

/** A reproduction as the page shows it; src/reproduce says what its parts mean. */
export interface ShownRecord {
  readonly id: string;
  readonly paper: string;
  readonly method: string;
  readonly testbed: string;
  readonly seeds: readonly number[];
  readonly outcome: string | null;
  readonly claims: readonly {
    readonly claim: string;
    readonly statement: string;
    readonly about?: string;
    readonly mean: number | null;
    readonly interval: Interval | null;
    readonly values: readonly (number | null)[];
    readonly outcome: string | null;
  }[];
  readonly arms: readonly {
    readonly arm: string;
    readonly about?: string;
    readonly metrics: {
      readonly [metric: string]: { readonly mean: number | null; readonly interval: Interval | null; readonly seeds: readonly (number | null)[] };
    };
    readonly curve?: ComparedArm["curve"];
  }[];
  readonly failed: readonly { readonly arm: string; readonly seed: number; readonly why: string }[];
  readonly differences: readonly string[];
  readonly commit: string;
  readonly date: string;
  readonly minutes: number;
  readonly sabotage?: { readonly about: string; readonly outcomes: readonly (string | null)[] };
  readonly earlier: readonly { readonly commit: string; readonly date: string; readonly seeds: number; readonly outcome: string | null }[];
  readonly remark: string;
}

export interface ShareOf {
  readonly share: number;
  readonly low: number;
  readonly high: number;
}

interface ShownWrong {
  readonly kind: string;
  readonly n: number;
  readonly accepted: number;
  readonly accept_rate: ShareOf;
}

interface ShownExample {
  readonly gold: string;
  readonly text: string;
  readonly of: string;
  readonly outcome: string;
  readonly reason?: string;
}

/** An audit of a verifier as the page shows it; src/audit says what its parts mean. */
export interface ShownAudit {
  readonly id: string;
  readonly name: string;
  readonly verifier: string;
  readonly other?: string;
  readonly clean: boolean;
  readonly seed: number;
  readonly golds: number;
  readonly verdicts: number;
  readonly self_validation: ShareOf & { readonly n: number; readonly accepted: number };
  readonly cells: readonly {
    readonly category: string;
    readonly promised: boolean;
    readonly n: number;
    readonly accept: number;
    readonly reject: number;
    readonly error: number;
    readonly timeout: number;
    readonly reject_rate: ShareOf;
  }[];
  readonly in_contract: { readonly n: number; readonly failures: number; readonly budget: { readonly [category: string]: number } };
  readonly mutants: readonly ShownWrong[];
  readonly hacks: readonly ShownWrong[];
  readonly off_by_one: readonly { readonly value: string; readonly one_less: string; readonly one_more: string }[];
  readonly disagreement?: ShareOf & { readonly n: number; readonly differ: number };
  readonly examples: { readonly rejected: readonly ShownExample[]; readonly accepted: readonly ShownExample[] };
  readonly median_ms: number;
  readonly p99_ms: number;
}

/** A page in one file carries this in place of a server. */
export interface Archive {
  readonly home: Home;
  readonly runs: { readonly [id: string]: ArchivedRun };
  /** By what was asked: `askedOf` of runs and metric. */
  readonly comparisons: { readonly [asked: string]: Comparison };
  readonly records: { readonly [id: string]: ShownRecord };
  readonly audits: { readonly [id: string]: ShownAudit };
}

export interface ArchivedRun {
  readonly overview: Overview;
  readonly groups: readonly { readonly row: GroupRow; readonly detail: GroupDetail; readonly tokens: readonly TokenSlice[] }[];
  /** Groups that are left out. */
  readonly left: number;
  /** Why some of them cannot be read. */
  readonly damage?: string;
}
