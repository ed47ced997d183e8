/** How much memory the onnx engine needs for a model and a kind of work, and how much there is: refused before it starts. */
import { existsSync, readFileSync } from "node:fs";
import { freemem } from "node:os";
import { join } from "node:path";
import { MemoryError } from "../../core/errors.js";
import type { AdapterOptions } from "../contract.js";
import { adapterCount } from "./adapter.js";
import type { DecoderConfig } from "./config.js";
import { parameterCount } from "./params.js";

/** The work that memory is asked for. Lengths are in tokens. */
export type Work =
  | { readonly kind: "load" }
  /** `sequences` at a time, each with up to `length` tokens of context and response. */
  | { readonly kind: "sample"; readonly sequences: number; readonly length: number; readonly restricted?: boolean }
  /** Packs of up to `slots` tokens in rows of up to `length`. */
  | { readonly kind: "score"; readonly slots: number; readonly length: number }
  | {
      readonly kind: "train";
      readonly slots: number;
      readonly length: number;
      readonly activations: "keep" | "recompute";
      /** Moments a weight: 2 for AdamW, between 1 and 2 for Muon, 1 for SGD with momentum, 0 without. Default 2. */
      readonly moments?: number;
    };

export interface MemoryPlan {
  readonly valueHead?: boolean;
  /** An adapter on the weights, which alone learns. */
  readonly adapter?: Pick<AdapterOptions, "rank" | "targets">;
  /** Further copies of the weights: snapshots, frozen copies of the role. Default 0. */
  readonly copies?: number;
  /** Further copies of the adapter. Default 0. */
  readonly adapterCopies?: number;
  /** Rows of the head computed at a time. Default: as many as have 100 MB of logits. */
  readonly headRows?: number;
}

/** Bytes by what they are for, and their sum. */
export interface MemoryEstimate {
  readonly parts: { readonly [what: string]: number };
  readonly total: number;
}

/** Node, ONNX Runtime, its sessions and the allocator's reserve. */
const processBytes = 250e6;
const logitBytes = 100e6;

/**
 * The bytes of a kind of work, all in float32. The one place of the formula, a count of the arrays that live at the same
 * time; what the runtime plans inside of a graph is a guess on the safe side.
 */
export function estimateMemory(config: DecoderConfig, work: Work, plan: MemoryPlan = {}): MemoryEstimate {
  const { layers, width, mlp, vocabulary, heads, kvHeads, headDim } = config;
  const number = 4;
  const model = number * parameterCount(config, plan.valueHead);
  const { adapter } = plan;
  const learning = adapter ? number * adapterCount(config, adapter) : model;
  const q = heads * headDim;
  const kv = kvHeads * headDim;
  const parts: { [what: string]: number } = { process: processBytes, weights: model };
  if (adapter) parts.adapter = (1 + (plan.adapterCopies ?? 0)) * learning;
  if (plan.copies) parts.copies = plan.copies * model;

  /** What one layer computes from one token of a row: norms and residuals, q k v twice (before and after rotation), gate, up, their product; scores and softmax. */
  const layerForward = (length: number): number => number * (5 * width + 2 * (q + 2 * kv) + q + 4 * mlp + 2 * heads * length);
  /** z, its exponential and one more of their size. */
  const headRows = plan.headRows ?? Math.max(2, Math.floor(logitBytes / number / vocabulary));
  const headChunk = (rows: number, arrays: number): number => number * arrays * Math.min(rows, headRows) * vocabulary;

  if (work.kind === "sample") {
    // The cache grows by a quarter by copying, so at the last growth four fifths of it are there twice; it may be a quarter and one step of 16 longer than needed.
    const capacity = Math.ceil(1.25 * work.length) + 16;
    parts.cache = 1.8 * number * work.sequences * capacity * layers * 2 * kv;
    parts.layer = work.sequences * layerForward(capacity);
    // Ranks, order and running sums of a restricted draw are of 64 bits.
    parts.head = headChunk(work.sequences, work.restricted ? 24 : 3);
  }
  if (work.kind === "score") {
    parts.layer = work.slots * layerForward(work.length);
    parts.head = headChunk(work.slots, 3);
  }
  if (work.kind === "train") {
    parts.gradients = learning;
    parts.moments = (work.moments ?? 2) * learning;
    parts["layer inputs"] = number * work.slots * width * (layers + 1);
    if (work.activations === "keep") parts.activations = number * work.slots * layers * (2 * q + 2 * kv + width + 2 * mlp);
    // Forward again and a derivative of each array; and the fresh gradients of one layer before they are added.
    const layerWeights = adapter ? learning / layers : number * ((2 * q + 2 * kv) * width + 3 * width * mlp);
    parts.layer = 2 * work.slots * layerForward(work.length) + layerWeights;
    // The gradient of the table comes out as a new array while the sum so far is read.
    parts.head = headChunk(work.slots, 5) + (adapter ? 0 : number * vocabulary * width);
  }
  return { parts, total: Object.values(parts).reduce((sum, bytes) => sum + bytes, 0) };
}

/** Another way to do the work, in words that follow "take", and what it needs. */
export interface Alternative {
  readonly what: string;
  readonly estimate: MemoryEstimate;
}

/** Throws a MemoryError with the figures when the estimate exceeds what is available; `what` names the work. Of the alternatives those that fit are told. */
export function refuseUnlessFits(estimate: MemoryEstimate, available: number, what: string, alternatives: () => readonly Alternative[] = () => []): void {
  if (estimate.total <= available) return;
  const fitting = alternatives().filter(({ estimate: { total } }) => total <= available);
  // All that is needed grows about as the model does.
  const parameters = ((estimate.parts.weights ?? 0) / 4) * (available / estimate.total);
  const size = parameters >= 1e6 ? ` (about ${(parameters / 1e6).toFixed(0)}M parameters would fit)` : "";
  const would = fitting.map((each) => `${each.what}, which needs about ${gigabytes(each.estimate.total)}`).join("; or ");
  const parts = Object.entries(estimate.parts).sort(([, a], [, b]) => b - a);
  throw new MemoryError({
    place: what,
    cause: `it needs about ${gigabytes(estimate.total)} (${parts.map(([name, bytes]) => `${name} ${gigabytes(bytes)}`).join(", ")}) and ${gigabytes(available)} are available`,
    mend: fitting.length > 0 ? `take ${would}` : `take a smaller model${size}, fewer or shorter sequences at a time, or a machine with more memory`,
    data: { needed: estimate.total, available, parts: { ...estimate.parts } },
  });
}

const gigabytes = (bytes: number): string => `${(bytes / 1e9).toFixed(bytes < 1e9 ? 3 : 2)} GB`;

/** The most sequences, up to `sequences`, that can be sampled together in what is available; at least the two that a step decodes. */
export function rowsThatFit(config: DecoderConfig, work: Extract<Work, { kind: "sample" }>, plan: MemoryPlan, available: number): number {
  let rows = work.sequences;
  while (rows > leastRows && estimateMemory(config, { ...work, sequences: rows }, plan).total > available) rows = Math.max(leastRows, Math.floor(rows / 2));
  return rows;
}

/** A lone row is decoded beside an empty one. */
const leastRows = 2;

/** Bytes that this process can still get: what the system has free, or less where a control group (v1 or v2) limits it. `root` stands for `/` in tests. */
export function availableMemory(root = "/"): number {
  const text = (path: string): string => {
    const full = join(root, path);
    return existsSync(full) ? readFileSync(full, "utf8") : "";
  };
  const free = /^MemAvailable:\s+(\d+) kB/m.exec(text("proc/meminfo"));
  const limits = [free ? Number(free[1]) * 1024 : freemem()];
  for (const line of text("proc/self/cgroup").split("\n")) {
    const [, controllers, path] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    if (path === undefined) continue;
    if (controllers === "")
      for (const folder of upwards(path)) limits.push(left(text, join("sys/fs/cgroup", folder), "memory.max", "memory.current", "inactive_file"));
    if (controllers.split(",").includes("memory")) {
      for (const folder of upwards(path)) {
        limits.push(left(text, join("sys/fs/cgroup/memory", folder), "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"));
      }
    }
  }
  return Math.max(0, Math.min(...limits));
}

/** A path and all above it, since a limit holds for everything below; inside of a container the group's own path is often not there, but the root is. */
function upwards(path: string): string[] {
  const names = path.split("/").filter((name) => name !== "" && name !== "..");
  return Array.from({ length: names.length + 1 }, (_, n) => names.slice(0, names.length - n).join("/"));
}

/** What a group's limit leaves; file pages that can be dropped do not count as used. Infinity without a limit. */
function left(text: (path: string) => string, folder: string, limitFile: string, usageFile: string, droppable: string): number {
  const limit = text(join(folder, limitFile)).trim();
  if (!/^\d+$/.test(limit)) return Number.POSITIVE_INFINITY;
  const used = Number(text(join(folder, usageFile)));
  const pages = Number(new RegExp(`^${droppable} (\\d+)$`, "m").exec(text(join(folder, "memory.stat")))?.[1] ?? 0);
  return Number(limit) - Math.max(0, used - pages);
}
