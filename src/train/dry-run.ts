/** What a run would be, without training: configuration, memory and time, and the first batch with its masks. */
import type { Batch } from "../core/trajectory.js";
import type { Sequence } from "../engine/contract.js";
import type { MemoryEstimate } from "../engine/onnx/memory.js";
import { coefficientsOf } from "../methods/coefficients.js";
import { type TableRow, tableOf } from "../methods/resolve.js";
import { collect } from "./collect.js";
import { metricsOf } from "./diagnosis.js";
import { memoryOf } from "./engines.js";
import { Gap } from "./gap.js";
import { policy, StepLab } from "./lab.js";
import { Ledger } from "./ledger.js";
import { checkLoggerNames } from "./loggers/catalogue.js";
import { activeRows } from "./minibatch.js";
import { type Plan, plan, prepare } from "./prepare.js";
import { labParts, separate, type TrainOptions } from "./train.js";

export interface DryRun {
  readonly config: Plan["config"];
  /** Who answers each slot. */
  readonly method: readonly TableRow[];
  /** Of a run in stages: the methods in order, the first of them the one above. */
  readonly stages: readonly { readonly method: string; readonly optimizer: "keep" | "reset"; readonly table: readonly TableRow[] }[];
  readonly parameters: number;
  readonly problems: number;
  readonly notes: readonly string[];
  /** Bytes of the engine's processes; absent for engines without an estimate. */
  readonly memory?: MemoryEstimate;
  readonly time: {
    /** Measured on the first batch. */
    readonly sampleMs: number;
    readonly forwardMs: number;
    /** Of all steps, evaluations left out: sampling, and three times a forward pass for each update's share of the batch. */
    readonly runMs: number;
  };
  readonly batch: Batch;
  /** Tokens of the policy's loss, a row of the batch: 1 where it falls. [rows][tokens] */
  readonly mask: readonly Uint8Array[];
  readonly metrics: { readonly [name: string]: number };
  readonly decode: (ids: ArrayLike<number>) => string;
}

/** A backward pass computes the forward pass twice over, and once more where activations are computed again. */
const passesOfUpdate = 4;

/** Samples and judges the first batch as the run would, passes it forward once, and writes nothing. */
export async function dryRun(options: TrainOptions): Promise<DryRun> {
  const { input, given, hooks } = separate(options);
  const onProgress = hooks.onProgress ?? (() => undefined);
  const planned = await plan(input, given, "train", undefined, onProgress);
  checkLoggerNames(planned.config.loggers);
  const prepared = await prepare(planned, given, onProgress);
  try {
    const { engine, config, stages, model, contexts, inputs, tokenizer, roles } = prepared;
    const lab = new StepLab(
      labParts(prepared, new Ledger(), () => 0),
      1,
    );
    const method = stages[0].resolved;
    for (const stage of method.stages.setup) await stage.run(lab);
    onProgress({ kind: "await", what: "rollouts" });
    const start = performance.now();
    const { batch } = await collect(method, lab, { unscored: config.unscored, weights: undefined });
    const sampled = performance.now();
    onProgress({ kind: "await", what: "coefficients" });
    const c = await coefficientsOf(method, batch, lab);
    const gap = new Gap();
    const rows = activeRows(c);
    const passed = rows.length > 0 ? rows : c.rows.map((_, i) => i);
    const from = performance.now();
    const sequences = passed.map(
      (i): Sequence => ({ context: c.rows[i].trainedUnder, response: c.rows[i].response, weights: policy, temperature: config.temperature }),
    );
    const forward = await engine.forward(sequences);
    passed.forEach((row, i) => gap.add(c.rows[row], forward.scores[i]));
    await engine.release(forward.handle);
    const forwardMs = performance.now() - from;
    const sampleMs = sampled - start;
    const under = [...contexts.contexts.values(), ...c.rows.map(({ sampledUnder }) => sampledUnder)];
    const longest = Math.max(...under.map(({ ids }) => ids.length));
    const memory = await memoryOf(config, longest, roles.others);
    const result = { steps: 0, loss: 0, statistics: {}, gap, gradNorms: [], clipped: 0, tokens: 0, rows: rows.length, logp: new Map<number, Float64Array>() };
    return {
      config,
      method: tableOf(method),
      stages:
        config.stages === undefined ? [] : stages.map(({ method: { name }, optimizer, resolved }) => ({ method: name, optimizer, table: tableOf(resolved) })),
      parameters: model.parameters,
      problems: contexts.problems.length,
      notes: inputs.notes,
      ...(memory ? { memory } : {}),
      time: { sampleMs, forwardMs, runMs: config.steps * (sampleMs + config.epochs * passesOfUpdate * forwardMs) },
      batch,
      mask: c.mask.policy,
      metrics: metricsOf(c, result),
      decode: (ids) => tokenizer.decode(ids, "show"),
    };
  } finally {
    await prepared.close();
  }
}
