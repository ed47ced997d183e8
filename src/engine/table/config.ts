import { z } from "zod";
import { MemoryError, ModelError } from "../../core/errors.js";
import type { Json } from "../../core/json.js";

const shared = {
  vocabulary: z.int().min(2),
  /** Standard deviation of random initial weights; 0 starts from the uniform distribution. */
  init: z.number().min(0).default(0.1),
  /** The longest context plus response, in tokens. */
  maxTokens: z.int().min(2).default(65536),
};

/** Softmax table: the logits are looked up by a state. */
const table = z.strictObject({
  kind: z.literal("table"),
  ...shared,
  /** How many last tokens form the state; 0 is a bandit. */
  order: z.int().min(0).default(1),
  /** Also tell positions apart: the first `positions` − 1 of the sequence, and all later ones together. */
  positions: z.int().min(1).default(1),
  /** Hash the states into this many rows instead of one row a state. */
  buckets: z.int().min(1).optional(),
});

/** Linear softmax over the one-hot vectors of the last `window` tokens. */
const window = z.strictObject({ kind: z.literal("linear"), ...shared, features: z.literal("onehot-window"), window: z.int().min(1).default(1) });

/** Linear softmax over input rows of `width` numbers that the context brings; a position without a row has features 0. */
const rows = z.strictObject({ kind: z.literal("linear"), ...shared, features: z.literal("rows"), width: z.int().min(1) });

const schema = z.discriminatedUnion("kind", [table, z.discriminatedUnion("features", [window, rows])]);

/** Configuration of a model of the table engine, as `ModelSource` of kind `config` carries it. */
export type TableConfig = z.infer<typeof schema>;
/** The same with defaults left out. */
export type TableConfigInput = z.input<typeof schema>;

const mostWeights = 2 ** 26;

/** Reads a configuration and fills in defaults; throws a ModelError for what is wrong and a MemoryError for tables that are too large. */
export function parseConfig(json: Json, place: string): TableConfig {
  const result = schema.safeParse(json);
  if (!result.success) {
    const [{ path, message }] = result.error.issues;
    throw new ModelError({
      place,
      cause: `${path.length > 0 ? `${path.join(".")}: ` : ""}${message}`,
      mend: "see src/engine/table/config.ts for the keys of a table or linear model",
    });
  }
  const config = result.data;
  const weights = widthOf(config) * config.vocabulary;
  if (weights > mostWeights) {
    throw new MemoryError({
      place,
      cause: `${widthOf(config)} feature rows of ${config.vocabulary} logits make ${weights} weights, more than ${mostWeights}`,
      mend: "lower order or positions, or hash the states with buckets",
      data: { weights, most: mostWeights },
    });
  }
  return config;
}

/** Number of features: rows of the weight matrix. */
export function widthOf(config: TableConfig): number {
  if (config.kind === "table") return config.buckets ?? (config.vocabulary + 1) ** config.order * config.positions;
  return config.features === "rows" ? config.width : config.window * config.vocabulary;
}
