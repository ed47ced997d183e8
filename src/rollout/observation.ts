/** Observations as token ids: what stands between the end of one action and the first token of the next. */
import { DataError, ModelError } from "../core/errors.js";
import type { Message } from "../core/problem.js";
import type { Tokenizer } from "../core/tokenizer.js";
import { whole } from "./reply.js";

type Renderer = Pick<Tokenizer, "encode" | "render" | "eosIds">;

export interface Observed {
  readonly ids: Int32Array;
  /** As it was shown: cut to its budget, without what the tokenizer cannot write. */
  readonly text: string;
  /** Characters that were left out, those of `step` included. */
  readonly cut: number;
}

export interface ObservationBounds {
  readonly tokens: number;
  /** The action ended with an end token; else one is written before the observation. */
  readonly ended: boolean;
  /** Characters that were cut before. */
  readonly cut: number;
}

/** Ids of an observation with the prompt for the next action. Text alone is shortened, never the template around it. */
export function observed(tokenizer: Renderer, messages: readonly Message[], bounds: ObservationBounds): Observed {
  const writable = messages.map(({ role, content }) => ({ role, content: writableText(tokenizer, content) }));
  const unwritable = lengthOf(messages) - lengthOf(writable);
  let shown: readonly Message[] = writable;
  for (let most = lengthOf(writable); ; ) {
    const cut = bounds.cut + unwritable + lengthOf(writable) - most;
    const noted = bounds.cut + lengthOf(writable) - most > 0 ? withNote(tokenizer, shown, cut) : shown;
    const ids = renderedAfter(tokenizer, noted, bounds.ended);
    if (ids.length <= bounds.tokens || most === 0) return { ids, text: noted.map(({ content }) => content).join("\n"), cut };
    // Towards the budget, a little below what its share of the tokens suggests, so that it ends after a few rounds.
    most = Math.min(most - 1, Math.floor((most * bounds.tokens) / ids.length));
    shown = beginning(writable, most);
  }
}

/**
 * What the template writes between an answer's end token and the next answer: everything after the end token of an empty
 * answer that the same messages follow. Nothing that was sampled is rendered again.
 */
export function renderedAfter(tokenizer: Renderer, messages: readonly Message[], ended: boolean): Int32Array {
  const before: readonly Message[] = [
    { role: "user", content: "" },
    { role: "assistant", content: "" },
  ];
  const ends = (ids: Int32Array): number[] => [...ids.keys()].filter((i) => tokenizer.eosIds.includes(ids[i] as number));
  const count = ends(tokenizer.render(before, { addGenerationPrompt: false })).length;
  const ids = tokenizer.render([...before, ...messages], { addGenerationPrompt: true });
  const end = ends(ids)[count - 1];
  if (end === undefined) {
    throw new ModelError({
      place: "chat template",
      cause: "an answer that is rendered does not end with an end token, so no observation can follow it",
      mend: "give a model whose template ends each answer with one of its end tokens",
    });
  }
  return Int32Array.from([...(ended ? [] : [ids[end] as number]), ...ids.slice(end + 1)]);
}

const lengthOf = (messages: readonly Message[]): number => messages.reduce((n, { content }) => n + content.length, 0);

function beginning(messages: readonly Message[], most: number): Message[] {
  let room = most;
  return messages.map(({ role, content }) => {
    const kept = whole(content.slice(0, room));
    room = Math.max(0, room - content.length);
    return { role, content: kept };
  });
}

/** Says at the end how much is missing, in an alphabet that has the words. */
function withNote(tokenizer: Renderer, messages: readonly Message[], cut: number): readonly Message[] {
  const last = messages.at(-1);
  const note = `\n[${cut} characters were cut]`;
  if (last === undefined || writableText(tokenizer, note) !== note) return messages;
  return [...messages.slice(0, -1), { role: last.role, content: last.content + note }];
}

/** The characters of a text that the tokenizer can write: an alphabet refuses others, and what a tool prints is not to end a run. */
function writableText(tokenizer: Renderer, text: string): string {
  const can = (part: string): boolean => {
    try {
      tokenizer.encode(part);
      return true;
    } catch (error) {
      if (error instanceof DataError) return false;
      throw error;
    }
  };
  return can(text) ? text : [...text].filter(can).join("");
}
