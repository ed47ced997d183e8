/**
 * SGD and AdamW over a store's parameters, as torch.optim has them, and Muon for matrices of layers: rates and decays by Hugging Face tensor, clipping by
 * the global norm, a guard against gradients that are not finite, and state that is saved and loaded byte for byte.
 */
import { ArgumentError, ModelError } from "../../core/errors.js";
import type { ParameterRule, StepRequest, StepResult, UpdateRule } from "../contract.js";
import { SafetensorsFile } from "../safetensors.js";
import { type TensorToWrite, writeSafetensors } from "../safetensors-write.js";
import { isHidden, muonStep, type Orthogonalise } from "./muon.js";
import { columnsOf, type Parameter, rowsOf, type WeightArrays } from "./params.js";
import { type Decide, runHere, stepThreads } from "./step-threads.js";
import type { Job, Range, Update } from "./update.js";

/** Moments by kind, as torch names them. */
const kinds = { first: "exp_avg", second: "exp_avg_sq", momentum: "momentum_buffer" } as const;
type Kind = keyof typeof kinds;

/** Below this many numbers one thread is faster than moving buffers to two; measured: 3.4 against 4.0 ms at 1M, 23 against 15 ms at 3.2M. */
const threadsFrom = 3_000_000;

/** The optimizer of one parameter set. */
export class Optimizer {
  /** Steps of AdamW made, those of Muon included. */
  private steps = 0;
  /** Steps left out because a gradient was not finite. */
  private skipped = 0;
  private readonly moments: { readonly [kind in Kind]: Map<string, Float32Array> } = { first: new Map(), second: new Map(), momentum: new Map() };

  constructor(
    private readonly threads = 1,
    /** For Muon. */
    private readonly orthogonalise?: Orthogonalise,
  ) {}

  /**
   * Makes a step with the gradient of the store, which stays for the caller to drop; a parameter on which nothing fell
   * has gradient 0. The weights, gradients and moments may be away on other threads until the promise resolves.
   */
  async step(store: WeightArrays, rule: UpdateRule, options: Pick<StepRequest, "maxNorm" | "groups"> = {}): Promise<Omit<StepResult, "weights">> {
    const groups = compile(options.groups ?? []);
    const jobs = store.parameters.map((parameter) => this.jobOf(parameter, rule, groups));
    let result: Omit<StepResult, "weights"> = { gradNorm: 0, clipped: false };
    let factor = 0;
    const decide: Decide = (inspections) => {
      let squares = 0;
      for (const inspection of inspections) squares += inspection.squares;
      const gradNorm = Math.sqrt(squares);
      const at = inspections.findIndex(({ bad }) => bad >= 0);
      if (at >= 0) {
        const parameter = tensorAt(store.parameters[at], inspections[at].bad);
        result = { gradNorm, clipped: false, skipped: { parameter, count: this.skipped + 1 } };
        return { update: undefined, clip: 0 };
      }
      // The 1e-6 is that of torch's clip_grad_norm_.
      const clip = options.maxNorm === undefined ? 1 : Math.min(1, options.maxNorm / (gradNorm + 1e-6));
      result = { gradNorm, clipped: clip < 1 };
      factor = clip;
      return { update: this.updateOf(rule), clip };
    };
    if (this.threads > 1 && store.count >= threadsFrom) await stepThreads(this.threads).run(jobs, decide);
    else runHere(jobs, decide);
    this.takeBack(store, rule, jobs);
    if (result.skipped) {
      this.skipped++;
      return result;
    }
    if (rule.rule === "muon") {
      for (const parameter of store.parameters.filter(isHidden)) {
        const [{ rate, decay }] = rangesOf(parameter, rule, groups);
        await muonStep(parameter, this.moment("momentum", parameter), { rate, decay }, rule, factor, this.orthogonalise);
      }
    }
    if (rule.rule !== "sgd") this.steps++;
    return result;
  }

  /** Writes moments and counts, with text of the caller, to a safetensors file. */
  async save(file: string, store: WeightArrays, extra: { readonly [key: string]: string } = {}): Promise<void> {
    const tensors: TensorToWrite[] = [];
    for (const kind of Object.keys(kinds) as Kind[]) {
      for (const parameter of store.parameters) {
        const array = this.moments[kind].get(parameter.name);
        if (!array) continue;
        for (const part of parameter.parts) tensors.push({ name: `${kinds[kind]}.${part.name}`, shape: part.shape, data: rowsOf(parameter, part, array) });
      }
    }
    await writeSafetensors(file, tensors, { ...extra, format: "touchstone-optimizer", steps: String(this.steps), skipped: String(this.skipped) });
  }

  /** Forgets moments and the steps behind them. */
  reset(): void {
    for (const kind of Object.values(this.moments)) kind.clear();
    this.steps = 0;
  }

  /** Loads what `save` wrote for a store of the same shape, and returns the metadata. A ModelError leaves the state as it was. */
  async load(file: string, store: WeightArrays): Promise<{ readonly [key: string]: string }> {
    const opened = await SafetensorsFile.open(file);
    try {
      const { metadata } = opened;
      const [steps, skipped] = [metadata.steps, metadata.skipped].map(Number);
      if (metadata.format !== "touchstone-optimizer" || !Number.isSafeInteger(steps) || !Number.isSafeInteger(skipped)) {
        throw new ModelError({ place: file, cause: "it holds no optimizer state", mend: "give a file of weights.saveOptimizer" });
      }
      checkState(opened, store);
      const loaded = await Promise.all((Object.keys(kinds) as Kind[]).map(async (kind) => [kind, await readKind(opened, store, kinds[kind])] as const));
      for (const [kind, arrays] of loaded) {
        this.moments[kind].clear();
        for (const [name, array] of arrays) this.moments[kind].set(name, array);
      }
      this.steps = steps;
      this.skipped = skipped;
      return metadata;
    } finally {
      await opened.close();
    }
  }

  private jobOf(parameter: Parameter, rule: UpdateRule, groups: readonly CompiledRule[]): Job {
    const { data, grad = new Float32Array(data.length) } = parameter;
    // Its gradient is looked at here, and the step is made afterwards.
    if (rule.rule === "muon" && isHidden(parameter)) return { ranges: [], data, grad, first: undefined, second: undefined };
    const ranges = rangesOf(parameter, rule, groups);
    const moment = (kind: Kind): Float32Array => this.moment(kind, parameter);
    const [first, second] = rule.rule === "sgd" ? [rule.momentum ? moment("momentum") : undefined, undefined] : [moment("first"), moment("second")];
    return { ranges, data, grad, first, second };
  }

  /** The moment of a parameter, zero at first. */
  private moment(kind: Kind, { name, data }: Parameter): Float32Array {
    const array = this.moments[kind].get(name) ?? new Float32Array(data.length);
    this.moments[kind].set(name, array);
    return array;
  }

  private takeBack(store: WeightArrays, rule: UpdateRule, jobs: readonly Job[]): void {
    for (const [i, parameter] of store.parameters.entries()) {
      const { data, grad, first, second } = jobs[i];
      parameter.data = data;
      if (parameter.grad) parameter.grad = grad;
      if (first) this.moments[rule.rule === "sgd" ? "momentum" : "first"].set(parameter.name, first);
      if (second) this.moments.second.set(parameter.name, second);
    }
  }

  /** What the jobs do; of Muon that is the part of AdamW. */
  private updateOf(rule: UpdateRule): Update {
    if (rule.rule === "sgd") return { rule: "sgd", momentum: rule.momentum ?? 0 };
    const { beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8 } = rule;
    return { rule: "adamw", beta1, beta2, epsilon, t: this.steps + 1 };
  }
}

/** Rate and decay of each Hugging Face tensor of a parameter. */
function rangesOf(parameter: Parameter, rule: UpdateRule, groups: readonly CompiledRule[]): Range[] {
  const columns = columnsOf(parameter);
  return parameter.parts.map(({ name, rowStart, rows }): Range => {
    const group = groups.find(({ pattern }) => pattern.test(name));
    const [start, end] = [rowStart * columns, (rowStart + rows) * columns];
    return { start, end, rate: rule.rate * (group?.rateScale ?? 1), decay: group?.weightDecay ?? rule.weightDecay ?? 0 };
  });
}

type CompiledRule = ParameterRule & { readonly pattern: RegExp };

function compile(groups: readonly ParameterRule[]): CompiledRule[] {
  return groups.map((group) => {
    try {
      return { ...group, pattern: new RegExp(group.match) };
    } catch (error) {
      throw new ArgumentError({
        place: "step",
        cause: `the group's match ${JSON.stringify(group.match)} is no regular expression (${(error as Error).message})`,
        mend: "mend it",
      });
    }
  });
}

/** The Hugging Face tensor that owns an element. */
function tensorAt(parameter: Parameter, index: number): string {
  const row = Math.floor(index / columnsOf(parameter));
  return parameter.parts.find(({ rowStart, rows }) => row < rowStart + rows)!.name;
}

/** Refuses a file whose tensors are not moments of this model: of other names or shapes, or a kind that is there in part, other than as Muon divides them. */
function checkState(file: SafetensorsFile, store: WeightArrays): void {
  const refuse = (cause: string): never => {
    throw new ModelError({ place: file.path, cause, mend: "give the optimizer state of this model" });
  };
  const shapes = new Map(store.tensors.map(({ name, shape }) => [name, shape]));
  for (const [full, entry] of file.entries) {
    const kind = Object.values(kinds).find((name) => full.startsWith(`${name}.`));
    const shape = kind && shapes.get(full.slice(kind.length + 1));
    if (!shape) refuse(`tensor ${full} belongs to no parameter of the model`);
    else if (entry.dtype !== "F32" || entry.shape.join() !== shape.join())
      refuse(`tensor ${full} is ${entry.dtype} [${entry.shape}] where the model has F32 [${shape}]`);
  }
  const hidden = new Set(store.parameters.filter(isHidden).flatMap(({ parts }) => parts.map(({ name }) => name)));
  for (const kind of Object.values(kinds)) {
    // Muon has momentum of the layers' matrices, and the moments of AdamW of the rest.
    const own = store.tensors.filter(({ name }) => hidden.has(name) === (kind === kinds.momentum));
    const present = new Set(store.tensors.filter(({ name }) => file.entries.has(`${kind}.${name}`)).map(({ name }) => name));
    const expected = present.size === own.length && own.every(({ name }) => present.has(name)) ? own : store.tensors;
    const missing = expected.find(({ name }) => !present.has(name));
    if (present.size > 0 && missing) refuse(`tensor ${kind}.${missing.name} is missing`);
  }
}

async function readKind(file: SafetensorsFile, store: WeightArrays, kind: string): Promise<Map<string, Float32Array>> {
  const arrays = new Map<string, Float32Array>();
  for (const parameter of store.parameters) {
    if (!file.entries.has(`${kind}.${parameter.parts[0].name}`)) continue;
    const array = new Float32Array(parameter.data.length);
    for (const part of parameter.parts) await file.readFloat32(`${kind}.${part.name}`, rowsOf(parameter, part, array));
    arrays.set(parameter.name, array);
  }
  return arrays;
}
