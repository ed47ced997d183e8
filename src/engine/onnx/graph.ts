/**
 * A graph builder with reverse-mode differentiation. A graph is a list of ONNX nodes; `gradient` walks it backwards
 * and asks the rule table (ops.ts) for each node's vector-Jacobian product, which is emitted as further nodes.
 */

import { rules } from "./ops.js";
import { type Attribute, type ConstantSpec, type Dim, type ElementType, encodeModel, type NodeSpec, type ValueSpec } from "./proto.js";

/** A tensor in the graph, by its name. */
export type Value = string & { readonly value: unique symbol };

export class Graph {
  readonly nodes: NodeSpec[] = [];
  readonly constants: ConstantSpec[] = [];
  readonly inputs: ValueSpec[] = [];
  readonly outputs: (ValueSpec & { readonly value: Value })[] = [];
  /** For each reshape's output the shape that leads back: a backward graph must not need the input only for its shape. */
  readonly shapesBefore = new Map<Value, Value>();
  private readonly shared = new Map<string, Value>();
  private readonly kept = new Map<Value, ValueSpec>();
  private count = 0;

  /** Declares an input of the graph. */
  input(name: string, type: ElementType, dims: readonly Dim[]): Value {
    this.inputs.push({ name, type, dims });
    return name as Value;
  }

  /** Declares an output under a name of its own. */
  output(name: string, value: Value, type: ElementType, dims: readonly Dim[]): void {
    this.outputs.push({ name, type, dims, value });
  }

  /** Appends a node with one output. */
  apply(op: string, inputs: readonly Value[], attributes: { readonly [name: string]: Attribute } = {}): Value {
    return this.applyMany(op, inputs, 1, attributes)[0] as Value;
  }

  /** Appends a node with several outputs. */
  applyMany(op: string, inputs: readonly Value[], outputs: number, attributes: { readonly [name: string]: Attribute } = {}): Value[] {
    const names = Array.from({ length: outputs }, () => `t${this.count++}` as Value);
    this.nodes.push({ op, domain: microsoft.has(op) ? "com.microsoft" : "", inputs, outputs: names, attributes });
    return names;
  }

  /** A constant of whole numbers (shapes, axes), shared by value. */
  ints(values: readonly number[]): Value {
    return this.constant(`i${values.join(",")}`, "int64", [values.length], () => BigInt64Array.from(values, BigInt));
  }

  /** A whole number of rank 0. */
  int(value: number): Value {
    return this.constant(`z${value}`, "int64", [], () => BigInt64Array.of(BigInt(value)));
  }

  /** A float32 scalar of rank 0, shared by value. */
  float(value: number): Value {
    return this.constant(`f${value}`, "float32", [], () => Float32Array.of(value));
  }

  /** A float64 scalar of rank 0, shared by value. */
  double(value: number): Value {
    return this.constant(`d${value}`, "float64", [], () => Float64Array.of(value));
  }

  private constant(key: string, type: ElementType, dims: readonly number[], data: () => ConstantSpec["data"]): Value {
    const found = this.shared.get(key);
    if (found) return found;
    const name = `c${this.count++}` as Value;
    this.constants.push({ name, type, dims, data: data() });
    this.shared.set(key, name);
    return name;
  }

  /**
   * Supplies an intermediate value from outside under `name`: what computes it is left out of the built graph unless
   * something else needs it. This is how a backward graph takes kept activations instead of computing them again.
   */
  supply(value: Value, name: string, dims: readonly Dim[]): void {
    this.kept.set(value, { name, type: "float32", dims });
  }

  /**
   * Emits the nodes of the gradient of ⟨seed, output⟩ summed over `seeds`, with respect to `wrt`.
   * A value that no seed depends on has no entry.
   */
  gradient(seeds: readonly (readonly [output: Value, seed: Value])[], wrt: readonly Value[]): Map<Value, Value> {
    const needed = new Set<Value>(wrt);
    const tape = [...this.nodes];
    for (const node of tape) if (node.inputs.some((i) => needed.has(i as Value))) for (const o of node.outputs) needed.add(o as Value);
    const gradients = new Map<Value, Value>();
    const add = (value: Value, part: Value) => gradients.set(value, gradients.has(value) ? this.apply("Add", [gradients.get(value) as Value, part]) : part);
    for (const [output, seed] of seeds) add(output, seed);
    for (const node of tape.reverse()) {
      const incoming = node.outputs.map((o) => gradients.get(o as Value));
      if (incoming.every((d) => d === undefined) || !node.inputs.some((i) => needed.has(i as Value))) continue;
      const rule = rules[node.op]?.gradient;
      if (!rule) throw new Error(`the operator ${node.op} has no rule for its gradient; add one line to the table in ops.ts`);
      const wants = node.inputs.map((i) => needed.has(i as Value));
      const parts = rule(this, node as Node, incoming, wants);
      parts.forEach((part, i) => {
        if (part && wants[i]) add(node.inputs[i] as Value, part);
      });
    }
    return new Map(wrt.flatMap((w) => (gradients.has(w) ? [[w, gradients.get(w) as Value] as const] : [])));
  }

  /** Only what the outputs need, in order, with supplied values as inputs. */
  pruned(): { nodes: NodeSpec[]; constants: ConstantSpec[]; inputs: ValueSpec[]; outputs: ValueSpec[] } {
    const supplies = new Map<string, string>([...this.kept].map(([value, spec]) => [value, spec.name]));
    const renamed = new Map<string, string>(supplies);
    const copies: NodeSpec[] = [];
    for (const { name, value } of this.outputs) {
      // A value that no node computes, is supplied, or has another output's name already needs a copy; any other just takes the name.
      if (renamed.has(value) || !this.nodes.some((n) => n.outputs.includes(value)))
        copies.push({ op: "Identity", domain: "", inputs: [renamed.get(value) ?? value], outputs: [name], attributes: {} });
      else renamed.set(value, name);
    }
    const needed = new Set<string>(this.outputs.map((o) => o.value));
    const nodes: NodeSpec[] = [];
    for (const node of [...this.nodes].reverse()) {
      if (!node.outputs.some((o) => needed.has(o) && !supplies.has(o))) continue;
      for (const i of node.inputs) needed.add(i);
      nodes.push({
        ...node,
        inputs: node.inputs.map((i) => renamed.get(i) ?? i),
        outputs: node.outputs.map((o) => (supplies.has(o) ? o : (renamed.get(o) ?? o))),
      });
    }
    const supplied = [...this.kept].flatMap(([value, spec]) => (needed.has(value) ? [spec] : []));
    return {
      nodes: [...nodes.reverse(), ...copies],
      constants: this.constants.filter((c) => needed.has(c.name)),
      inputs: [...this.inputs.filter((i) => needed.has(i.name)), ...supplied],
      outputs: this.outputs,
    };
  }

  /** The ONNX bytes of the pruned graph. */
  build(): Uint8Array {
    return encodeModel(this.pruned());
  }
}

/** A node whose names are values of the graph. */
export interface Node extends NodeSpec {
  readonly inputs: readonly Value[];
  readonly outputs: readonly Value[];
}

/** Operators of ONNX Runtime's own domain. */
const microsoft = new Set(["FusedMatMul", "RotaryEmbedding", "QuickGelu"]);
