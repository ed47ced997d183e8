/** One call of an environment: within its deadline, checked, its observation cut to its budget. Never throws. */
import type { Json } from "../core/json.js";
import { describeThrown } from "../core/load.js";
import type { Message, Problem } from "../core/problem.js";
import type { RandomKey } from "../core/random.js";
import type { Verdict } from "../core/verdict.js";
import type { Environment, EnvironmentFault, EnvironmentStep } from "../tasks/contract.js";
import { faultOfVerdict } from "../verify/contract.js";

/** What an environment is asked. It is plain data, so it can be sent to a thread. */
export type Call =
  | { readonly ask: "start"; readonly problem: Problem; readonly key: RandomKey }
  | { readonly ask: "step"; readonly state: Json; readonly action: string; readonly key: RandomKey }
  | { readonly ask: "recover"; readonly state: Json; readonly action: string; readonly fault: EnvironmentFault };

/** A step with the number of characters that its observation lost. */
export interface BoundedStep extends EnvironmentStep<Json> {
  readonly cut: number;
}

export type Reply = { readonly state: Json } | { readonly step: BoundedStep } | { readonly fault: EnvironmentFault };

export interface ReplyLimits {
  readonly observationCharacters: number;
  readonly deadlineMs: number;
}

export async function replyTo(environment: Environment<Json>, call: Call, limits: ReplyLimits): Promise<Reply> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<Reply>((resolve) => {
    timer = setTimeout(() => resolve({ fault: lateFault(limits.deadlineMs) }), limits.deadlineMs);
  });
  try {
    return await Promise.race([answered(environment, call, limits), late]);
  } catch (error) {
    return { fault: { kind: "threw", message: describeThrown(error).slice(0, 500) } };
  } finally {
    clearTimeout(timer);
  }
}

export const lateFault = (deadlineMs: number): EnvironmentFault => ({ kind: "deadline", message: `no answer within ${deadlineMs} ms` });

async function answered(environment: Environment<Json>, call: Call, limits: ReplyLimits): Promise<Reply> {
  // A copy, so that a step which changes its state in place changes nobody else's.
  if (call.ask === "start") return { state: plain(await environment.start(call.problem, call.key)) };
  const state = plain(call.state);
  const step: unknown =
    call.ask === "step" ? await environment.step(state, call.action, call.key) : (environment.recover?.(state, call.action, call.fault) as unknown);
  return { step: bounded(checked(step), limits.observationCharacters) };
}

/** The value as JSON carries it. */
function plain(value: Json): Json {
  const text = JSON.stringify(value) as string | undefined;
  if (text === undefined) throw new TypeError("its state is no JSON value");
  return JSON.parse(text) as Json;
}

const roles: ReadonlySet<unknown> = new Set(["system", "user", "assistant", "tool"]);

function checked(value: unknown): EnvironmentStep<Json> {
  const { state, observation, verdict, info, done, clocked } = (value ?? {}) as Partial<EnvironmentStep<Json>>;
  if (typeof done !== "boolean") throw new TypeError("its step does not say whether it is done");
  if (!Array.isArray(observation) || !observation.every(isMessage)) throw new TypeError("its observation is no list of messages");
  const numbers = Object.entries(info ?? {});
  const odd = numbers.find(([, number]) => !Number.isFinite(number));
  if (odd !== undefined) throw new TypeError(`its info ${odd[0]} is ${String(odd[1])}`);
  const fault = verdict === undefined ? undefined : faultOfVerdict(verdict);
  if (fault !== undefined) throw new TypeError(fault);
  return {
    state: plain(state as Json),
    observation: (observation as readonly Message[]).map(({ role, content }) => ({ role, content })),
    ...(verdict !== undefined && { verdict: plain(verdict as unknown as Json) as unknown as Verdict }),
    info: Object.fromEntries(numbers),
    done,
    ...(clocked === true && { clocked }),
  };
}

function isMessage(value: unknown): value is Message {
  const { role, content } = (value ?? {}) as Partial<Message>;
  return roles.has(role) && typeof content === "string";
}

/** Cuts messages after so many characters in all. */
function bounded(step: EnvironmentStep<Json>, most: number): BoundedStep {
  let room = most;
  let cut = 0;
  const observation = step.observation.map(({ role, content }) => {
    const kept = content.length <= room ? content : whole(content.slice(0, room));
    room -= kept.length;
    cut += content.length - kept.length;
    return { role, content: kept };
  });
  return { ...step, observation, cut };
}

/** A text without the half of a character at its end. */
export const whole = (text: string): string => (/[\uD800-\uDBFF]$/.test(text) ? text.slice(0, -1) : text);
