/** A method from its module and options, and its loss on a small batch, through the slots that a run goes through. */
import type { Json } from "../../src/core/json.js";
import type { Batch } from "../../src/core/trajectory.js";
import { readStatistics } from "../../src/losses/contract.js";
import { anyMethod } from "../../src/methods/catalogue.js";
import { Cells } from "../../src/methods/cell.js";
import { type Coefficients, coefficientsOf, lossOf } from "../../src/methods/coefficients.js";
import type { Lab, Method, MethodModule, Settings } from "../../src/methods/contract.js";
import { rowsOf } from "../../src/methods/credit.js";
import { grpo } from "../../src/methods/grpo/grpo.js";
import { resolve } from "../../src/methods/resolve.js";
import { scores } from "./batch.js";

export const settings: Settings = { group: 8, problems: 4, temperature: 1, maxTokens: 16, stop: { ids: [0] } };

export function made<O, S extends Json>(module: MethodModule<O, S>, options: object = {}, cells = new Cells()): Method {
  return anyMethod(module).make(options, cells.cell.bind(cells), `method ${module.name}`).method;
}

/** The method with GRPO's answers where it has none. */
export const resolved = (method: Method) => resolve(method, made(grpo));

export interface Ran {
  readonly c: Coefficients;
  readonly value: number;
  /** dloss / dlogp, a row. */
  readonly d: readonly (readonly number[])[];
  readonly statistics: { readonly [name: string]: number };
}

/** The loss of a whole batch at the log-probs `now`. [rows][tokens] */
export async function lossAt(method: Method, batch: Batch, now: readonly (readonly number[])[], lab: Partial<Lab> = {}): Promise<Ran> {
  const c = await coefficientsOf(resolved(method), batch, { settings, ...lab } as Lab);
  const result = lossOf(
    c,
    rowsOf(batch).map((_, i) => i),
    now.map((logp) => scores(logp)),
  );
  return { c, value: result.value, d: result.derivatives.map(({ dLogp }) => [...(dLogp ?? [])]), statistics: readStatistics(result.statistics) };
}

/** Log-probs of the reference, for a lab whose `score` is asked for these alone. */
export const referenceOf = (logp: readonly (readonly number[])[]): Partial<Lab> => ({ score: async () => logp.map((row) => scores(row)) });
