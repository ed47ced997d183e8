import { describe, expect, it } from "vitest";
import { z } from "zod";
import { ConfigError } from "./errors.js";
import { nearestName, parseOptions, pathText, suggestion } from "./options.js";

const schema = z.strictObject({
  group_size: z.int().min(2).default(8),
  temperature: z.number().gt(0).max(10).default(1),
  name: z.string().min(1).optional(),
  resume: z.boolean().default(false),
  std: z.enum(["sample", "population", "none"]).default("sample"),
  optimizer: z.strictObject({ rate: z.number().positive(), betas: z.array(z.number().min(0).lt(1)).length(2).default([0.9, 0.95]) }).optional(),
  roles: z.array(z.strictObject({ path: z.string(), frozen: z.boolean().default(true) })).default([]),
  from: z.union([z.literal("boxed"), z.literal("last-line"), z.strictObject({ after: z.string().min(1) })]).default("boxed"),
  update: z
    .discriminatedUnion("rule", [
      z.strictObject({ rule: z.literal("sgd"), momentum: z.number().default(0) }),
      z.strictObject({ rule: z.literal("adamw"), beta: z.number().default(0.9) }),
    ])
    .optional(),
  weights: z.record(z.string(), z.number()).default({}),
});

function sentence(value: unknown, of: z.ZodType = schema): string {
  try {
    parseOptions(of, value, "run.yaml");
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return (error as ConfigError).message;
  }
  return "accepted";
}

describe("options", () => {
  it("come back typed, with defaults filled in and nothing else", () => {
    const options = parseOptions(schema, { temperature: 0.5, roles: [{ path: "a" }] }, "run.yaml");
    const size: number = options.group_size;
    expect(size).toBe(8);
    expect(options).toEqual({
      group_size: 8,
      temperature: 0.5,
      resume: false,
      std: "sample",
      roles: [{ path: "a", frozen: true }],
      from: "boxed",
      weights: {},
    });
    expect(parseOptions(schema, undefined, "run.yaml").group_size).toBe(8);
  });

  it.each<[string, unknown, string]>([
    ["an unknown key with a near name", { temprature: 1 }, 'run.yaml, option temprature: there is no such option; did you mean "temperature"?'],
    ["a key in another spelling", { groupSize: 4 }, 'run.yaml, option groupSize: there is no such option; did you mean "group_size"?'],
    [
      "an unknown key with no near name",
      { optimizer: { rate: 1, zeal: 2 } },
      "run.yaml, option optimizer.zeal: there is no such option; valid here: rate, betas",
    ],
    [
      "an unknown key within a list",
      { roles: [{ path: "a" }, { path: "b", forzen: true }] },
      'run.yaml, option roles[1].forzen: there is no such option; did you mean "frozen"?',
    ],
    [
      "a misspelt key that was required",
      { optimizer: { rat: 1 } },
      'run.yaml, option optimizer.rat: there is no such option; did you mean "rate"? (1 more: optimizer.rate)',
    ],
    ["a missing key", { optimizer: {} }, "run.yaml, option optimizer.rate: it is missing; give a number above 0"],
    ["text for a number", { group_size: "8" }, 'run.yaml, option group_size: got the text "8"; give a whole number of at least 2'],
    ["a number that is too small", { group_size: 1 }, "run.yaml, option group_size: got 1; give a whole number of at least 2"],
    ["a broken number", { group_size: 2.5 }, "run.yaml, option group_size: got 2.5; give a whole number of at least 2"],
    ["a number at an open limit", { temperature: 0 }, "run.yaml, option temperature: got 0; give a number above 0 and at most 10"],
    ["not a number", { temperature: Number.NaN }, "run.yaml, option temperature: got NaN; give a number above 0 and at most 10"],
    ["an infinity", { temperature: Infinity }, "run.yaml, option temperature: got Infinity; give a number above 0 and at most 10"],
    ["an empty text", { name: "" }, 'run.yaml, option name: got the text ""; give a text that is not empty'],
    ["a switch in quotes", { resume: "yes" }, 'run.yaml, option resume: got the text "yes"; give true or false'],
    ["null", { resume: null }, "run.yaml, option resume: got null; give true or false"],
    ["a misspelt choice", { std: "smaple" }, 'run.yaml, option std: got the text "smaple"; did you mean "sample"? (one of sample, population, none)'],
    ["no near choice", { std: "variance" }, 'run.yaml, option std: got the text "variance"; choose one of sample, population, none'],
    ["a number as a choice", { std: 3 }, "run.yaml, option std: got 3; give one of sample, population, none"],
    ["an object for a list", { roles: {} }, "run.yaml, option roles: got an empty object; give a list, each an object with path, frozen"],
    [
      "a list of wrong length",
      { optimizer: { rate: 1, betas: [0.9] } },
      "run.yaml, option optimizer.betas: got a list of 1; give a list of 2, each a number of at least 0 and below 1",
    ],
    [
      "a wrong member of a list",
      { optimizer: { rate: 1, betas: [0.9, 1] } },
      "run.yaml, option optimizer.betas[1]: got 1; give a number of at least 0 and below 1",
    ],
    ["a list for an object", { optimizer: [1] }, "run.yaml, option optimizer: got a list of 1; give an object with rate, betas"],
    ["a value under a free key", { weights: { "a b": "1" } }, 'run.yaml, option weights["a b"]: got the text "1"; give a number'],
    [
      "a near form of a union",
      { from: "boxd" },
      'run.yaml, option from: got the text "boxd"; did you mean "boxed"? ("boxed", or "last-line", or an object with after)',
    ],
    ["no form of a union", { from: 4 }, 'run.yaml, option from: got 4; give "boxed", or "last-line", or an object with after'],
    [
      "a fault within one form of a union",
      { from: { aftr: "x" } },
      'run.yaml, option from.aftr: there is no such option; did you mean "after"? (1 more: from.after)',
    ],
    ["a limit within one form of a union", { from: { after: "" } }, 'run.yaml, option from.after: got the text ""; give a text that is not empty'],
    ["a misspelt kind", { update: { rule: "adam" } }, 'run.yaml, option update.rule: got the text "adam"; did you mean "adamw"? (one of sgd, adamw)'],
    ["a key of another kind", { update: { rule: "sgd", beta: 1 } }, "run.yaml, option update.beta: there is no such option; valid here: rule, momentum"],
    [
      "no object at all",
      "fast",
      'run.yaml: got the text "fast"; give an object with group_size, temperature, name, resume, std, optimizer, roles, from, update, weights',
    ],
    [
      "a key that JavaScript treats apart",
      JSON.parse('{"__proto__": {"rate": 1}}'),
      "run.yaml, option __proto__: there is no such option; valid here: group_size, temperature, name, resume, std, optimizer, roles, from, update, weights",
    ],
  ])("refuse %s in one sentence", (_, value, expected) => {
    expect(sentence(value)).toBe(expected);
  });

  it("carry all faults as data, unknown keys first", () => {
    try {
      parseOptions(schema, { std: 1, temprature: 2, group_size: 0 }, "run.yaml");
      expect.unreachable();
    } catch (error) {
      const faults = (error as ConfigError).data.faults as { option: string; kind: string }[];
      expect(faults.map((fault) => [fault.option, fault.kind])).toEqual([
        ["temprature", "unknown"],
        ["group_size", "value"],
        ["std", "value"],
      ]);
      expect((error as ConfigError).message).toContain("(2 more: group_size, std)");
    }
  });

  it("tell what a rule of one's own says", () => {
    const range = z.strictObject({ min: z.int(), max: z.int() }).refine((o) => o.min <= o.max, { path: ["max"], message: "give max at least min" });
    expect(sentence({ min: 3, max: 2 }, range)).toBe("run.yaml, option max: got 2; give max at least min");
  });

  it("quote long values in part", () => {
    expect(sentence({ group_size: "x".repeat(5000) }).length).toBeLessThan(200);
  });

  it("do not say that a name is near when it is not", () => {
    expect(nearestName("lr", ["rate", "eps"])).toBe(undefined);
    expect(nearestName("ep", ["rate", "eps"])).toBe("eps");
    expect(nearestName("stpes", ["rate", "steps"])).toBe("steps");
    expect(nearestName("anything", [])).toBe(undefined);
    expect(suggestion("x", [])).toBe("nothing can be set here; leave it out");
  });

  it("have paths as one would write them", () => {
    expect(pathText(["a", 0, "b-c", "d.e"])).toBe('a[0].b-c["d.e"]');
    expect(pathText([])).toBe("");
  });
});
