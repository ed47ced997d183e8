/** One token: its numbers, and its credit from the reward through every stage to what the loss takes. */
import type { JSX } from "preact";
import type { Member, TokenSlice } from "../shapes.js";
import { digits, signed } from "./format.js";
import { logRatio } from "./shade.js";
import { visible } from "./text.js";

interface Fall {
  readonly label: string;
  readonly value: number;
  /** What the stage changed; absent of the first, and of the weight, which is another unit and moves no credit. */
  readonly change?: number;
}

/** `coefficient.shape.0.rlsd`: the coefficient after that stage. Those of `credit` come first, then `shape` in order. */
const stageName = /^coefficient\.(credit|shape)\.(\d+)\.(.+)$/;

/** The waterfall of a token: its answer's reward and advantage, its coefficient after each stage, and with its weight in the batch. */
export function fallOf(slice: TokenSlice, member: Member, place: number): Fall[] {
  const falls: Fall[] = [];
  const push = (label: string, value: number | null | undefined): void => {
    if (value === null || value === undefined) return;
    const before = falls.at(-1);
    if (!before) return void falls.push({ label, value });
    const change = value - before.value;
    // Columns are kept in single precision.
    falls.push({ label, value, change: Math.abs(change) < 1e-5 * Math.max(Math.abs(value), Math.abs(before.value)) ? 0 : change });
  };
  const stages = Object.keys(slice.columns)
    .map((column) => ({ column, parts: stageName.exec(column) }))
    .filter(({ parts }) => parts !== null)
    .sort((a, b) => `${a.parts?.[1]}${a.parts?.[2].padStart(4, "0")}`.localeCompare(`${b.parts?.[1]}${b.parts?.[2].padStart(4, "0")}`));
  push("reward of the answer", member.numbers.reward);
  push("advantage of the answer", member.numbers.advantage);
  for (const { column, parts } of stages) push(`${parts?.[3]}, ${parts?.[1]}`, slice.columns[column][place]);
  const coefficient = slice.columns.coefficient?.[place];
  push("coefficient in the loss", coefficient);
  const weight = slice.columns.weight?.[place];
  if (coefficient !== null && coefficient !== undefined && weight !== null && weight !== undefined)
    falls.push({ label: `× weight ${digits(weight)} in the batch`, value: coefficient * weight });
  return falls;
}

export interface InspectorProps {
  readonly slice: TokenSlice;
  readonly member: Member;
  readonly place: number;
  readonly onClose: () => void;
}

export function Inspector({ slice, member, place, onClose }: InspectorProps): JSX.Element {
  const falls = fallOf(slice, member, place);
  const drawn = falls.filter(({ change }, i) => i === 0 || change !== undefined);
  const most = Math.max(1e-12, ...drawn.map(({ value }) => Math.abs(value)));
  const ratio = logRatio(slice, place);
  const column = (name: string): string => digits(slice.columns[name]?.[place]);
  const spans = member.spans.filter(({ start, end }) => place >= start && place < end).map(({ name }) => name);
  const sampled = slice.sampled[place] === 1;
  const facts: [string, string][] = [
    ["id", String(slice.ids[place])],
    ["drawn by the policy", sampled ? "yes" : "no"],
    ["reward may act", slice.reward[place] === 1 ? "yes" : "no"],
    ["loss may act", slice.loss[place] === 1 ? "yes" : "no"],
    ["log-prob, sampler", sampled ? column("behaviour") : "–"],
    ...(slice.columns.old?.[place] === null || slice.columns.old === undefined ? [] : [["log-prob, old", column("old")] as [string, string]]),
    ["log-prob, trained", column("logp")],
    ["ratio", ratio === null ? "–" : digits(Math.exp(ratio))],
    ["entropy", sampled ? column("entropy") : "–"],
    ...(spans.length > 0 ? [["spans", spans.join(", ")] as [string, string]] : []),
  ];
  return (
    <aside class="inspector" aria-label="Token">
      <div class="head">
        <code>{visible((slice.texts?.[place] || String(slice.ids[place])).replaceAll("\n", "↵"))}</code>
        <span class="muted">
          token {place} ({slice.total} in all), member {member.member}
        </span>
        <button type="button" class="icon" aria-label="Close the token" onClick={onClose}>
          ×
        </button>
      </div>
      <dl>
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <table class="fall">
        <caption>Credit, from the reward to the loss</caption>
        <tbody>
          {falls.map((fall) => {
            const { label, value, change } = fall;
            return (
              <tr key={label}>
                <th scope="row">{label}</th>
                <td class="n">{signed(value)}</td>
                <td class="bar">{drawn.includes(fall) && <Bar from={change === undefined ? 0 : value - change} to={value} most={most} />}</td>
                <td class="n muted change">{change === undefined || change === 0 ? "" : signed(change)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </aside>
  );
}

/** What a stage changed, as a bar from the number before to the one after, around 0. */
function Bar({ from, to, most }: { readonly from: number; readonly to: number; readonly most: number }): JSX.Element {
  const x = (value: number): number => 60 + 56 * Math.min(1, Math.max(-1, value / most));
  return (
    <svg width="120" height="14" aria-hidden="true">
      <line class="grid" x1="60" x2="60" y1="0" y2="14" />
      <rect x={Math.min(x(from), x(to))} width={Math.max(1.5, Math.abs(x(to) - x(from)))} y="3" height="8" fill={to >= from ? "var(--up)" : "var(--down)"} />
      <line x1={x(to)} x2={x(to)} y1="1" y2="13" stroke="var(--text)" />
    </svg>
  );
}
