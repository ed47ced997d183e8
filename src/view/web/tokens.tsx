/** The tokens of an answer, coloured; one of them can be chosen, by pointer or by arrow keys. Turns and what came back are folded. */
import type { JSX } from "preact";
import { useId, useMemo, useState } from "preact/hooks";
import type { Member, TokenSlice } from "../shapes.js";
import { count, digits } from "./format.js";
import { numberOf, type Shades, shade } from "./shade.js";
import { visible } from "./text.js";

export interface TokensProps {
  readonly slice: TokenSlice;
  readonly member: Member;
  readonly shades: Shades;
  readonly chosen: number | undefined;
  readonly onPick: (place: number) => void;
  /** Fetches the tokens from a place on. */
  readonly more: (from: number) => Promise<TokenSlice>;
}

/** Tokens that are drawn before one asks for more. */
const shown = 800;

interface Part {
  readonly name: string;
  readonly start: number;
  readonly end: number;
}

/** The turns and observations of a conversation in order; one part without a name for any other answer. */
function partsOf({ spans }: Member, total: number): Part[] {
  const named = spans.filter(({ name }) => name === "turn" || name === "observation").sort((a, b) => a.start - b.start);
  if (!named.some(({ name }) => name === "observation")) return [{ name: "", start: 0, end: total }];
  const parts: Part[] = [];
  let [at, turn] = [0, 0];
  for (const { name, start, end } of named) {
    if (start > at) parts.push({ name: "", start: at, end: start });
    if (end > Math.max(at, start)) parts.push({ name: name === "turn" ? `turn ${++turn}` : "came back", start: Math.max(at, start), end });
    at = Math.max(at, end);
  }
  if (at < total) parts.push({ name: "", start: at, end: total });
  return parts;
}

function joined(a: TokenSlice, b: TokenSlice): TokenSlice {
  const columns = Object.fromEntries(Object.keys(a.columns).map((name) => [name, [...a.columns[name], ...(b.columns[name] ?? [])]]));
  const both = <K extends "ids" | "sampled" | "reward" | "loss">(name: K): number[] => [...a[name], ...b[name]];
  return {
    ...a,
    ids: both("ids"),
    sampled: both("sampled"),
    reward: both("reward"),
    loss: both("loss"),
    columns,
    ...(a.texts && { texts: [...a.texts, ...(b.texts ?? [])] }),
  };
}

export function Tokens({ slice: first, member, shades, chosen, onPick, more }: TokensProps): JSX.Element {
  const [slice, setSlice] = useState(first);
  const [limit, setLimit] = useState(Math.max(shown, (chosen ?? 0) + 1));
  const parts = useMemo(() => partsOf(member, first.total), [member, first.total]);
  const last = Math.min(limit, slice.ids.length);
  const [hover, setHover] = useState("");
  const further = async (): Promise<void> => {
    if (slice.ids.length < slice.total && limit >= slice.ids.length) setSlice(joined(slice, await more(slice.ids.length)));
    setLimit(limit + 4 * shown);
  };
  return (
    <div class="tokens">
      {parts
        .filter(({ start }) => start < last)
        .map((part) => {
          const list = <PartTokens key={part.start} {...{ slice, shades, chosen, onPick, part }} end={Math.min(part.end, last)} onHover={setHover} />;
          if (part.name === "") return list;
          return (
            <details key={part.start} class={part.name === "came back" ? "observation" : "turn"} open={part.name !== "came back"}>
              <summary>
                {part.name}, {count(part.end - part.start)} tokens
              </summary>
              {list}
            </details>
          );
        })}
      {last < slice.total && (
        <button type="button" class="link" onClick={further}>
          … show more of {count(slice.total)} tokens
        </button>
      )}
      <span class="hover" aria-hidden="true">
        {hover}
      </span>
    </div>
  );
}

interface PartProps extends Pick<TokensProps, "slice" | "shades" | "chosen" | "onPick"> {
  readonly part: Part;
  readonly end: number;
  readonly onHover: (text: string) => void;
}

function PartTokens({ slice, shades, chosen, onPick, part, end, onHover }: PartProps): JSX.Element {
  const id = useId();
  const within = chosen !== undefined && chosen >= part.start && chosen < end;
  const places = Array.from({ length: Math.max(0, end - part.start) }, (_, i) => part.start + i);
  const placeOf = (target: EventTarget | null): number | undefined => {
    const text = (target as HTMLElement | null)?.closest<HTMLElement>("[data-t]")?.dataset.t;
    return text === undefined ? undefined : Number(text);
  };
  const step = (by: number): void => onPick(Math.min(end - 1, Math.max(part.start, within ? chosen + by : by > 0 ? part.start : end - 1)));
  const keys: { readonly [key: string]: () => void } = {
    ArrowRight: () => step(1),
    ArrowDown: () => step(1),
    ArrowLeft: () => step(-1),
    ArrowUp: () => step(-1),
    Home: () => onPick(part.start),
    End: () => onPick(end - 1),
  };
  return (
    <div
      class="run"
      role="listbox"
      tabIndex={0}
      dir="auto"
      aria-label={part.name === "" ? "Tokens" : `Tokens, ${part.name}`}
      aria-activedescendant={within ? `${id}${chosen}` : undefined}
      onClick={(event) => {
        const place = placeOf(event.target);
        if (place !== undefined) onPick(place);
      }}
      onPointerOver={(event) => {
        const place = placeOf(event.target);
        const value = place === undefined ? null : numberOf(shades.colouring, slice, place);
        onHover(
          place === undefined
            ? ""
            : `token ${place}${value === null ? "" : `: ${shades.colouring} ${digits(shades.colouring === "ratio" ? Math.exp(value) : value)}`}`,
        );
      }}
      onPointerLeave={() => onHover("")}
      onKeyDown={(event) => {
        const act = keys[event.key];
        if (!act) return;
        event.preventDefault();
        act();
      }}
    >
      {places.map((place) => {
        const background = shade(shades, slice, place);
        // What ends a line stands behind the token's box, which would else reach into the next line.
        const breaks = /\n*$/.exec(slice.texts?.[place] ?? "")?.[0] ?? "";
        return [
          <span
            key={place}
            id={`${id}${place}`}
            role="option"
            tabIndex={-1}
            aria-selected={place === chosen}
            data-t={place}
            class={slice.sampled[place] === 1 ? "tok" : "tok given"}
            style={background === undefined ? undefined : { backgroundColor: background }}
          >
            {textOf(slice, place)}
          </span>,
          breaks,
        ];
      })}
    </div>
  );
}

/** What stands for a token: its text, with what ends a line marked; its number where there is no tokenizer. */
function textOf({ texts, ids }: TokenSlice, place: number): ReturnType<typeof visible> {
  if (!texts) return ` ${ids[place]}`;
  const text = texts[place];
  if (text === "") return "·";
  return visible(text.replace(/\n+$/, (ends) => "↵".repeat(ends.length)).replaceAll("\n", "↵\n"));
}
