/** One group: the problem, and its members side by side. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { GroupDetail, Member, TokenSlice } from "../shapes.js";
import { source } from "./data.js";
import { digits, plural } from "./format.js";
import { bringIntoView, useLoad } from "./hooks.js";
import { Inspector } from "./inspector.js";
import { MemberCard, Pairs, PlainAnswer } from "./member.js";
import { Fault, Waiting } from "./parts.js";
import type { Query } from "./route.js";
import { about, type Colouring, colourings, shadesOf } from "./shade.js";
import { Text, Value, Word } from "./text.js";
import { Tokens } from "./tokens.js";
import { Tree } from "./tree.js";

export interface GroupProps {
  readonly id: string;
  readonly step: number;
  readonly index: number;
  readonly query: { readonly [name: string]: string };
  readonly colour: Colouring;
  readonly onChange: (change: Query, quietly?: boolean) => void;
}

/** Members that are drawn before one asks for more. */
const shown = 8;

interface Loaded {
  readonly detail: GroupDetail;
  readonly slices: readonly TokenSlice[];
  readonly fault?: string;
}

/** Where tokens are gone, texts and verdicts are still there. */
async function load(id: string, step: number, index: number, most: number): Promise<Loaded> {
  const tokens = source.tokensOfAll(id, step, index, most).catch((error: Error) => error);
  const detail = await source.group(id, step, index);
  const slices = await tokens;
  return slices instanceof Error ? { detail, slices: [], fault: slices.message } : { detail, slices };
}

export function Group({ id, step, index, query, colour, onChange }: GroupProps): JSX.Element {
  const [most, setMost] = useState(shown);
  const chosen = query.member === undefined ? undefined : Number(query.member);
  const enough = Math.max(most, (chosen ?? 0) + 1);
  const { value, fault, loading } = useLoad(() => load(id, step, index, enough), [id, step, index, enough]);
  const [wholes, setWholes] = useState<{ readonly [key: string]: Member }>({});
  const frame = useRef<HTMLDivElement>(null);
  const there = value?.detail.step === step && value.detail.index === index && !loading;
  // An address that names a member or a token leads to it; what is chosen is not left below the panel that tells of it.
  useEffect(() => {
    if (!there || chosen === undefined) return;
    const member = frame.current?.querySelector(".member.chosen");
    bringIntoView(member?.querySelector('.tok[aria-selected="true"]') ?? member, frame.current?.querySelector(".inspector"));
  }, [there, chosen, query.token]);
  // Another group begins at its beginning; on a small screen it stands below the list in which it was chosen.
  const before = useRef<string | undefined>(undefined);
  useEffect(() => {
    if (!there) return;
    const [last, now] = [before.current, `${step} ${index}`];
    before.current = now;
    if (last === undefined || last === now) return;
    const top = frame.current?.getBoundingClientRect().top ?? 0;
    if (top < 0 || top > innerHeight / 3) frame.current?.scrollIntoView();
  }, [there, step, index]);
  if (fault) return <Fault text={fault} />;
  if (!value) return <Waiting />;
  const { detail, slices } = value;
  const shades = shadesOf(
    colour,
    slices.filter((slice) => slice !== undefined),
  );
  const token = query.token === undefined ? undefined : Number(query.token);
  const order = detail.members.map((_, i) => i).slice(0, enough);
  if (query.sort === "reward") order.sort((a, b) => (detail.members[b].numbers.reward ?? -1e9) - (detail.members[a].numbers.reward ?? -1e9));
  const asText = query.as === "text";
  const selected = chosen === undefined ? undefined : slices[chosen];
  const whole = (m: number) => () => {
    source.group(id, step, index, m).then((all) => setWholes((before) => ({ ...before, [all.members[m].key]: all.members[m] })));
  };
  return (
    <div class={`group ${loading ? "old" : ""}`} ref={frame}>
      <Problem of={detail} />
      {value.fault && <Fault text={`Tokens are missing: ${value.fault}`} />}
      {detail.untold !== undefined && <p class="muted">Tokens are shown by number: {detail.untold}.</p>}
      <Tree of={detail} chosen={chosen} onPick={(member) => onChange({ member, token: undefined }, true)} />
      <div class="toolbar">
        <label>
          Colour
          <select value={colour} title={about[colour]} onChange={(event) => onChange({ colour: event.currentTarget.value }, true)}>
            {colourings.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
        {shades.ends && (
          <span class={`scale ${colour === "coefficient" || colour === "ratio" ? "two" : "one"}`}>
            {shades.ends[0]} <i class="ramp" aria-hidden="true" /> {shades.ends[1]}
          </span>
        )}
        {shades.silent && <span class="muted">{shades.silent}</span>}
        <label>
          <input type="checkbox" checked={asText} onChange={() => onChange({ as: asText ? undefined : "text" }, true)} /> plain text
        </label>
        <label>
          <input
            type="checkbox"
            checked={query.sort === "reward"}
            onChange={(event) => onChange({ sort: event.currentTarget.checked ? "reward" : undefined }, true)}
          />{" "}
          best first
        </label>
        <span class="muted about">{about[colour]}</span>
      </div>
      <div class="members">
        {order.map((m) => (
          <MemberCard key={detail.members[m].key} of={wholes[detail.members[m].key] ?? detail.members[m]} chosen={m === chosen} detail={detail}>
            {!asText && slices[m] ? (
              <Tokens
                slice={slices[m]}
                member={detail.members[m]}
                shades={shades}
                chosen={m === chosen ? token : undefined}
                onPick={(place) => onChange({ member: m, token: place }, true)}
                more={(from) => source.tokens(id, step, index, m, from)}
              />
            ) : (
              <PlainAnswer of={wholes[detail.members[m].key] ?? detail.members[m]} onWhole={whole(m)} />
            )}
          </MemberCard>
        ))}
      </div>
      {detail.members.length > order.length && (
        <p>
          <button type="button" onClick={() => setMost(most + 16)}>
            Show more of {plural(detail.members.length, "member")}
          </button>
        </p>
      )}
      {selected && token !== undefined && chosen !== undefined && token < selected.ids.length && (
        <Inspector slice={selected} member={detail.members[chosen]} place={token} onClose={() => onChange({ token: undefined }, true)} />
      )}
    </div>
  );
}

function Problem({ of }: { readonly of: GroupDetail }): JSX.Element {
  const { problem } = of;
  const system = problem.prompt.filter(({ role }) => role === "system");
  const others = problem.prompt.filter(({ role }) => role !== "system");
  const notes = Object.keys(of.notes as object).length + Object.keys(of.problemNotes as object).length;
  return (
    <section class="problem" aria-label="Problem">
      <div class="line">
        <b>
          <Word text={problem.key} />
        </b>
        <span class="muted">
          step {of.step}, group {of.index} ({of.groups} in all), {plural(of.members.length, "member")}
          {of.kind !== "main" && `, ${of.kind}`}
          {of.weight !== 1 && `, weight ${digits(of.weight)}`}
        </span>
        {Object.entries(problem.tags ?? {}).map(([name, value]) => (
          <span class="tag" key={name}>
            <Word text={`${name}=${String(value)}`} />
          </span>
        ))}
      </div>
      {system.map(({ content }) => (
        <details key={content.text}>
          <summary>System message</summary>
          <Text of={content} />
        </details>
      ))}
      {others.map(({ role, content }, i) => (
        <div class="message" key={i}>
          <span class="muted">{role}</span>
          <Text of={content} />
        </div>
      ))}
      <div class="message">
        <span class="muted">reference</span>
        {problem.reference.answer === undefined ? <span class="muted">{problem.reference.state}</span> : <Value of={problem.reference.answer} />}
      </div>
      <details>
        <summary>As the model saw it{notes > 0 && ", and what methods noted"}</summary>
        {of.contexts.map(({ label, tokens, text }) => (
          <div class="message" key={label}>
            <span class="muted">
              {label}, {plural(tokens, "token")}
            </span>
            {text ? <Text of={text} /> : <span class="muted">not to be had</span>}
          </div>
        ))}
        {problem.privileged !== undefined && <Pairs title="known to training alone" of={problem.privileged} />}
        <Pairs title="notes on the problem" of={of.problemNotes} />
        <Pairs title="notes on the group" of={of.notes} />
      </details>
    </section>
  );
}
