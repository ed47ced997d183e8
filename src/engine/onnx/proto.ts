/** The part of the ONNX file format that we write, through protobufjs. Field numbers are those of onnx.proto3 (ONNX 1.16, IR version 10). */
import protobuf from "protobufjs";

const schema = protobuf.parse(
  `
syntax = "proto3";
message AttributeProto { string name = 1; float f = 2; int64 i = 3; bytes s = 4; repeated float floats = 7; repeated int64 ints = 8; int32 type = 20; }
message NodeProto { repeated string input = 1; repeated string output = 2; string name = 3; string op_type = 4; repeated AttributeProto attribute = 5; string domain = 7; }
message StringStringEntryProto { string key = 1; string value = 2; }
message TensorProto { repeated int64 dims = 1; int32 data_type = 2; string name = 8; bytes raw_data = 9; repeated StringStringEntryProto external_data = 13; int32 data_location = 14; }
message Dimension { oneof value { int64 dim_value = 1; string dim_param = 2; } }
message TensorShapeProto { repeated Dimension dim = 1; }
message TensorType { int32 elem_type = 1; TensorShapeProto shape = 2; }
message TypeProto { TensorType tensor_type = 1; }
message ValueInfoProto { string name = 1; TypeProto type = 2; }
message GraphProto { repeated NodeProto node = 1; string name = 2; repeated TensorProto initializer = 5; repeated ValueInfoProto input = 11; repeated ValueInfoProto output = 12; }
message OperatorSetIdProto { string domain = 1; int64 version = 2; }
message ModelProto { int64 ir_version = 1; string producer_name = 2; GraphProto graph = 7; repeated OperatorSetIdProto opset_import = 8; }
`,
  { keepCase: true },
).root;
/** What a file is; exported so that tests read back what was written. */
export const ModelProto = schema.lookupType("ModelProto");

/** Element types with their numbers in TensorProto.DataType. */
export const elementTypes = { float32: 1, int64: 7, bool: 9, float64: 11 } as const;
export type ElementType = keyof typeof elementTypes;

/** A size that is fixed, or a symbol that each run gives a value. */
export type Dim = number | string;

/** An attribute: a whole number, several, a text, or a float wrapped so that 1 and 1.0 differ. */
export type Attribute = number | readonly number[] | string | { readonly float: number };

export interface NodeSpec {
  readonly op: string;
  readonly domain: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attributes: { readonly [name: string]: Attribute };
}

export interface ValueSpec {
  readonly name: string;
  readonly type: ElementType;
  readonly dims: readonly Dim[];
}

export interface ConstantSpec extends ValueSpec {
  readonly dims: readonly number[];
  readonly data: Float32Array | Float64Array | BigInt64Array;
}

/** A constant whose numbers lie in a file beside the model's. */
export interface ExternalSpec extends ValueSpec {
  readonly dims: readonly number[];
  /** The file's name. */
  readonly location: string;
  /** Bytes from the file's start, and how many. */
  readonly offset: number;
  readonly length: number;
}

function attribute(name: string, value: Attribute): object {
  if (typeof value === "number") return { name, i: value, type: 2 };
  if (typeof value === "string") return { name, s: new TextEncoder().encode(value), type: 3 };
  if ("float" in value) return { name, f: value.float, type: 1 };
  return { name, ints: value, type: 7 };
}

function valueInfo({ name, type, dims }: ValueSpec): object {
  const dim = dims.map((d) => (typeof d === "number" ? { dim_value: d } : { dim_param: d }));
  return { name, type: { tensor_type: { elem_type: elementTypes[type], shape: { dim } } } };
}

/** The bytes of an ONNX model of one graph. */
export function encodeModel(graph: {
  readonly nodes: readonly NodeSpec[];
  readonly constants: readonly ConstantSpec[];
  readonly external?: readonly ExternalSpec[];
  readonly inputs: readonly ValueSpec[];
  readonly outputs: readonly ValueSpec[];
}): Uint8Array {
  const model = {
    ir_version: 10,
    producer_name: "touchstone",
    opset_import: [
      { domain: "", version: 20 },
      { domain: "com.microsoft", version: 1 },
    ],
    graph: {
      name: "g",
      node: graph.nodes.map((n) => ({
        input: n.inputs,
        output: n.outputs,
        op_type: n.op,
        domain: n.domain,
        attribute: Object.entries(n.attributes).map(([name, value]) => attribute(name, value)),
      })),
      initializer: [
        ...graph.constants.map((c) => ({
          name: c.name,
          dims: c.dims,
          data_type: elementTypes[c.type],
          raw_data: new Uint8Array(c.data.buffer, c.data.byteOffset, c.data.byteLength),
        })),
        ...(graph.external ?? []).map(({ name, dims, type, ...where }) => ({
          name,
          dims,
          data_type: elementTypes[type],
          data_location: 1,
          external_data: Object.entries(where).map(([key, value]) => ({ key, value: String(value) })),
        })),
      ],
      input: graph.inputs.map(valueInfo),
      output: graph.outputs.map(valueInfo),
    },
  };
  return ModelProto.encode(ModelProto.fromObject(model)).finish();
}
