/**
 * Muon (Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks") for the matrices of the layers: momentum
 * whose singular values are pushed towards 1. With B ← μ B + (1 − μ) G and U = (1 − μ) G + μ B (Nesterov; else B),
 * X ← U / max(‖U‖, 1e-7), five times X ← a X + (b X Xᵀ + c (X Xᵀ)²) X, and W ← W (1 − rate·decay) − rate · scale · X.
 */
import { ArgumentError } from "../../core/errors.js";
import type { UpdateRule } from "../contract.js";
import { Graph, type Value } from "./graph.js";
import { add, matmul, mul } from "./ops.js";
import type { Parameter } from "./params.js";
import type { Sessions } from "./sessions.js";
import type { Range } from "./update.js";

export type MuonRule = Extract<UpdateRule, { rule: "muon" }>;

/** X of U / ‖U‖, [rows][columns], whose numbers it may overwrite. */
export type Orthogonalise = (matrix: Float32Array, rows: number, columns: number) => Promise<Float32Array>;

/** Whether a parameter is a matrix of a layer; embedding, head, norms, biases and value head are not. */
export const isHidden = ({ shape, parts }: Pick<Parameter, "shape" | "parts">): boolean =>
  shape.length === 2 && parts.every(({ name }) => /(^|\.)layers\.\d+\./.test(name));

/** The five steps by products of the runtime. Bits depend on its number of threads. */
export const orthogonaliser =
  (sessions: Sessions): Orthogonalise =>
  async (matrix, rows, columns) => {
    const tall = rows > columns;
    const feeds = { x: sessions.float(matrix, [rows, columns]) };
    const { y } = await sessions.run(`muon ${tall ? "tall" : "wide"}`, () => iterations(tall), feeds);
    return y.data as Float32Array;
  };

/** Coefficients of the quintic, which takes singular values from 0.0016 on into [0.68, 1.21] in five steps. */
const [a, b, c] = [3.4445, -4.775, 2.0315];

/** A tall matrix is multiplied from the right, which is the same as turning it over before and after. */
function iterations(tall: boolean): Uint8Array {
  const g = new Graph();
  let x = g.input("x", "float32", ["R", "C"]);
  const times = (factor: number, value: Value): Value => mul(g, value, g.float(factor));
  for (let i = 0; i < 5; i++) {
    const square = tall ? matmul(g, x, x, { transA: 1 }) : matmul(g, x, x, { transB: 1 });
    const polynomial = add(g, times(b, square), times(c, g.apply("MatMul", [square, square])));
    x = add(g, times(a, x), g.apply("MatMul", tall ? [x, polynomial] : [polynomial, x]));
  }
  g.output("y", x, "float32", ["R", "C"]);
  return g.build();
}

/** Makes the step of one matrix, whose momentum changes too; `clip` multiplies the gradient. */
export async function muonStep(
  parameter: Parameter,
  momentum: Float32Array,
  { rate, decay }: Pick<Range, "rate" | "decay">,
  { momentum: beta = muonDefaults.momentum, nesterov = muonDefaults.nesterov, adjust = muonDefaults.adjust }: MuonRule,
  clip: number,
  orthogonalise: Orthogonalise | undefined,
): Promise<void> {
  if (orthogonalise === undefined)
    throw new ArgumentError({ place: "step muon", cause: "there is no runtime for its products", mend: "give one to the optimizer" });
  const { data, grad } = parameter;
  const [rows, columns] = parameter.shape as readonly [number, number];
  const update = new Float32Array(data.length);
  let squares = 0;
  for (let i = 0; i < update.length; i++) {
    const g = grad === undefined ? 0 : (1 - beta) * clip * (grad[i] as number);
    const m = beta * (momentum[i] as number) + g;
    momentum[i] = Math.abs(m) < smallest ? 0 : m;
    const u = nesterov ? g + beta * (momentum[i] as number) : (momentum[i] as number);
    update[i] = u;
    squares += u * u;
  }
  const norm = Math.max(Math.sqrt(squares), 1e-7);
  for (let i = 0; i < update.length; i++) update[i] = (update[i] as number) / norm;
  const x = await orthogonalise(update, rows, columns);
  const size = rate * (adjust === "original" ? Math.sqrt(Math.max(1, rows / columns)) : 0.2 * Math.sqrt(Math.max(rows, columns)));
  const kept = 1 - rate * decay;
  if (rate !== 0) for (let i = 0; i < data.length; i++) data[i] = (data[i] as number) * kept - size * (x[i] as number);
}

/** What a rule that does not say otherwise has. `match_rms_adamw`: entries of a step are about as large as AdamW's (0.2), so that both take one rate (Liu et al. 2025, arXiv 2502.16982). */
export const muonDefaults = { momentum: 0.95, nesterov: true, adjust: "match_rms_adamw" } as const;

/** The smallest normal float32: numbers below it slow a processor down. */
const smallest = 2 ** -126;
