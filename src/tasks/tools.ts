/**
 * Environments of tools. The policy's action is a call, whose result it reads next, or anything else, which is its answer
 * and ends the conversation. What a call does wrong comes back to the policy as its result: a malformed call, a tool that
 * throws, and one that takes too long end nothing.
 */
import { z } from "zod";
import { ConfigError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import { describeThrown } from "../core/load.js";
import type { Message } from "../core/problem.js";
import { Stream } from "../core/random.js";
import { type CallSyntax, jsonCalls } from "./calls.js";
import type { Environment, EnvironmentLimits, EnvironmentStep } from "./contract.js";

/** A function that the policy may call. The same arguments and random numbers give the same result, or the run is not replayable. */
export interface Tool {
  readonly name: string;
  /** For the prompt (`describeTools`). */
  readonly description: string;
  /** What its arguments must be; a call with others is answered by what is wrong with them. */
  readonly args: z.ZodType;
  run(args: never, random: Stream): Json | Promise<Json>;
}

/**
 * A tool with typed arguments; without `args` they are one text.
 *
 *     const add = tool({ name: "add", description: "a + b", args: z.strictObject({ a: z.number(), b: z.number() }), run: ({ a, b }) => a + b });
 */
export function tool<A = string>(spec: {
  readonly name: string;
  readonly description: string;
  readonly args?: z.ZodType<A>;
  readonly run: (args: A, random: Stream) => Json | Promise<Json>;
}): Tool {
  return { ...spec, args: spec.args ?? z.string(), run: spec.run as Tool["run"] };
}

export interface ToolsOptions {
  readonly tools: readonly Tool[];
  /** How calls are written; default `jsonCalls`. */
  readonly syntax?: CallSyntax;
  /** What the policy reads of a call that failed; default `error: ` and the message. */
  readonly error?: (message: string) => string;
  /** Calls of one action that are answered; default 4. */
  readonly callsAtOnce?: number;
  /** Of one call, in milliseconds; default 10,000. */
  readonly deadlineMs?: number;
  readonly limits?: Omit<EnvironmentLimits, "deadlineMs">;
}

/** Calls so far. */
type State = { readonly calls: number };

/** What a step has beside its calls. */
const slackMs = 1000;

/**
 * An environment in which the policy may call tools. Its verdict is the verifier's of the last action.
 *
 *     environment: tools({ tools: [add] })
 */
export function tools(options: ToolsOptions): Environment<State> {
  const { syntax = jsonCalls, error = (message) => `error: ${message}`, callsAtOnce = 4, deadlineMs = 10_000, limits } = options;
  const byName = new Map(options.tools.map((each) => [each.name, each]));
  if (byName.size !== options.tools.length || byName.size === 0) {
    const cause = byName.size === 0 ? "there are none" : "two have the same name";
    throw new ConfigError({ place: "tools", cause, mend: "give each tool a name of its own, and at least one" });
  }
  const answer = async (name: string, args: Json, random: Stream): Promise<Outcome> => {
    const called = byName.get(name);
    if (called === undefined) return { fault: `there is no tool ${JSON.stringify(name)}; there is ${[...byName.keys()].join(", ")}` };
    const read = called.args.safeParse(args);
    if (!read.success) return { fault: `${name}: ${problemsOf(read.error)}` };
    return within(deadlineMs, name, async () => called.run(read.data as never, random));
  };
  return {
    limits: { ...limits, deadlineMs: callsAtOnce * deadlineMs + slackMs },
    start: () => ({ calls: 0 }),
    async step({ calls }, action, key) {
      const wanted = syntax.read(action);
      if (wanted.length === 0) return { state: { calls }, observation: [], info: { calls: 0, failed: 0 }, done: true };
      const random = new Stream(key);
      const outcomes: Outcome[] = [];
      for (const call of wanted.slice(0, callsAtOnce)) outcomes.push("fault" in call ? call : await answer(call.name, call.args, random));
      if (wanted.length > callsAtOnce) outcomes.push({ fault: `only ${callsAtOnce} calls are answered at once` });
      return stepOf(calls, outcomes, error);
    },
    recover: ({ calls }, _action, { message }) => stepOf(calls, [{ fault: message }], error),
  };
}

type Outcome = { readonly result: string } | { readonly fault: string; readonly late?: true };

function stepOf(calls: number, outcomes: readonly Outcome[], error: (message: string) => string): EnvironmentStep<State> {
  const failed = outcomes.filter((outcome) => "fault" in outcome).length;
  return {
    state: { calls: calls + outcomes.length },
    observation: outcomes.map((outcome): Message => ({ role: "tool", content: "fault" in outcome ? error(outcome.fault) : outcome.result })),
    info: { calls: outcomes.length, failed },
    done: false,
    ...(outcomes.some((outcome) => "late" in outcome) && { clocked: true }),
  };
}

/** Runs a tool; what it throws is told, and one that awaits for ever is given up on. One that computes for ever is for whoever runs the environment to end. */
async function within(deadlineMs: number, name: string, run: () => Promise<Json>): Promise<Outcome> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<Outcome>((resolve) => {
    timer = setTimeout(() => resolve({ fault: `${name}: no answer within ${deadlineMs} ms`, late: true }), deadlineMs);
  });
  try {
    const result = run().then((value): Outcome => ({ result: typeof value === "string" ? value : (JSON.stringify(value) ?? "") }));
    result.catch(() => undefined); // One that fails after its deadline is nobody's.
    return await Promise.race([result, late]);
  } catch (thrown) {
    return { fault: `${name}: ${describeThrown(thrown)}` };
  } finally {
    clearTimeout(timer);
  }
}

const problemsOf = (error: z.ZodError): string => error.issues.map(({ path, message }) => `${path.join(".") || "arguments"}: ${message}`).join("; ");

/** Tools as a text for the system message: names, descriptions and arguments as JSON schemas, one line each, and how a call is written. */
export function describeTools(list: readonly Tool[], syntax: CallSyntax = jsonCalls): string {
  const lines = list.map(({ name, description, args }) => JSON.stringify({ name, description, arguments: z.toJSONSchema(args) }));
  return ["You may call these tools:", ...lines, syntax.help].join("\n");
}
