import type { Json } from "../core/json.js";

/** What a run tells while it goes: what is awaited, what is done. */
export type TrainProgress =
  /** Problems are drawn; nothing is started yet. */
  | { readonly kind: "pose"; readonly done: number; readonly total: number }
  | { readonly kind: "await"; readonly what: string; readonly done?: number; readonly total?: number }
  | { readonly kind: "message"; readonly text: string }
  | {
      readonly kind: "step";
      readonly step: number;
      readonly steps: number;
      readonly metrics: { readonly [name: string]: number };
      readonly clock: { readonly [name: string]: number };
    }
  | { readonly kind: "evaluation"; readonly step: number; readonly score?: number; readonly data: { readonly [name: string]: Json } }
  | { readonly kind: "checkpoint"; readonly step: number };

export type OnProgress = (progress: TrainProgress) => void;
