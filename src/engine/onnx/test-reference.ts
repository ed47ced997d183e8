/**
 * The reference for our graphs: reads the bytes that ONNX Runtime gets and evaluates them node by node in float64. With it
 * come central differences, and the same run in ONNX Runtime itself.
 */
import type { Tensor as RuntimeTensor } from "onnxruntime-node";
import { type ElementType, elementTypes, ModelProto } from "./proto.js";
import { loadRuntime } from "./runtime.js";
import { Sessions } from "./sessions.js";
import { type Attributes, operators } from "./test-operators.js";
import { type Tensor, tensor } from "./test-tensor.js";

/** A model file, read back. */
export interface Decoded {
  readonly nodes: readonly { op: string; domain: string; inputs: string[]; outputs: string[]; attributes: Attributes }[];
  readonly constants: { readonly [name: string]: Tensor };
  readonly inputs: readonly { readonly name: string; readonly type: ElementType; readonly dims: readonly (number | string)[] }[];
  readonly outputs: readonly string[];
}

export type Tensors = { readonly [name: string]: Tensor };

interface FileAttribute {
  name: string;
  type: number;
  f?: number;
  i?: number;
  s?: Uint8Array;
  ints: number[];
}
interface FileValue {
  name: string;
  type: { tensor_type: { elem_type: number; shape: { dim: { dim_value?: number; dim_param?: string }[] } } };
}
interface FileTensor {
  name: string;
  dims: number[];
  data_type: number;
  raw_data: Uint8Array;
}
interface File {
  ir_version: number;
  opset_import: { domain?: string; version: number }[];
  graph: {
    node: { op_type: string; domain?: string; input: string[]; output: string[]; attribute: FileAttribute[] }[];
    initializer: FileTensor[];
    input: FileValue[];
    output: FileValue[];
  };
}

/** The fields of a model file as they stand there. */
export const readFields = (bytes: Uint8Array): File => ModelProto.toObject(ModelProto.decode(bytes), { longs: Number, arrays: true }) as File;

const typeName = (code: number): ElementType => Object.entries(elementTypes).find(([, c]) => c === code)?.[0] as ElementType;

function attributeValue({ type, f, i, s, ints }: FileAttribute): number | number[] | string {
  if (type === 1) return f ?? 0;
  if (type === 2) return i ?? 0;
  return type === 3 ? new TextDecoder().decode(s) : ints;
}

function constant({ dims, data_type, raw_data }: FileTensor): Tensor {
  const { buffer } = Uint8Array.from(raw_data);
  const type = typeName(data_type);
  if (type === "int64") return tensor(dims, Array.from(new BigInt64Array(buffer), Number));
  return tensor(dims, type === "float64" ? new Float64Array(buffer) : new Float32Array(buffer));
}

/** Reads a model file. */
export function decode(bytes: Uint8Array): Decoded {
  const { graph } = readFields(bytes);
  return {
    nodes: graph.node.map((n) => ({
      op: n.op_type,
      domain: n.domain ?? "",
      inputs: n.input,
      outputs: n.output,
      attributes: Object.fromEntries(n.attribute.map((a) => [a.name, attributeValue(a)])),
    })),
    constants: Object.fromEntries(graph.initializer.map((t) => [t.name, constant(t)])),
    inputs: graph.input.map(({ name, type: { tensor_type } }) => ({
      name,
      type: typeName(tensor_type.elem_type),
      dims: tensor_type.shape.dim.map((d) => d.dim_param ?? (d.dim_value as number)),
    })),
    outputs: graph.output.map(({ name }) => name),
  };
}

/** Symbolic sizes must agree over the inputs, fixed ones with what is fed. */
function checkFeeds(model: Decoded, feeds: Tensors): void {
  const sizes: { [symbol: string]: number } = {};
  for (const { name, dims } of model.inputs) {
    const fed = feeds[name];
    if (!fed) throw new Error(`the input ${name} is not fed`);
    for (const [i, d] of dims.entries()) if (typeof d === "string") sizes[d] ??= fed.dims[i];
    const fits = fed.dims.length === dims.length && dims.every((d, i) => (typeof d === "string" ? sizes[d] : d) === fed.dims[i]);
    if (!fits) throw new Error(`the input ${name} is [${dims}], fed with [${fed.dims}] (${JSON.stringify(sizes)})`);
  }
}

/** The outputs of a model in float64. */
export function evaluate(model: Decoded, feeds: Tensors): Tensors {
  checkFeeds(model, feeds);
  const values: { [name: string]: Tensor } = { ...model.constants };
  for (const { name } of model.inputs) values[name] = feeds[name];
  for (const node of model.nodes) {
    const operator = operators[node.op];
    if (!operator) throw new Error(`the reference does not know the operator ${node.op}`);
    const results = operator(
      node.inputs.map((name) => {
        if (!values[name]) throw new Error(`${node.op} reads ${name} before it is there`);
        return values[name];
      }),
      node.attributes,
      node.outputs.length,
    );
    node.outputs.forEach((name, i) => {
      values[name] = results[i];
    });
  }
  return Object.fromEntries(model.outputs.map((name) => [name, values[name]]));
}

/** Derivatives of `f` with respect to each entry of `at`, by central differences. */
export function centralDifferences(f: () => number, at: Float64Array, step = 1e-5): Float64Array {
  return at.map((value, i) => {
    at[i] = value + step;
    const above = f();
    at[i] = value - step;
    const below = f();
    at[i] = value;
    return (above - below) / (2 * step);
  });
}

/** ⟨a, b⟩ over all entries. */
export const inner = (a: Tensor, b: Tensor): number => a.data.reduce((total, value, i) => total + value * b.data[i], 0);

/** The outputs of a model in ONNX Runtime, with one thread unless asked otherwise. */
export async function runInRuntime(bytes: Uint8Array, feeds: Tensors, threads = 1): Promise<Tensors> {
  const sessions = new Sessions(await loadRuntime(), threads);
  const fed: { [name: string]: RuntimeTensor } = {};
  for (const { name, type } of decode(bytes).inputs) {
    const { dims, data } = feeds[name];
    if (type === "float32") fed[name] = sessions.float(Float32Array.from(data), dims);
    else if (type === "float64") fed[name] = sessions.double(data, dims);
    else if (type === "int64") fed[name] = sessions.ints(BigInt64Array.from(data, BigInt), dims);
    else fed[name] = sessions.bools(Uint8Array.from(data), dims);
  }
  const outputs = await sessions.run("graph", () => bytes, fed);
  const read = Object.entries(outputs).map(([name, { dims, data }]) => [name, tensor(dims, Array.from(data as Float32Array | BigInt64Array, Number))] as const);
  await sessions.close();
  return Object.fromEntries(read);
}
