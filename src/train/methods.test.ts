import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { lax } from "../../test/support/lax-task.js";
import { snapshot } from "../../test/support/run-writer.js";
import { options, scratch, tablePolicy } from "../../test/support/tabular.js";
import { z } from "../index.js";
import { defineMethod } from "../methods/define.js";
import { readConfigFile } from "./config-file.js";
import { dryRun } from "./dry-run.js";
import { usesOf, withMethodPaths } from "./methods.js";
import { RunReader } from "./store/reader.js";
import { resume, type TrainOptions, train } from "./train.js";

let model: string;
beforeAll(async () => {
  model = await tablePolicy();
});
const folder = scratch();
function file(name: string, text: string): string {
  const path = join(folder, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  return path;
}
const scaled = (name: string, factor = 0.5): string => `
import { defineMethod, z } from "touchstone-rl";
export default defineMethod({
  name: "${name}",
  options: z.strictObject({ factor: z.number().default(${factor}).describe("What advantages are multiplied by.") }),
  make: ({ factor }) => ({ slots: { shape: { level: "trajectory", run: (_, credit) => credit.scaled("trajectory", credit.trajectory.map(() => factor)) } } }),
});
`;
const run = (more: Partial<TrainOptions>) => options(model, { task: lax(), problems: 12, group: 8, steps: 2, ...more });

describe("the methods that a configuration names", () => {
  it("stand with a + between them, or in a list, whose entries are one method each", () => {
    const plain = (...names: string[]) => names.map((name) => ({ name, options: {} }));
    expect(usesOf("grpo")).toEqual(plain("grpo"));
    expect(usesOf("dapo + rloo")).toEqual(plain("dapo", "rloo"));
    expect(usesOf(["dapo", "./a+b.ts"])).toEqual(plain("dapo", "./a+b.ts"));
    expect(usesOf({ name: "grpo", options: { std: "none" } })).toEqual([{ name: "grpo", options: { std: "none" } }]);
  });

  it("have their options under their names when there are several, a file's under its own", () => {
    expect(usesOf({ name: "dapo+./my/scaled.ts", options: { dapo: { clip_high: 0.3 }, scaled: { factor: 2 } } })).toEqual([
      { name: "dapo", options: { clip_high: 0.3 } },
      { name: "./my/scaled.ts", options: { factor: 2 } },
    ]);
    const of = (options: object) => () => usesOf({ name: "dapo+rloo", options: options as never });
    expect(of({ clip_high: 0.3 })).toThrow(
      'method dapo+rloo, option clip_high: of several methods, each has its options under its own name; write {"dapo": {"clip_high": …}}, where the names are dapo, rloo',
    );
    expect(of({ dappo: {} })).toThrow('did you mean "dapo"?');
    expect(of({ dapo: 1 })).toThrow("method dapo+rloo, option dapo: it is no object; give the options of dapo as an object");
    expect(() => usesOf("dapo+")).toThrow('method: got "dapo+", with nothing beside a +');
  });

  it("have paths as seen from the folder of their file", async () => {
    const path = (text: string) => `/at/${text}`;
    expect(withMethodPaths("dapo+mine.ts", path)).toBe("dapo+/at/mine.ts");
    expect(withMethodPaths("dapo+./mine.ts", path)).toBe("dapo+/at/./mine.ts");
    expect(withMethodPaths(["dapo", { name: "./mine.ts", options: {} }], path)).toEqual(["dapo", { name: "/at/./mine.ts", options: {} }]);
    file("configs/scaled.ts", scaled("scaled"));
    const config = await readConfigFile(file("configs/run.yaml", "method: grpo+./scaled.ts\nstages: [{ method: ./scaled.ts }]\n"));
    expect(config).toEqual({ method: `grpo+${join(folder, "configs/scaled.ts")}`, stages: [{ method: join(folder, "configs/scaled.ts") }] });
  });
});

describe("a composition", () => {
  it("is resolved in the dry run and in run.json, with who gave way to whom", async () => {
    const composed = run({ method: "dapo+rloo" });
    const { method, config } = await dryRun(composed);
    const rowOf = (slot: string) => method.find((row) => row.slot === slot);
    expect(rowOf("loss")).toMatchObject({ from: "rloo", how: "prefers", over: ["dapo"] });
    expect(rowOf("allocate")).toMatchObject({ from: "dapo", how: "prefers", over: [] });
    expect(rowOf("select")).toMatchObject({ from: "grpo", how: "default" });
    expect(config.method).toMatchObject([{ name: "dapo", options: { clip_high: 0.28 } }, { name: "rloo" }]);
    await train(composed);
    expect(RunReader.open(composed.out).run.method).toEqual(JSON.parse(JSON.stringify(method)));
  });

  it("gives an option that was changed the slot it decides, over a method on its right", async () => {
    const of = async (clip_high: number) =>
      (await dryRun(run({ method: [{ name: "dapo", options: { clip_high } }, "gspo"] }))).method.find(({ slot }) => slot === "loss");
    expect(await of(0.28)).toMatchObject({ from: "gspo", how: "prefers", over: ["dapo"] });
    expect(await of(0.3)).toMatchObject({ from: "dapo", how: "sets", over: ["gspo"], about: "clip(ratio, 1 - 0.2, 1 + 0.3)" });
    const both = [
      { name: "dapo", options: { clip_high: 0.3 } },
      { name: "gspo", options: { clip_high: 1 } },
    ];
    await expect(train(run({ method: both }))).rejects.toThrow("method dapo+gspo: both set the slot loss; leave one of the two out");
  });

  it("resumes as it began, whatever its options", async () => {
    const whole = run({ method: [{ name: "dapo", options: { clip_high: 0.3 } }, "rloo"], steps: 3, checkpoint: { every: 1, keep_last: 9 } });
    await train(whole);
    const controller = new AbortController();
    const cut = {
      ...whole,
      out: join(scratch(), "run"),
      signal: controller.signal,
      onProgress: (p: { kind: string }) => p.kind === "step" && controller.abort(),
    };
    expect(await train(cut)).toMatchObject({ reason: "interrupted", steps: 1 });
    await resume(cut.out, { task: lax() });
    const [is, wanted] = [snapshot(cut.out), snapshot(whole.out)];
    expect(Object.keys(wanted).filter((path) => path !== "run.json" && is[path] !== wanted[path])).toEqual([]);
  });
});

describe("a method of the program", () => {
  const halved = defineMethod({
    name: "halved",
    options: z.strictObject({ factor: z.number().default(0.5) }),
    make: ({ factor }) => ({
      slots: {
        shape: {
          level: "trajectory",
          run: (_, credit) =>
            credit.scaled(
              "trajectory",
              credit.trajectory.map(() => factor),
            ),
        },
      },
    }),
  });
  const recorded = ({ out }: TrainOptions) => (JSON.parse(readFileSync(join(out, "run.json"), "utf8")) as { config: { method: unknown } }).config.method;

  it("is named by itself, alone or beside others, or handed over and named; a resume gets it again", async () => {
    for (const [method, entries] of [
      [halved, { name: "halved", options: { factor: 0.5 } }],
      [
        ["rloo", halved],
        [{ name: "rloo" }, { name: "halved", options: { factor: 0.5 } }],
      ],
    ] as const) {
      const one = run({ steps: 1, method });
      await train(one);
      expect(recorded(one)).toMatchObject(entries);
      expect(await resume(one.out, { task: lax(), methods: [halved] })).toMatchObject({ reason: "done" });
    }
    const named = run({ steps: 1, methods: [halved], method: { name: "halved", options: { factor: 0.25 } } });
    await train(named);
    expect(recorded(named)).toMatchObject({ name: "halved", options: { factor: 0.25 } });
  });

  it("is refused where it is none", async () => {
    await expect(train(run({ methods: [{ name: "x" }] as never }))).rejects.toThrow(
      "methods[0]: it is no method; give what defineMethod makes; a method by name or path stands in method",
    );
    await expect(train(run({ methods: halved as never }))).rejects.toThrow("methods: it is no list; give a list of what defineMethod makes");
  });
});

describe("a method from a file", () => {
  it("runs, with its options, beside one that comes with Touchstone", async () => {
    const mine = file("scaled.ts", scaled("scaled"));
    const { method } = await dryRun(run({ method: `grpo+${mine}` }));
    expect(method.find(({ slot }) => slot === "shape")).toMatchObject({ from: "scaled", how: "stage" });
    const advantages = async (factor: number) => {
      const { folder: at } = await train(run({ steps: 1, method: [{ name: mine, options: { factor } }] }));
      return (await RunReader.open(at).groups(1)).flatMap(({ rollouts }) => rollouts.map(({ numbers }) => numbers.advantage as number));
    };
    const [once, twice] = [await advantages(1), await advantages(2)];
    expect(once.some((a) => a !== 0)).toBe(true);
    expect(twice).toEqual(once.map((a) => 2 * a));
  });

  it("may lie at a path with a + in it, in a list", async () => {
    const mine = file("c++/scaled.ts", scaled("plus"));
    const one = run({ steps: 1, method: [mine] });
    await train(one);
    expect((JSON.parse(readFileSync(join(one.out, "run.json"), "utf8")) as { config: { method: object[] } }).config.method).toMatchObject([{ name: mine }]);
    expect(await resume(one.out, { task: lax() })).toMatchObject({ reason: "done" });
  });

  it("is part of what decides bytes: a resume with a changed file says so", async () => {
    const mine = file("changing.ts", scaled("changing"));
    const cut = run({ steps: 2, method: mine });
    const controller = new AbortController();
    await train({ ...cut, signal: controller.signal, onProgress: (p) => p.kind === "step" && controller.abort() });
    file("changing.ts", `${scaled("changing")}// another\n`);
    const messages: string[] = [];
    await resume(cut.out, { task: lax(), onProgress: (p) => p.kind === "message" && messages.push(p.text) });
    expect(messages.join(" ")).toMatch(/not byte-exact/);
  });

  const cases: readonly [string, string, string | RegExp][] = [
    ["nothing", "export const a = 1;", "its default export is no method: it lacks name (letters, digits, - and _), paper, options, initial, make"],
    [
      "half of one",
      "export default { name: 'half' };",
      "its default export is no method: it lacks paper, options, initial, make; write `export default defineMethod({ … })`",
    ],
    ["a function", "export default () => 1;", "its default export is a function, not a method"],
    ["a text", "export default 'grpo';", "its default export is a string, not a method"],
    ["a name that is taken", scaled("grpo"), "it is named grpo, as a method that comes with Touchstone; give it a name of its own"],
    [
      "a method that cannot be made",
      'import { defineMethod } from "touchstone-rl"; export default defineMethod({ name: "bad", make: () => { throw new Error("no luck"); } });',
      "it throws when it is made (no luck); correct the module, or give other options",
    ],
    [
      "a slot that is misspelt",
      'import { defineMethod } from "touchstone-rl"; export default defineMethod({ name: "bad", make: () => ({ slots: { credits: {} } }) });',
      'there is no slot "credits"; did you mean "credit"?',
    ],
    ["a text that does not compile", "export default {", /line \d+, column \d+: it cannot be compiled/],
  ];
  it.each(cases)("that exports %s is refused with its path", async (name, text, sentence) => {
    const path = file(`bad/${name.replaceAll(" ", "-")}.ts`, text);
    await expect(train(run({ method: path }))).rejects.toThrow(sentence);
    await expect(train(run({ method: path }))).rejects.toThrow(path);
  });

  it("that is not there, or misspells its option, is refused", async () => {
    await expect(train(run({ method: "./nowhere.ts" }))).rejects.toThrow(/^method: there is no file .*nowhere.ts; give the path of a .ts or .js file/);
    const mine = file("scaled.ts", scaled("scaled"));
    await expect(train(run({ method: { name: mine, options: { factr: 1 } } }))).rejects.toThrow(
      /option factr: there is no such option; did you mean "factor"\?/,
    );
  });
});
