/** What a filter of rollouts means, for the search in a run's folder and for the one in a page's own file. */
import type { Filter } from "./shapes.js";

/** What of a rollout its record tells. */
export interface Filtered {
  readonly kind: string;
  readonly reason?: string;
  readonly stop: string;
  readonly tokens: number;
  /** All texts of the answer: what was written and observed. */
  readonly texts: () => Iterable<string>;
}

export interface FilteredGroup {
  readonly problem: string;
  readonly tags?: { readonly [name: string]: string | number | boolean };
  readonly prompt: readonly string[];
}

/** Places of the members that a filter keeps. A text that the prompt has keeps all. */
export function kept(filter: Filter, group: FilteredGroup, members: readonly Filtered[]): number[] {
  const { problem, tag, text } = filter;
  if (problem !== undefined && !group.problem.includes(problem)) return [];
  if (tag !== undefined && !hasTag(group.tags ?? {}, tag)) return [];
  const asked = text === undefined || group.prompt.some((part) => part.includes(text));
  return members.flatMap((member, i) => (keeps(filter, member, asked) ? [i] : []));
}

function keeps({ verdict, reason, text = "", stop, least = 0, most = Number.POSITIVE_INFINITY }: Filter, member: Filtered, asked: boolean): boolean {
  if (verdict !== undefined && member.kind !== verdict) return false;
  if (reason !== undefined && !(member.reason ?? "").includes(reason)) return false;
  if (stop !== undefined && member.stop !== stop) return false;
  if (member.tokens < least || member.tokens > most) return false;
  return asked || [...member.texts()].some((part) => part.includes(text));
}

function hasTag(tags: { readonly [name: string]: string | number | boolean }, wanted: string): boolean {
  const at = wanted.indexOf("=");
  const name = at < 0 ? wanted : wanted.slice(0, at);
  return Object.hasOwn(tags, name) && (at < 0 || String(tags[name]) === wanted.slice(at + 1));
}
