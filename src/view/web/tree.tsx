/** The members of a group that were forked from each other, as a tree over the tokens: a line each, from its fork to its end. */
import type { JSX } from "preact";
import type { GroupDetail, Member } from "../shapes.js";
import { digits } from "./format.js";
import { useWidth } from "./hooks.js";

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

function Drawing({ of: { members }, chosen, onPick }: TreeProps): JSX.Element {
  const [frame, width] = useWidth<HTMLDivElement>();
  const rows = branches(members);
  const longest = Math.max(1, ...members.map(({ tokens }) => tokens));
  const x = (token: number): number => 12 + (token / longest) * Math.max(10, width - 130);
  const y = (place: number): number => 14 + rows.findIndex((row) => row.place === place) * rowHeight;
  return (
    <section class="tree" aria-label="Tree" ref={frame}>
      {/* biome-ignore lint/a11y/useSemanticElements: a drawing is no fieldset. */}
      <svg width={width} height={rows.length * rowHeight + 8} role="group" aria-label={`${members.length} answers as a tree over their tokens`}>
        {rows.map(({ place, member, parent }) => {
          const from = parent ? (member.parent?.fork ?? 0) : 0;
          return (
            // biome-ignore lint/a11y/useSemanticElements: a drawing holds no buttons.
            <g
              key={place}
              role="button"
              tabIndex={0}
              aria-label={`Member ${member.member}, ${member.verdict.kind}${parent ? `, forked at token ${from}` : ""}`}
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
              {parent && <path class="stem" d={`M${x(from)} ${y(parent.place)} V${y(place)}`} />}
              <line x1={x(from)} x2={Math.max(x(from) + 2, x(member.tokens))} y1={y(place)} y2={y(place)} />
              <circle cx={Math.max(x(from) + 2, x(member.tokens))} cy={y(place)} r={4} />
              <text class="tick" x={x(member.tokens) + 10} y={y(place)} dy="0.32em">
                #{member.member} {digits(member.numbers.reward)}
              </text>
            </g>
          );
        })}
      </svg>
    </section>
  );
}
