/** Prompts that methods make of a problem's own: the last message rewritten after a template, everything before it left as it is. */
import type { Message, Problem } from "../core/problem.js";

/** A template with each {name} replaced; what is put in is not read again. */
export function filled(template: string, values: { readonly [name: string]: string }): string {
  return template.replace(/\{(\w+)\}/g, (whole, name: string) => (Object.hasOwn(values, name) ? (values[name] as string) : whole));
}

/** The problem's messages with its last one after the template, where {problem} is what that said. */
export function rewritten({ prompt }: Problem, template: string, values: { readonly [name: string]: string }): Message[] {
  const last = prompt.at(-1);
  return [...prompt.slice(0, -1), { role: last?.role ?? "user", content: filled(template, { problem: last?.content ?? "", ...values }) }];
}
