/** The members of a group that were forked from each other, as a tree over the tokens: a line each, from its fork to its end. */
import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import type { GroupDetail, Member } from "../shapes.js";
import { digits } from "./format.js";
import { useWidth } from "./hooks.js";
import { SaveTools } from "./parts.js";

export interface TreeProps {
  readonly of: GroupDetail;
  readonly chosen: number | undefined;
  readonly onPick: (member: number) => void;
}

interface Branch {
  readonly place: number;
  readonly member: Member;
  readonly parent: Branch | undefined;
}

/** Members in the order in which their lines are drawn: each under what it was forked from. Members of a parent that is not here begin a tree. */
function branches(members: readonly Member[]): Branch[] {
  const places = new Map(members.map(({ key }, i) => [key, i]));
  const found: Branch[] = [];
  const seen = new Set<number>();
  const visit = (place: number, parent: Branch | undefined): void => {
    if (seen.has(place)) return;
    seen.add(place);
    const branch = { place, member: members[place], parent };
    found.push(branch);
    members.forEach((child, i) => {
      if (child.parent?.key === members[place].key) visit(i, branch);
    });
  };
  members.forEach(({ parent }, i) => {
    if (parent === undefined || !places.has(parent.key)) visit(i, undefined);
  });
  // Whatever names each other in a circle is drawn too.
  members.forEach((_, i) => visit(i, undefined));
  return found;
}

const rowHeight = 22;

export function Tree(props: TreeProps): JSX.Element | null {
  return props.of.members.every(({ parent }) => parent === undefined) ? null : <Drawing {...props} />;
}

function Drawing({ of: { members, step, index }, chosen, onPick }: TreeProps): JSX.Element {
  const [frame, width] = useWidth<HTMLDivElement>();
  const svg = useRef<SVGSVGElement>(null);
  const rows = branches(members);
  const longest = Math.max(1, ...members.map(({ tokens }) => tokens));
  const lines = new Map(rows.map(({ place }, i) => [place, i]));
  const x = (token: number): number => 12 + (token / longest) * Math.max(10, width - 130);
  const y = (place: number): number => 14 + (lines.get(place) ?? 0) * rowHeight;
  const forkOf = ({ member, parent }: Branch): number => (parent ? (member.parent?.fork ?? 0) : 0);
  const height = rows.length * rowHeight + 8;
  return (
    <section class="tree" aria-label="Tree">
      <div class="head">
        <span class="muted">by tokens, from left to right; R is the reward</span>
        <SaveTools title="Tree" file={`tree-${step}-${index}`} lines={[]} svg={svg} />
      </div>
      {/* The frame has its height before its width is known: nothing below moves when the drawing comes. */}
      <div ref={frame} style={{ height: `${height}px` }}>
        {width > 0 && (
          // biome-ignore lint/a11y/useSemanticElements: a drawing is no fieldset.
          <svg ref={svg} width={width} height={height} role="group" aria-label={`${members.length} answers as a tree over their tokens`}>
            {/* Apart from the branches: a stem crosses the lines of others, and a branch is to be its own line alone. */}
            {rows.map((row) => row.parent && <path key={row.place} class="stem" d={`M${x(forkOf(row))} ${y(row.parent.place)} V${y(row.place)}`} />)}
            {rows.map((row) => {
              const { place, member, parent } = row;
              const from = x(forkOf(row));
              const to = Math.max(from + 2, x(member.tokens));
              const name = `#${member.member} R ${digits(member.numbers.reward)}`;
              return (
                // biome-ignore lint/a11y/useSemanticElements: a drawing holds no buttons.
                <g
                  key={place}
                  role="button"
                  // Lower case: names of attributes are taken as written in SVG.
                  tabindex={0}
                  aria-label={`${name}, ${member.verdict.kind}${parent ? `, forked at token ${forkOf(row)}` : ""}`}
                  aria-pressed={place === chosen}
                  class={`branch ${member.verdict.kind}`}
                  onClick={() => onPick(place)}
                  onKeyDown={(event) => {
                    if (event.key === "Enter" || event.key === " ") {
                      event.preventDefault();
                      onPick(place);
                    }
                  }}
                >
                  <rect class="hit" x={0} y={y(place) - rowHeight / 2} width={width} height={rowHeight} />
                  <line x1={from} x2={to} y1={y(place)} y2={y(place)} />
                  <circle cx={to} cy={y(place)} r={4} />
                  <text class="tick" x={x(member.tokens) + 10} y={y(place)} dy="0.32em">
                    {name}
                  </text>
                </g>
              );
            })}
          </svg>
        )}
      </div>
    </section>
  );
}
