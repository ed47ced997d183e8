/**
 * A model's weights in memory. Matrices are [out][in] row-major as in Hugging Face files, one array a tensor: products that
 * share their input stay apart, since splitting a joined result and joining its gradient again costs more than it saves.
 */
import { ArgumentError } from "../../core/errors.js";
import { sumNumbers, writeNumbers } from "../flat-file.js";
import type { DecoderConfig } from "./config.js";
import { fillNormal } from "./init.js";

/** A Hugging Face tensor within a parameter: rows `rowStart` to `rowStart + rows` (of one element each where the parameter is a vector). */
export interface Part {
  readonly name: string;
  readonly rowStart: number;
  readonly rows: number;
  readonly shape: readonly number[];
}

/**
 * One array of weights, in an ArrayBuffer of its own. `data` and `grad` are replaced when an optimizer step moves their
 * buffers to another thread and back: hold the parameter, not its arrays, and read neither while a step runs.
 */
export interface Parameter {
  /** `embed`, `layers.3.q`, `norm`, `head`, `valueWeight`… */
  readonly name: string;
  readonly shape: readonly [rows: number, columns: number] | readonly [length: number];
  readonly parts: readonly Part[];
  data: Float32Array;
  grad?: Float32Array;
}

export interface TensorShape {
  readonly name: string;
  readonly shape: readonly number[];
}

export type Layout = Omit<Parameter, "data" | "grad">;

/** Elements of one row of a parameter. */
export const columnsOf = ({ shape }: Pick<Parameter, "shape">): number => shape[1] ?? 1;

export const sizeOf = ({ shape }: Pick<Parameter, "shape">): number => shape[0] * (shape[1] ?? 1);

export function vector(name: string, length: number, tensor: string): Layout {
  return { name, shape: [length], parts: [{ name: tensor, rowStart: 0, rows: length, shape: [length] }] };
}

export function matrix(name: string, columns: number, tensors: readonly (readonly [name: string, rows: number])[]): Layout {
  let rowStart = 0;
  const parts = tensors.map(([tensor, rows]) => {
    const part = { name: tensor, rowStart, rows, shape: [rows, columns] };
    rowStart += rows;
    return part;
  });
  return { name, shape: [rowStart, columns], parts };
}

/** The parameters of a model. Their parts are in the order of the modules in transformers, the value head last: the order of flat arrays and of sums. */
export function layoutOf(config: DecoderConfig, valueHead = false): Layout[] {
  const { width, mlp, headDim, vocabulary } = config;
  const q = config.heads * headDim;
  const kv = config.kvHeads * headDim;
  const layouts = [matrix("embed", width, [["model.embed_tokens.weight", vocabulary]])];
  for (let layer = 0; layer < config.layers; layer++) {
    const here = `layers.${layer}`;
    const there = `model.layers.${layer}`;
    const attention = (projection: string, rows: number): [string, number] => [`${there}.self_attn.${projection}_proj.weight`, rows];
    const block = (projection: string, rows: number): [string, number] => [`${there}.mlp.${projection}_proj.weight`, rows];
    const bias = (projection: string, rows: number): Layout[] =>
      config.attentionBias ? [vector(`${here}.${projection}Bias`, rows, `${there}.self_attn.${projection}_proj.bias`)] : [];
    const headNorm = (projection: string): Layout[] =>
      config.qkNorm ? [vector(`${here}.${projection}Norm`, headDim, `${there}.self_attn.${projection}_norm.weight`)] : [];
    layouts.push(
      matrix(`${here}.q`, width, [attention("q", q)]),
      ...bias("q", q),
      matrix(`${here}.k`, width, [attention("k", kv)]),
      ...bias("k", kv),
      matrix(`${here}.v`, width, [attention("v", kv)]),
      ...bias("v", kv),
      matrix(`${here}.o`, q, [attention("o", width)]),
      ...headNorm("q"),
      ...headNorm("k"),
      matrix(`${here}.gate`, width, [block("gate", mlp)]),
      matrix(`${here}.up`, width, [block("up", mlp)]),
      matrix(`${here}.down`, mlp, [block("down", width)]),
      vector(`${here}.norm1`, width, `${there}.input_layernorm.weight`),
      vector(`${here}.norm2`, width, `${there}.post_attention_layernorm.weight`),
    );
  }
  layouts.push(vector("norm", width, "model.norm.weight"));
  if (!config.tied) layouts.push(matrix("head", width, [["lm_head.weight", vocabulary]]));
  if (valueHead) layouts.push(...valueHeadLayout(width));
  return layouts;
}

/** How many numbers a model has. */
export const parameterCount = (config: DecoderConfig, valueHead = false): number =>
  layoutOf(config, valueHead).reduce((sum, layout) => sum + sizeOf(layout), 0);

/** The value head, whose tensors come last. */
export const valueHeadLayout = (width: number): Layout[] => [
  matrix("valueWeight", width, [["value_head.weight", 1]]),
  vector("valueBias", 1, "value_head.bias"),
];

/** Named arrays of weights with their gradients: what is trained together. */
export class WeightArrays {
  readonly parameters: readonly Parameter[];
  /** In the order of flat arrays. */
  readonly tensors: readonly TensorShape[];
  readonly count: number;
  /** How many running samples and kept forward passes read them. */
  users = 0;
  private readonly byName: ReadonlyMap<string, Parameter>;
  private readonly places: ReadonlyMap<string, { readonly parameter: Parameter; readonly part: Part }>;
  private accumulated = false;

  /** All zero. */
  constructor(layouts: readonly Layout[]) {
    this.parameters = layouts.map((layout) => ({ ...layout, data: new Float32Array(sizeOf(layout)) }));
    this.tensors = this.parameters.flatMap(({ parts }) => parts.map(({ name, shape }) => ({ name, shape })));
    this.count = this.parameters.reduce((sum, { data }) => sum + data.length, 0);
    this.byName = new Map(this.parameters.map((parameter) => [parameter.name, parameter]));
    this.places = new Map(this.parameters.flatMap((parameter) => parameter.parts.map((part) => [part.name, { parameter, part }] as const)));
  }

  /** The parameter of that name, if there is one. */
  find(name: string): Parameter | undefined {
    return this.byName.get(name);
  }

  /** A parameter by the engine's name (`layers.3.q`). */
  get(name: string): Parameter {
    return this.byName.get(name) ?? this.unknown(name, this.byName.keys());
  }

  has(tensor: string): boolean {
    return this.places.has(tensor);
  }

  /** The weights of a Hugging Face tensor: a view, valid until the next step. */
  view(tensor: string): Float32Array {
    const { parameter, part } = this.place(tensor);
    return rowsOf(parameter, part, parameter.data);
  }

  read(tensor: string): Float64Array {
    return Float64Array.from(this.view(tensor));
  }

  /** Writes a tensor, rounded to float32. Throws an ArgumentError when the length differs. */
  write(tensor: string, values: Float64Array): void {
    const view = this.view(tensor);
    if (values.length !== view.length) {
      throw new ArgumentError({ place: tensor, cause: `it has ${view.length} numbers and ${values.length} were given`, mend: "give all of them, row-major" });
    }
    view.set(values);
  }

  /** The gradient array of a parameter, to be added to; zeros at first. */
  gradient(parameter: Parameter): Float32Array {
    this.accumulated = true;
    parameter.grad ??= new Float32Array(parameter.data.length);
    return parameter.grad;
  }

  /** Replaces the gradient array of a parameter by one that already contains what it held. */
  setGradient(parameter: Parameter, grad: Float32Array): void {
    this.accumulated = true;
    parameter.grad = grad;
  }

  readGradient(tensor: string): Float64Array {
    const { parameter, part } = this.place(tensor);
    return parameter.grad ? Float64Array.from(rowsOf(parameter, part, parameter.grad)) : new Float64Array(part.rows * columnsOf(parameter));
  }

  /** Lets the gradient's memory go. */
  dropGradient(): void {
    for (const parameter of this.parameters) parameter.grad = undefined;
    this.accumulated = false;
  }

  /** Writes the gradient to a file, end to end in the order of `tensors`; false when nothing was accumulated. */
  exportGradient(file: string): boolean {
    if (!this.accumulated) return false;
    writeNumbers(
      file,
      this.parameters.map((parameter) => this.gradient(parameter)),
    );
    return true;
  }

  /** Puts the sum of such files in place of the gradient. */
  importGradient(files: readonly string[]): void {
    if (files.length === 0) this.dropGradient();
    else {
      // What the arrays hold is overwritten.
      const arrays = this.parameters.map((parameter) => this.gradient(parameter));
      sumNumbers(files, arrays);
    }
  }

  private place(tensor: string): { readonly parameter: Parameter; readonly part: Part } {
    return this.places.get(tensor) ?? this.unknown(tensor, this.places.keys());
  }

  private unknown(name: string, known: Iterable<string>): never {
    throw new ArgumentError({ place: name, cause: "the model has no such tensor", mend: `name one of: ${[...known].join(", ")}` });
  }
}

/** The weights of one model, with their gradient. */
export class ParameterStore extends WeightArrays {
  /** All zero. */
  constructor(
    readonly config: DecoderConfig,
    readonly hasValueHead = false,
  ) {
    super(layoutOf(config, hasValueHead));
  }

  /** As transformers begins: matrices normal with `initializerRange`, norms 1, biases 0. A value head begins at 0, so that it predicts 0 (our choice). */
  static random(config: DecoderConfig, seed: number, hasValueHead = false): ParameterStore {
    const store = new ParameterStore(config, hasValueHead);
    for (const { name, shape } of store.tensors) {
      if (name.startsWith("value_head.") || name.endsWith(".bias")) continue;
      if (shape.length === 1) store.view(name).fill(1);
      else fillNormal(store.view(name), seed, name, config.initializerRange);
    }
    return store;
  }

  /** A copy of the weights, without gradient. */
  clone(): ParameterStore {
    const copy = new ParameterStore(this.config, this.hasValueHead);
    for (const [i, { data }] of this.parameters.entries()) copy.parameters[i].data.set(data);
    return copy;
  }
}

/** The rows of a part, as a view. */
export function rowsOf(parameter: Pick<Parameter, "shape">, { rowStart, rows }: Part, array: Float32Array): Float32Array {
  const columns = columnsOf(parameter);
  return array.subarray(rowStart * columns, (rowStart + rows) * columns);
}
