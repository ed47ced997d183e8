/** Shares as horizontal bars with their intervals, one a row, as one drawing that can be saved. */
import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import type { ShareOf } from "../shapes.js";
import { percent } from "./format.js";
import { useWidth } from "./hooks.js";
import { SaveTools } from "./parts.js";

export interface BarsProps {
  readonly title: string;
  readonly rows: readonly (ShareOf & { readonly label: string; readonly n: number })[];
  readonly file: string;
  /** Whether a share above 0 is a fault. */
  readonly colour: string;
}

const rowHeight = 20;
const foot = 20;

export function Bars({ title, rows, file, colour }: BarsProps): JSX.Element {
  const [frame, width] = useWidth<HTMLDivElement>();
  const svg = useRef<SVGSVGElement>(null);
  const left = Math.min(230, Math.max(110, 0.38 * width));
  const right = 52;
  const x = (share: number): number => left + share * Math.max(10, width - left - right);
  const height = rows.length * rowHeight + foot;
  const letters = Math.floor(left / 6.6);
  return (
    <figure class="chart">
      <figcaption>
        <span class="title">{title}</span>
        <SaveTools title={title} file={file} lines={[]} svg={svg} />
      </figcaption>
      <div class="plot" ref={frame} style={{ height: `${height}px` }}>
        {width > 0 && (
          <svg
            ref={svg}
            width={width}
            height={height}
            role="img"
            aria-label={`${title}. ${rows.map(({ label, share, n }) => `${label}: ${percent(share)} of ${n}.`).join(" ")}`}
          >
            {[0, 0.25, 0.5, 0.75, 1].map((tick) => (
              <g key={tick}>
                <line class="grid" x1={x(tick)} x2={x(tick)} y1={0} y2={height - foot} />
                <text class="tick" x={x(tick)} y={height - 6} text-anchor="middle">
                  {percent(tick)}
                </text>
              </g>
            ))}
            {rows.map(({ label, share, low, high, n }, i) => {
              const y = i * rowHeight;
              return (
                <g key={label}>
                  <title>{`${label}: ${percent(share)} (${percent(low)} to ${percent(high)}) of ${n}`}</title>
                  <text class="tick" x={left - 8} y={y + rowHeight / 2} dy="0.32em" text-anchor="end">
                    {label.length > letters ? `${label.slice(0, letters - 1)}…` : label}
                  </text>
                  <rect x={x(0)} y={y + 4} width={Math.max(0, x(share) - x(0))} height={rowHeight - 8} fill={colour} opacity={0.5} />
                  <line class="whisker" stroke={colour} x1={x(low)} x2={x(high)} y1={y + rowHeight / 2} y2={y + rowHeight / 2} />
                  <circle cx={x(share)} cy={y + rowHeight / 2} r={3} fill={colour} />
                </g>
              );
            })}
          </svg>
        )}
      </div>
    </figure>
  );
}
