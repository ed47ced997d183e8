/** What holds of every composition: the laws of compose, and every accepted pair of the methods that come with Touchstone in a run of two steps. */
import { beforeAll, describe, expect, it } from "vitest";
import { lax } from "../../test/support/lax-task.js";
import { onDigits } from "../../test/support/on-digits.js";
import { snapshot } from "../../test/support/run-writer.js";
import { options, tablePolicy } from "../../test/support/tabular.js";
import { CapabilityError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import { type Note, note } from "../core/note.js";
import { TableEngine } from "../engine/table/engine.js";
import { clip } from "../losses/clip.js";
import { RunReader } from "../train/store/reader.js";
import { type TrainOptions, train } from "../train/train.js";
import { anyMethod, builtInMethods, withDefaults } from "./catalogue.js";
import type { Method, MethodModule } from "./contract.js";
import type { Credit } from "./credit.js";
import { defineMethod } from "./define.js";
import { clashes, pairsOf } from "./doc.js";
import { keepTokens } from "./keep.js";
import { compose, resolve, tableOf } from "./resolve.js";

const builtIn = await builtInMethods();
const methods = builtIn.map(withDefaults);
const fallback = methods[0] as Method;
const refused = clashes(methods, fallback);
const isRefused = (a: string, b: string): boolean => refused.some(({ pair }) => pair.includes(a) && pair.includes(b));

let model: string;
beforeAll(async () => {
  model = await tablePolicy({ order: 1, maxTokens: 8 });
});
const run = (more: Partial<TrainOptions>): TrainOptions =>
  options(model, { task: lax(), engine: new TableEngine(), steps: 2, problems: 2, group: 3, checkpoint: { every: 0 }, ...more });

describe("compose", () => {
  it.each(methods.map((method) => [method.name, method] as const))("of %s alone is that method, and so are its answers", (_, method) => {
    expect(compose(method)).toBe(method);
    expect(tableOf(resolve(compose(method), fallback))).toEqual(tableOf(resolve(method, fallback)));
  });

  it("does not depend on how its parts are bracketed", () => {
    const of = (name: string) => methods.find((method) => method.name === name) as Method;
    const [a, b, c] = [of("dapo"), of("rloo"), of("tis")];
    const table = (method: Method) => tableOf(resolve(method, fallback));
    expect(table(compose(compose(a, b), c))).toEqual(table(compose(a, compose(b, c))));
    expect(table(compose(compose(a, b), c))).toEqual(table(compose(a, b, c)));
  });

  it("refuses the same pairs whichever comes first", () => {
    expect(
      clashes([...methods.slice(1).reverse(), fallback], fallback)
        .map(({ pair }) => [...pair].sort().join("+"))
        .sort(),
    ).toEqual(refused.map(({ pair }) => [...pair].sort().join("+")).sort());
  });

  it("names both owners in every pair that it refuses", () => {
    expect(refused.length).toBeGreaterThan(0);
    for (const { pair } of refused) {
      const [a, b] = pair.map((name) => methods.find((method) => method.name === name) as Method);
      expect(() => resolve(compose(a as Method, b as Method), fallback)).toThrow(
        new RegExp(`^method (${pair.join("\\+")}|${[...pair].reverse().join("\\+")}): `),
      );
    }
  });
});

describe("two methods of one's own", () => {
  const owner = (name: string) => anyMethod(defineMethod({ name, make: () => ({ slots: { loss: { owns: clip({ clip_low: 0.1, clip_high: 0.1 }) } } }) }));
  const of = (...made: ReturnType<typeof owner>[]) => train(run({ methods: made, method: made.map(({ name }) => name) }));

  it("that own one slot are refused, both named", async () => {
    await expect(of(owner("first"), owner("second"))).rejects.toThrow("method first+second: both own the slot loss; leave one of the two out");
  });

  it("of which one forbids a slot that the other fills are refused, both named", async () => {
    const strict = anyMethod(defineMethod({ name: "strict", make: () => ({ forbids: ["loss"], slots: {} }) }));
    await expect(of(strict, owner("first"))).rejects.toThrow("method strict+first: strict forbids the slot loss, which first fills");
    await expect(of(owner("first"), strict)).rejects.toThrow("method strict+first: strict forbids the slot loss, which first fills");
  });

  it("of which one reads a note need its writer", async () => {
    const level = note<Json>("level") as Note<Json>;
    const reader = anyMethod(defineMethod({ name: "reader", make: () => ({ reads: [level], slots: {} }) }));
    const writer = anyMethod(defineMethod({ name: "writer", make: () => ({ writes: [level], slots: {} }) }));
    await expect(of(reader)).rejects.toThrow(
      'method reader: it reads the note "level", which no method of reader writes; compose it with a method that writes the note',
    );
    expect(await of(reader, writer)).toMatchObject({ reason: "done" });
  });
});

describe("neutral stages", () => {
  const stages = {
    setup: { run: async () => undefined },
    prepare: { run: (request) => request },
    enrich: { run: async (groups) => [...groups] },
    adjust: { run: (_, rewards) => rewards },
    keep: { run: (batch) => keepTokens(batch, () => true) },
    bounds: { run: (_, __, bounds) => bounds },
    terms: { run: () => [] },
    observe: { run: () => ({}) },
  } satisfies Method["slots"];
  const neutral = (name: string, slots: Method["slots"]) => anyMethod(defineMethod({ name, make: () => ({ slots }) }));
  const bytes = async (more: Partial<TrainOptions>) => {
    const { folder } = await train(run({ problems: 4, group: 4, minibatches: 2, ...more }));
    const { "run.json": _, ...rest } = snapshot(folder);
    expect(Object.keys(rest).some((path) => path.endsWith("policy/model.safetensors"))).toBe(true);
    return rest;
  };

  it("change no byte of a run but its name", async () => {
    const plain = await bytes({ method: "grpo" });
    expect(await bytes({ methods: [neutral("idle", stages)], method: ["grpo", "idle"] })).toEqual(plain);
  });

  it("of shaping add a column to the rollouts and change nothing else", async () => {
    const plain = await bytes({ method: "grpo" });
    const shape = { shape: { run: (_: unknown, credit: Credit) => credit } };
    const shaped = await bytes({ methods: [neutral("idle", shape)], method: ["grpo", "idle"] });
    const changed = Object.keys(plain).filter((path) => plain[path] !== shaped[path]);
    expect(changed.length).toBeGreaterThan(0);
    expect(changed.filter((path) => !path.startsWith("rollouts/"))).toEqual([]);
  });
});

describe("every accepted pair", () => {
  /** A run of two steps; a role that a method wants to be named is the policy as it starts. */
  const attempt = async (method: string[], roles: TrainOptions["roles"] = {}): Promise<void> => {
    try {
      const { folder } = await train(run({ minibatches: 2, method: method.map((name) => ({ name, options: onDigits[name] ?? {} })), roles }));
      const steps = [...RunReader.open(folder).events()].filter(({ kind }) => kind === "step");
      expect(
        steps.map(({ data }) => Number.isFinite((data.metrics as { loss: number }).loss)),
        method.join("+"),
      ).toEqual([true, true]);
    } catch (error) {
      const role = error instanceof CapabilityError ? /a role named (\w+)/.exec(error.message)?.[1] : undefined;
      if (role === undefined || Object.hasOwn(roles, role)) throw error;
      await attempt(method, { ...roles, [role]: { model } });
    }
  };

  it.each(builtIn.slice(0, -1).map(({ name }) => name))("of %s and one after it in the list runs two steps", async (name) => {
    for (const [a, b] of pairsOf(builtIn.map((method) => method.name))) if (a === name && !isRefused(a, b)) await attempt([a, b]);
  });
});

it("a module that makes a method of another name, or an answer that is none, is refused before anything starts", async () => {
  const broken = (slots: object): MethodModule<Record<string, never>, null> => defineMethod({ name: "broken", make: () => ({ slots }) });
  const cases: readonly [object, string][] = [
    [{ credits: { prefers: 1 } }, 'method broken: there is no slot "credits"; did you mean "credit"?'],
    [{ loss: {} }, "method broken: its slot loss has 0 answers; give it one, under `prefers` or `owns`"],
    [{ keep: { stage: 1 } }, "method broken: its stage keep has no `run`; write keep: { run: … }"],
  ];
  for (const [slots, sentence] of cases) {
    await expect(train(run({ methods: [anyMethod(broken(slots))], method: "broken" }))).rejects.toThrow(sentence);
  }
});
