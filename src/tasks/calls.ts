/** How an action says which tools it calls. What looks like a call and is none is a fault with a reason, which the policy is to read. */
import type { Json } from "../core/json.js";

export type Call = { readonly name: string; readonly args: Json } | { readonly fault: string };

export interface CallSyntax {
  /** The calls of an action, in order; none: the action is an answer. Total. */
  read(action: string): readonly Call[];
  /** How a call is written, in a sentence for the prompt. */
  readonly help: string;
}

const open = "<tool_call>";
const close = "</tool_call>";

/** `<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>`, as chat models write it; several may follow each other, with text around them. */
export const jsonCalls: CallSyntax = {
  help: `Write a call as ${open}{"name": "…", "arguments": {…}}${close}. What you write without a call is your answer.`,
  read(action) {
    const calls: Call[] = [];
    for (let at = action.indexOf(open); at >= 0; ) {
      const start = at + open.length;
      const next = action.indexOf(open, start);
      const end = action.indexOf(close, start);
      const closed = end >= 0 && (next < 0 || end < next);
      calls.push(closed ? readJsonCall(action.slice(start, end)) : { fault: `a call is not closed by ${close}` });
      at = next;
    }
    return calls;
  },
};

function readJsonCall(text: string): Call {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { fault: "a call is no JSON" };
  }
  const { name, arguments: args = {} } = (value ?? {}) as { readonly name?: unknown; readonly arguments?: unknown };
  return typeof name === "string" ? { name, args: args as Json } : { fault: "a call has no name" };
}

/** `name(text)` as the whole action, for small alphabets: one call, whose argument is the text between the outer brackets. */
export const shortCalls: CallSyntax = {
  help: "Write a call as name(argument), and nothing else. What you write otherwise is your answer.",
  read(action) {
    const text = action.trim();
    const name = /^([A-Za-z_]\w*)\(/.exec(text)?.[1];
    if (name === undefined) return [];
    return text.endsWith(")") ? [{ name, args: text.slice(name.length + 1, -1) }] : [{ fault: "a call is not closed by )" }];
  },
};
