/** Small pieces that all pages share. */
import type { ComponentChildren, JSX, RefObject } from "preact";
import type { RunCard } from "../shapes.js";
import type { Line } from "./chart.js";
import { saveChart } from "./picture.js";
import { Word } from "./text.js";

export function Fault({ text }: { readonly text: string }): JSX.Element {
  return (
    <div class="fault" role="alert">
      <b>This cannot be shown.</b> <Word text={text} />
    </div>
  );
}

export function Waiting({ text = "Loading" }: { readonly text?: string }): JSX.Element {
  return (
    <p class="waiting" role="status">
      {text}
    </p>
  );
}

const standings: { readonly [standing in RunCard["standing"]]: string } = {
  waiting: "waiting to begin",
  going: "running",
  stopped: "stopped before its end",
  ended: "ended",
  fault: "cannot be read",
};

export function Standing({ card: { standing } }: { readonly card: RunCard }): JSX.Element {
  return (
    <span class={`standing ${standing}`}>
      <i aria-hidden="true" />
      {standings[standing]}
    </span>
  );
}

/** What may be wider than the screen: it scrolls by itself, with keys too. */
export function Wide({ label, children }: { readonly label: string; readonly children: ComponentChildren }): JSX.Element {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: without it keys cannot scroll it.
    <section class="scroll" aria-label={label} tabIndex={0}>
      {children}
    </section>
  );
}

interface SaveToolsProps {
  readonly title: string;
  /** Name of the file. */
  readonly file: string;
  /** For the legend. */
  readonly lines: readonly Line[];
  readonly svg: RefObject<SVGSVGElement | null>;
  readonly children?: ComponentChildren;
}

/** Saves a drawing as a picture; `children` stand before the buttons. */
export function SaveTools({ title, file, lines, svg, children }: SaveToolsProps): JSX.Element {
  return (
    <span class="tools">
      {children}
      {(["svg", "png"] as const).map((kind) => (
        <button
          type="button"
          class="tool"
          key={kind}
          aria-label={`Save ${title} as ${kind.toUpperCase()}`}
          onClick={() => svg.current && saveChart(svg.current, { title, file, lines, kind })}
        >
          {kind.toUpperCase()}
        </button>
      ))}
    </span>
  );
}
