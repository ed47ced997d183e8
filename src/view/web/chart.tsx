/** A chart of lines over the steps, as SVG: drawn by d3's scales and shapes, so that the screen and a saved picture are one drawing. */
import { scaleLinear, scaleLog } from "d3-scale";
import { area, line } from "d3-shape";
import type { JSX } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { digits, percent } from "./format.js";
import { useWidth } from "./hooks.js";
import { SaveTools } from "./parts.js";

export interface Line {
  readonly label: string;
  /** What the run calls the number, where the label is another. */
  readonly name?: string;
  readonly steps: readonly number[];
  readonly values: readonly (number | null)[];
  /** Drawn faintly behind: what `values` is the smoothed form of. */
  readonly raw?: readonly (number | null)[];
  /** Ends of an interval or band at each step. */
  readonly low?: readonly (number | null)[];
  readonly high?: readonly (number | null)[];
  /** Dots and bars in place of a band: measurements that are few. */
  readonly dots?: boolean;
  /** Number of its colour; default: its place. */
  readonly colour?: number;
}

export interface Range {
  readonly from: number;
  readonly to: number;
}

export interface ChartProps {
  readonly title: string;
  /** One sentence: what the numbers are. */
  readonly about?: string;
  /** What its numbers are counted in, beside the title. */
  readonly unit?: string;
  readonly lines: readonly Line[];
  readonly share?: boolean;
  readonly logY?: boolean;
  readonly logX?: boolean;
  readonly zoom?: Range | undefined;
  readonly onZoom?: (range: Range | undefined) => void;
  /** The step that the pointer is at, shared by all charts. */
  readonly at?: number | undefined;
  readonly onAt?: (step: number | undefined) => void;
  readonly height?: number;
  /** Name of a saved file. */
  readonly file?: string;
}

const margin = { left: 50, right: 10, top: 8, bottom: 22 };
export const colourOf = (index: number): string => `var(--c${index % 8})`;

export function Chart(props: ChartProps): JSX.Element {
  const { title, about, unit, lines, share = false, logY = false, logX = false, zoom, onZoom, at, onAt, height = 168, file = title } = props;
  const [frame, width] = useWidth<HTMLDivElement>();
  const svg = useRef<SVGSVGElement>(null);
  const [hidden, hide] = useState<ReadonlySet<string>>(new Set());
  const [here, setHere] = useState(false);
  const [brush, setBrush] = useState<{ from: number; to: number } | undefined>();
  const clip = useId();
  const drawn = lines.filter(({ label }) => !hidden.has(label));
  const inside = (step: number): boolean => (zoom === undefined || (step >= zoom.from && step <= zoom.to)) && (!logX || step > 0);
  const format = share ? percent : digits;

  const steps = [...new Set(drawn.flatMap((each) => each.steps.filter(inside)))].sort((a, b) => a - b);
  const ends = zoom ?? { from: steps[0] ?? 0, to: steps.at(-1) ?? 1 };
  const x = (logX ? scaleLog() : scaleLinear()).domain(domainOf(ends, logX)).range([margin.left, Math.max(margin.left + 10, width - margin.right)]);
  const [low, high] = extent(drawn, inside, { log: logY, share });
  const y = (logY ? scaleLog() : scaleLinear()).domain([low, high]).range([height - margin.bottom, margin.top]);
  if (!logY) y.nice(4);

  const near = at === undefined ? undefined : nearest(steps, at);
  const stepAt = (event: { clientX: number }): number => x.invert(event.clientX - (svg.current?.getBoundingClientRect().left ?? 0));
  const clamp = (value: number): number => Math.min(x.range()[1], Math.max(margin.left, value));
  const pixelAt = (event: { clientX: number }): number => clamp(event.clientX - (svg.current?.getBoundingClientRect().left ?? 0));
  /** At a step of this chart; the others mark it alone, since what they would say covers their curves. */
  const point = (step: number | undefined): void => {
    setHere(step !== undefined);
    onAt?.(step);
  };
  const move = (by: number): void => {
    const place = near === undefined ? (by > 0 ? -1 : steps.length) : steps.indexOf(near);
    point(steps[Math.min(steps.length - 1, Math.max(0, place + by))]);
  };
  const closer = (): void => {
    const middle = near ?? (ends.from + ends.to) / 2;
    const half = Math.max(1, (ends.to - ends.from) / 4);
    onZoom?.({ from: Math.max(ends.from, middle - half), to: Math.min(ends.to, middle + half) });
  };
  const keys: { readonly [key: string]: () => void } = {
    ArrowLeft: () => move(-1),
    ArrowRight: () => move(1),
    Home: () => point(steps[0]),
    End: () => point(steps.at(-1)),
    "+": closer,
    "-": () => onZoom?.(undefined),
    Escape: () => point(undefined),
  };
  const ticksY = logY ? apart(y.ticks(4), y, 20) : y.ticks(4);
  const wholeSteps = x.ticks(Math.max(2, Math.floor(width / 90))).filter((tick) => Number.isInteger(tick));
  const ticksX = logX ? apart(wholeSteps, x, 34) : wholeSteps;
  // Dots at the ends are drawn whole; lines of a part that is zoomed into end there.
  const room = zoom === undefined && drawn.some(isDotted) ? 4 : 0;
  const empty = steps.length === 0 || width === 0;

  useEffect(() => {
    const element = svg.current;
    // A wheel or a key that scrolls the page while a chart is zoomed is not meant for both.
    const end = (): void => setBrush(undefined);
    element?.addEventListener("pointercancel", end);
    return () => element?.removeEventListener("pointercancel", end);
  }, []);

  return (
    <figure class="chart">
      <figcaption>
        <span class="title" title={about}>
          {title}
        </span>
        {unit !== undefined && <span class="unit">{unit}</span>}
        <SaveTools {...{ title, file, svg }} lines={drawn}>
          {zoom && onZoom && (
            <button type="button" class="tool" onClick={() => onZoom(undefined)}>
              whole
            </button>
          )}
        </SaveTools>
      </figcaption>
      <div class="plot" ref={frame}>
        <svg
          ref={svg}
          width={width}
          height={height}
          role="img"
          // Lower case: names of attributes are taken as written in SVG. Arrows move along the steps, as the pointer does.
          tabindex={0}
          aria-label={`${title}. ${summary(drawn, inside, format)} Arrow keys read values, plus zooms, minus shows all.`}
          onPointerMove={(event) => {
            if (brush) setBrush({ ...brush, to: pixelAt(event) });
            point(nearest(steps, stepAt(event)));
          }}
          onPointerLeave={() => !brush && point(undefined)}
          onPointerDown={(event) => {
            if (event.button !== 0 || !onZoom) return;
            svg.current?.setPointerCapture(event.pointerId);
            setBrush({ from: pixelAt(event), to: pixelAt(event) });
          }}
          onPointerUp={() => {
            if (!brush) return;
            const [a, b] = [Math.min(brush.from, brush.to), Math.max(brush.from, brush.to)];
            if (b - a > 5) onZoom?.({ from: x.invert(a), to: x.invert(b) });
            setBrush(undefined);
          }}
          onDblClick={() => onZoom?.(undefined)}
          onBlur={() => point(undefined)}
          onKeyDown={(event) => {
            const act = keys[event.key];
            if (!act) return;
            event.preventDefault();
            event.stopPropagation();
            act();
          }}
        >
          <clipPath id={clip}>
            <rect x={margin.left - room} y={0} width={Math.max(0, width - margin.left - margin.right + 2 * room)} height={height - margin.bottom + 1 + room} />
          </clipPath>
          {ticksY.map((tick) => (
            <g key={tick}>
              <line class="grid" x1={margin.left} x2={width - margin.right} y1={y(tick)} y2={y(tick)} />
              <text class="tick" x={margin.left - 6} y={y(tick)} dy="0.32em" text-anchor="end">
                {format(tick)}
              </text>
            </g>
          ))}
          {ticksX.map((tick) => (
            <text key={tick} class="tick" x={x(tick)} y={height - 7} text-anchor="middle">
              {digits(tick)}
            </text>
          ))}
          <g clip-path={`url(#${clip})`}>
            {!empty &&
              drawn.map((each) => <Curve key={each.label} of={each} colour={colourOf(each.colour ?? lines.indexOf(each))} {...{ x, y, logY, logX }} />)}
          </g>
          {near !== undefined && <line class="cursor" x1={x(near)} x2={x(near)} y1={margin.top} y2={height - margin.bottom} />}
          {brush && (
            <rect
              class="brush"
              x={Math.min(brush.from, brush.to)}
              y={margin.top}
              width={Math.abs(brush.to - brush.from)}
              height={height - margin.top - margin.bottom}
            />
          )}
          {empty && (
            <text class="tick" x={width / 2} y={height / 2} text-anchor="middle">
              no numbers yet
            </text>
          )}
        </svg>
        {here && near !== undefined && !empty && (
          <div class={`tip ${x(near) > width / 2 ? "left" : ""}`} style={{ left: `${x(near)}px` }}>
            <b>step {near}</b>
            {drawn.map((each) => {
              const place = each.steps.indexOf(near);
              const value = place < 0 ? null : (each.raw ?? each.values)[place];
              if (value === null || value === undefined) return null;
              const [a, b] = [each.low?.[place], each.high?.[place]];
              return (
                <span key={each.label}>
                  <i class="dot" style={{ background: colourOf(each.colour ?? lines.indexOf(each)) }} />
                  {each.label} <b>{format(value)}</b>
                  {a !== null && b !== null && a !== undefined && b !== undefined && a !== b && ` (${format(a)} to ${format(b)})`}
                </span>
              );
            })}
          </div>
        )}
      </div>
      {lines.length > 1 && (
        <div class="legend">
          {lines.map(({ label, name, colour }, i) => (
            <button
              type="button"
              key={label}
              title={name}
              aria-pressed={!hidden.has(label)}
              onClick={() => hide((before) => new Set(before.has(label) ? [...before].filter((each) => each !== label) : [...before, label]))}
            >
              <i class="dot" style={{ background: colourOf(colour ?? i) }} />
              {label}
            </button>
          ))}
        </div>
      )}
    </figure>
  );
}

type Scale = (value: number) => number;

/** Whether its points are drawn: measurements that are few, and a single one, which makes no line. */
const isDotted = ({ steps, dots }: Line): boolean => steps.length <= 60 && (dots === true || steps.length === 1);

/** The steps that an axis spans; around a single one there is some room. */
function domainOf({ from, to }: Range, log: boolean): [number, number] {
  if (log) return [Math.max(1, from), Math.max(2, to)];
  return from === to ? [from - 1, to + 1] : [from, to];
}

/** Of the ticks of a logarithmic axis as many as have room, powers of ten first. */
function apart(ticks: readonly number[], at: Scale, pixels: number): number[] {
  const rank = (tick: number): number => [1, 5, 2].indexOf(Math.round(tick / 10 ** Math.floor(Math.log10(tick) + 1e-9)));
  const order = [...ticks].sort((a, b) => (rank(a) < 0 ? 9 : rank(a)) - (rank(b) < 0 ? 9 : rank(b)));
  const kept: number[] = [];
  for (const tick of order) if (kept.every((other) => Math.abs(at(other) - at(tick)) >= pixels)) kept.push(tick);
  return kept.sort((a, b) => a - b);
}

function Curve({
  of,
  colour,
  x,
  y,
  logX,
  logY,
}: {
  readonly of: Line;
  readonly colour: string;
  readonly x: Scale;
  readonly y: Scale;
  readonly logX: boolean;
  readonly logY: boolean;
}): JSX.Element {
  const { steps, values, raw, low, high, dots } = of;
  const there = (list: readonly (number | null)[] | undefined, i: number): boolean => {
    const value = list?.[i];
    return value !== null && value !== undefined && (!logY || value > 0) && (!logX || steps[i] > 0);
  };
  const path = (list: readonly (number | null)[]): string =>
    line<number>()
      .defined((_, i) => there(list, i))
      .x((step) => x(step))
      .y((_, i) => y(list[i] as number))(steps as number[]) ?? "";
  const band =
    low && high && !dots
      ? (area<number>()
          .defined((_, i) => there(low, i) && there(high, i))
          .x((step) => x(step))
          .y0((_, i) => y(low[i] as number))
          .y1((_, i) => y(high[i] as number))(steps as number[]) ?? "")
      : "";
  return (
    <g>
      {band !== "" && <path class="band" d={band} fill={colour} />}
      {raw && <path class="raw" d={path(raw)} stroke={colour} />}
      <path class="line" d={path(values)} stroke={colour} />
      {dots &&
        low &&
        high &&
        steps.map(
          (step, i) =>
            there(low, i) &&
            there(high, i) && <line key={step} class="whisker" stroke={colour} x1={x(step)} x2={x(step)} y1={y(low[i] as number)} y2={y(high[i] as number)} />,
        )}
      {isDotted(of) && steps.map((step, i) => there(values, i) && <circle key={step} cx={x(step)} cy={y(values[i] as number)} r={3} fill={colour} />)}
    </g>
  );
}

/** Lowest and highest number that is to be seen, with some room where they are one; no more than all of a share. */
function extent(
  lines: readonly Line[],
  inside: (step: number) => boolean,
  { log, share }: { readonly log: boolean; readonly share: boolean },
): [number, number] {
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const { steps, values, raw, low: lows, high: highs } of lines) {
    // What is smoothed falls towards 0 without end where nothing is left; on a logarithmic axis that would be all there is to see.
    for (const list of [log && raw ? undefined : values, raw, lows, highs]) {
      list?.forEach((value, i) => {
        if (value === null || !inside(steps[i]) || (log && value <= 0)) return;
        low = Math.min(low, value);
        high = Math.max(high, value);
      });
    }
  }
  if (low > high) return log ? [0.1, 1] : [0, 1];
  // What differs in its last digits alone is one number.
  if (high - low <= 1e-5 * Math.max(Math.abs(low), Math.abs(high))) low = high;
  if (log) return low === high ? [low / 2, high * 2] : [low, high];
  if (low === high && share && low >= 0 && low <= 1) return [0, low > 0.5 || low === 0 ? 1 : 1.2 * low];
  if (low === high) return low === 0 ? [0, 1] : [Math.min(low, low * 0.9, low * 1.1), Math.max(low, low * 0.9, low * 1.1)];
  return low > 0 && low < 0.5 * high ? [0, high] : [low, high];
}

/** Of ascending steps the one that is nearest. */
function nearest(steps: readonly number[], to: number): number | undefined {
  let best: number | undefined;
  for (const step of steps) if (best === undefined || Math.abs(step - to) < Math.abs(best - to)) best = step;
  return best;
}

function summary(lines: readonly Line[], inside: (step: number) => boolean, format: (value: number | null) => string): string {
  return lines
    .map(({ label, steps, values, raw }) => {
      const place = steps.findLastIndex((step, i) => inside(step) && (raw ?? values)[i] !== null);
      return place < 0 ? `${label}: no numbers.` : `${label}: ${format((raw ?? values)[place])} at step ${steps[place]}.`;
    })
    .join(" ");
}

/** Exponential mean, with the weight of its beginning made up for (Adam's correction); gaps stay gaps. */
export function smoothed(values: readonly (number | null)[], weight: number): (number | null)[] {
  if (weight <= 0) return [...values];
  let [sum, share] = [0, 0];
  return values.map((value) => {
    if (value === null) return null;
    sum = weight * sum + (1 - weight) * value;
    share = weight * share + (1 - weight);
    return sum / share;
  });
}
