/** Texts that models wrote, shown as texts: nothing in them is markup, none can turn or hide what stands beside it, and none is too long to draw. */
import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import type { Cut } from "../shapes.js";
import { count } from "./format.js";

/** Characters that are drawn before one is asked. */
const shown = 6000;

/** Control characters but tab and line feed, marks that turn or hide text, spaces without a width, half characters. */
const odd = /(?![\t\n])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

const names: { readonly [code: number]: string } = {
  8203: "ZWSP",
  8204: "ZWNJ",
  8205: "ZWJ",
  8206: "LRM",
  8207: "RLM",
  8234: "LRE",
  8235: "RLE",
  8236: "PDF",
  8237: "LRO",
  8238: "RLO",
  8294: "LRI",
  8295: "RLI",
  8296: "FSI",
  8297: "PDI",
  65279: "BOM",
  173: "SHY",
  1564: "ALM",
  127: "DEL",
};

function nameOf(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return names[code] ?? (code < 0x20 ? String.fromCodePoint(0x2400 + code) : `U+${code.toString(16).toUpperCase().padStart(4, "0")}`);
}

/** A text with what cannot be seen made visible. */
export function visible(text: string): ComponentChildren {
  const parts: ComponentChildren[] = [];
  let from = 0;
  for (const match of text.matchAll(odd)) {
    if (match.index > from) parts.push(text.slice(from, match.index));
    parts.push(
      <span class="odd" title={`U+${(match[0].codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`}>
        {nameOf(match[0])}
      </span>,
    );
    from = match.index + match[0].length;
  }
  if (from === 0) return text;
  parts.push(text.slice(from));
  return parts;
}

/** A short text in a line of others, isolated from their direction. */
export function Word({ text, class: className }: { readonly text: string; readonly class?: string }): JSX.Element {
  return <bdi class={className}>{visible(text)}</bdi>;
}

/** A text of any length. `whole` fetches it where the server has cut it. */
export function Text({ of, whole }: { readonly of: Cut; readonly whole?: () => void }): JSX.Element {
  const [all, open] = useState(false);
  const part = all ? of.text : of.text.slice(0, shown);
  const left = of.total - part.length;
  return (
    <div class="text">
      {of.text === "" ? <span class="muted">(empty)</span> : <bdi class="pre">{visible(part)}</bdi>}
      {left > 0 && (
        <button
          type="button"
          class="link"
          onClick={() => {
            open(true);
            if (of.text.length < of.total) whole?.();
          }}
        >
          … show all {count(of.total)} characters
        </button>
      )}
    </div>
  );
}

/** A value in JSON, of whatever depth. */
export function Value({ of }: { readonly of: unknown }): JSX.Element {
  const text = typeof of === "string" ? of : (JSON.stringify(of) ?? "");
  return <Text of={{ text, total: text.length }} />;
}
