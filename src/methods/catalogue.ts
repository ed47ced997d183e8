/** The methods that can be named in a configuration. */
import { ConfigError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import { parseOptions, suggestion } from "../core/options.js";
import type { Cell, Method, MethodModule } from "./contract.js";
import { grpo } from "./grpo/grpo.js";

/** A method module with its options not yet read. */
export interface AnyMethod {
  readonly name: string;
  readonly paper: string;
  /** Reads the options (throws ConfigError) and gives them back with their defaults, and the method made of them. */
  make(options: unknown, cell: (name: string, initial: Json) => Cell<Json>, place: string): { readonly options: Json; readonly method: Method };
}

/** Hides the types of a module's options and state. */
export function anyMethod<O, S extends Json>(module: MethodModule<O, S>): AnyMethod {
  const { name, paper } = module;
  return {
    name,
    paper,
    make(options, cell, place) {
      const read = parseOptions(module.options, options, place);
      return { options: JSON.parse(JSON.stringify(read)) as Json, method: module.make(read, cell(name, module.initial) as Cell<S>) };
    },
  };
}

const methods: readonly AnyMethod[] = [anyMethod(grpo)];

/** Names of all methods. */
export const methodNames: readonly string[] = methods.map(({ name }) => name);

/** A method by name; throws ConfigError for an unknown one. */
export function namedMethod(name: string, place = "method"): AnyMethod {
  const found = methods.find((method) => method.name === name);
  if (found) return found;
  throw new ConfigError({ place, cause: `there is no method "${name}"`, mend: suggestion(name, methodNames) });
}
