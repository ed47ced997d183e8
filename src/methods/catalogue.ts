/** The methods that can be named in a configuration: those that come with Touchstone, and modules of one's own by path. */
import type { ZodType } from "zod";
import { ConfigError, TouchstoneError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import { describeThrown, isModulePath, loadModule, moduleUrl } from "../core/load.js";
import { parseOptions, suggestion } from "../core/options.js";
import { cispo } from "./cispo/cispo.js";
import type { Cell, Method, MethodModule, One, OneSlot } from "./contract.js";
import { dapo } from "./dapo/dapo.js";
import { checkMade, isMethodModule, whatLacks } from "./define.js";
import { drGrpo } from "./dr-grpo/dr-grpo.js";
import { entropyBonus } from "./entropy-bonus/entropy-bonus.js";
import { gmpo } from "./gmpo/gmpo.js";
import { gpg } from "./gpg/gpg.js";
import { grpo } from "./grpo/grpo.js";
import { gspo } from "./gspo/gspo.js";
import { opd } from "./opd/opd.js";
import { ppo } from "./ppo/ppo.js";
import { reinforce } from "./reinforce/reinforce.js";
import { reinforcePp } from "./reinforce-pp/reinforce-pp.js";
import { rloo } from "./rloo/rloo.js";
import { sapo } from "./sapo/sapo.js";
import { tis } from "./tis/tis.js";

/** A method module with its options not yet read. */
export interface AnyMethod {
  readonly name: string;
  readonly paper: string;
  readonly options: ZodType;
  /** Reads the options (throws ConfigError) and gives them back with their defaults, and the method made of them. */
  make(options: unknown, cell: (name: string, initial: Json) => Cell<Json>, place: string): { readonly options: Json; readonly method: Method };
}

/** Hides the types of a module's options and state. */
export function anyMethod<O, S extends Json>(module: MethodModule<O, S>): AnyMethod {
  const { name, paper } = module;
  return {
    name,
    paper,
    options: module.options,
    make(options, cell, place) {
      const read = parseOptions(module.options, options, place);
      const method = made(() => module.make(read, cell(name, module.initial) as Cell<S>), place);
      checkMade(name, method, place);
      return { options: JSON.parse(JSON.stringify(read)) as Json, method: withSet(method, decided(module, read)) };
    },
  };
}

function made(make: () => Method, place: string): Method {
  try {
    return make();
  } catch (error) {
    if (error instanceof TouchstoneError) throw error;
    throw new ConfigError(
      { place, cause: `it throws when it is made (${describeThrown(error)})`, mend: "correct the module, or give other options" },
      { cause: error },
    );
  }
}

/** Slots that the user decided: an option of theirs has not its default. What a run records has all options, so a default that was written counts as none. */
function decided<O, S extends Json>({ decides = {}, options }: MethodModule<O, S>, read: O): Set<OneSlot> {
  const plain = options.safeParse({});
  const changed = (key: keyof O): boolean => JSON.stringify(read[key]) !== JSON.stringify(plain.success ? plain.data[key] : undefined);
  return new Set((Object.entries(decides) as [keyof O, OneSlot][]).flatMap(([option, slot]) => (changed(option) ? [slot] : [])));
}

function withSet(method: Method, slots: ReadonlySet<OneSlot>): Method {
  const answers = [...slots].flatMap((slot) => {
    const one = method.slots[slot] as One<unknown> | undefined;
    if (one === undefined || "sets" in one) return [];
    const { about, check } = one;
    return [[slot, { sets: "owns" in one ? one.owns : one.prefers, ...(about === undefined ? {} : { about }), ...(check === undefined ? {} : { check }) }]];
  });
  return answers.length === 0 ? method : { ...method, slots: { ...method.slots, ...Object.fromEntries(answers) } };
}

/** All methods that come with Touchstone, in the order of the documentation: families first, what is made for composition last. */
export const builtIn: readonly AnyMethod[] = [
  anyMethod(grpo),
  anyMethod(drGrpo),
  anyMethod(dapo),
  anyMethod(gspo),
  anyMethod(gmpo),
  anyMethod(cispo),
  anyMethod(sapo),
  anyMethod(reinforce),
  anyMethod(rloo),
  anyMethod(reinforcePp),
  anyMethod(gpg),
  anyMethod(ppo),
  anyMethod(opd),
  anyMethod(tis),
  anyMethod(entropyBonus),
];

/** Names of all methods. */
export const methodNames: readonly string[] = builtIn.map(({ name }) => name);

/** A method by name; throws ConfigError for an unknown one. */
export function namedMethod(name: string, place = "method"): AnyMethod {
  const found = builtIn.find((method) => method.name === name);
  if (found) return found;
  throw new ConfigError({
    place,
    cause: `there is no method "${name}"`,
    mend: `${suggestion(name, methodNames)}, or give the path of a module that exports one`,
  });
}

/** A method by name, or the default export of a module by path. `folder`: where a relative path begins. */
export async function methodFrom(name: string, folder = ".", place = "method"): Promise<AnyMethod> {
  if (builtIn.some((method) => method.name === name) || !isModulePath(name)) return namedMethod(name, place);
  const exported = (await loadModule(moduleUrl(name, folder, place))).default;
  const here = `${place} ${name}`;
  if (!isMethodModule(exported)) throw new ConfigError({ place: here, cause: whatLacks(exported), mend: "write `export default defineMethod({ … })`" });
  if (methodNames.includes(exported.name)) {
    throw new ConfigError({ place: here, cause: `it is named ${exported.name}, as a method that comes with Touchstone`, mend: "give it a name of its own" });
  }
  return anyMethod(exported);
}
