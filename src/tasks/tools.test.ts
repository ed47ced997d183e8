import { describe, expect, it } from "vitest";
import { z } from "zod";
import { randomKey } from "../core/random.js";
import { jsonCalls, shortCalls } from "./calls.js";
import type { Environment } from "./contract.js";
import { describeTools, type ToolsOptions, tool, tools } from "./tools.js";

describe("calls in JSON", () => {
  const call = (text: string): string => `<tool_call>${text}</tool_call>`;

  it.each([
    ["the answer is 7", []],
    [call('{"name":"add","arguments":{"a":1}}'), [{ name: "add", args: { a: 1 } }]],
    [
      `I add. ${call('\n{"name": "add", "arguments": {"a": 1}}\n')}${call('{"name":"now"}')} Done.`,
      [
        { name: "add", args: { a: 1 } },
        { name: "now", args: {} },
      ],
    ],
    [call("add(1)"), [{ fault: "a call is no JSON" }]],
    [call('{"arguments":{}}'), [{ fault: "a call has no name" }]],
    [call("null"), [{ fault: "a call has no name" }]],
    ['<tool_call>{"name":"add"}', [{ fault: "a call is not closed by </tool_call>" }]],
    [`<tool_call>{"name":${call('{"name":"now"}')}`, [{ fault: "a call is not closed by </tool_call>" }, { name: "now", args: {} }]],
    ["</tool_call>", []],
  ])("%j", (action, calls) => {
    expect(jsonCalls.read(action)).toEqual(calls);
  });
});

describe("short calls", () => {
  it.each([
    ["7", []],
    ["#7 (add)", []],
    ["add(3+4)", [{ name: "add", args: "3+4" }]],
    [" add() ", [{ name: "add", args: "" }]],
    ["add((3)+4)", [{ name: "add", args: "(3)+4" }]],
    ["add(3+4", [{ fault: "a call is not closed by )" }]],
    ["add(3)+4", [{ fault: "a call is not closed by )" }]],
  ])("%j", (action, calls) => {
    expect(shortCalls.read(action)).toEqual(calls);
  });
});

describe("tools", () => {
  const add = tool({ name: "add", description: "a + b", args: z.strictObject({ a: z.number(), b: z.number() }), run: ({ a, b }) => a + b });
  const dice = tool({ name: "dice", description: "from 1 to 6", args: z.strictObject({}), run: (_, random) => ({ eyes: 1 + random.int(6) }) });
  const broken = tool({ name: "broken", description: "throws", run: () => Promise.reject(new Error("no line")) });
  const slow = tool({ name: "slow", description: "never answers", run: () => new Promise<never>(() => undefined) });
  const key = randomKey({ seed: 1, purpose: "test" });
  const call = (name: string, args: object = {}): string => `<tool_call>${JSON.stringify({ name, arguments: args })}</tool_call>`;
  const step = (action: string, options: Partial<ToolsOptions> = {}) => {
    const environment: Environment<{ readonly calls: number }> = tools({ tools: [add, dice, broken, slow], deadlineMs: 20, ...options });
    return environment.step({ calls: 0 }, action, key);
  };

  it("answer calls in order, each as a message of its own, and count them", async () => {
    const result = await step(call("add", { a: 3, b: 4 }) + call("dice"));
    expect(result.observation.map(({ role, content }) => [role, content])).toEqual([
      ["tool", "7"],
      ["tool", expect.stringMatching(/^\{"eyes":[1-6]\}$/)],
    ]);
    expect(result).toMatchObject({ state: { calls: 2 }, done: false, info: { calls: 2, failed: 0 } });
    expect((await step(call("dice"))).observation).toEqual((await step(call("dice"))).observation);
  });

  it("end the conversation where nothing is called", async () => {
    expect(await step("7")).toEqual({ state: { calls: 0 }, observation: [], info: { calls: 0, failed: 0 }, done: true });
  });

  it.each([
    ["an unknown tool", call("subtract"), 'error: there is no tool "subtract"; there is add, dice, broken, slow'],
    ["wrong arguments", call("add", { a: 3 }), "error: add: b: Invalid input: expected number, received undefined"],
    ["a tool that throws", '<tool_call>{"name":"broken","arguments":"x"}</tool_call>', "error: broken: no line"],
    ["a tool that never answers", '<tool_call>{"name":"slow","arguments":"x"}</tool_call>', "error: slow: no answer within 20 ms"],
    ["a malformed call", "<tool_call>add", "error: a call is not closed by </tool_call>"],
  ])("tell the policy of %s, which ends nothing", async (_, action, message) => {
    const result = await step(action);
    expect(result.observation).toEqual([{ role: "tool", content: message }]);
    expect(result).toMatchObject({ done: false, info: { calls: 1, failed: 1 } });
    expect(result.clocked).toBe(action.includes("slow") ? true : undefined);
  });

  it("answer so many calls at once, and say that there were more", async () => {
    const { observation } = await step(call("add", { a: 1, b: 1 }).repeat(3), { callsAtOnce: 2, error: (message) => `! ${message}` });
    expect(observation.map(({ content }) => content)).toEqual(["2", "2", "! only 2 calls are answered at once"]);
  });

  it("are described for the prompt with their arguments", () => {
    const lines = describeTools([add]).split("\n");
    expect(JSON.parse(lines[1] as string)).toMatchObject({ name: "add", description: "a + b", arguments: { required: ["a", "b"] } });
    expect(lines[2]).toBe(jsonCalls.help);
  });

  it("are refused without a name of their own", () => {
    expect(() => tools({ tools: [] })).toThrow("tools: there are none; give each tool a name of its own, and at least one");
    expect(() => tools({ tools: [add, add] })).toThrow("tools: two have the same name");
  });
});
