/** One answer: its text or tokens, its verdict with what that rests on, and everything else that is stored of it. */
import type { JSX } from "preact";
import type { GroupDetail, Member, ShownVerdict } from "../shapes.js";
import { digits, percent, plural, signed } from "./format.js";
import { Text, Value, Word } from "./text.js";

interface CardProps {
  readonly of: Member;
  readonly detail: GroupDetail;
  readonly chosen: boolean;
  readonly children: JSX.Element;
}

export function MemberCard({ of, detail, chosen, children }: CardProps): JSX.Element {
  const { verdict, numbers } = of;
  const ends: { readonly [stop: string]: string } = { length: "cut off", eos: "ended", stop: "stop text", cancelled: "cancelled" };
  const further = Object.entries(numbers).filter(([name]) => name !== "reward" && name !== "advantage");
  return (
    <article class={`member ${chosen ? "chosen" : ""}`} aria-label={`Member ${of.member}, ${verdict.kind}`}>
      <header>
        <b>#{of.member}</b>
        <span class={`badge ${verdict.kind}`}>{verdict.kind}</span>
        {verdict.reason !== undefined && <Word text={verdict.reason} class="muted" />}
        <span class="numbers">
          {verdict.kind === "unscored" && (numbers.reward ?? null) === null && <span class="muted">counts nowhere</span>}
          {(numbers.reward ?? null) !== null && <span>reward {digits(numbers.reward)}</span>}
          {(numbers.advantage ?? null) !== null && verdict.kind !== "unscored" && <span>advantage {signed(numbers.advantage)}</span>}
        </span>
      </header>
      {children}
      <Finding of={verdict} />
      <footer>
        {plural(of.tokens, "token")}, {ends[of.stop] ?? of.stop}
        {of.purpose !== "train" && `, ${of.purpose}`}
        {of.role !== "policy" && `, by ${of.role}`}
        <details>
          <summary>More</summary>
          <dl>
            <Fact name="key" value={of.key} />
            <Fact name="weights" value={`${of.weights} (${plural(of.policyVersion, "update")})`} />
            <Fact name="temperature" value={digits(of.temperature)} />
            {of.elapsedMs !== null && <Fact name="judged in" value={`${digits(of.elapsedMs)} ms`} />}
            <Fact name="sampled under" value={detail.contexts[of.sampledUnder]?.label ?? "–"} />
            <Fact name="trained under" value={detail.contexts[of.trainedUnder]?.label ?? "–"} />
            {of.parent && <Fact name="forked from" value={`${of.parent.key} at token ${of.parent.fork}`} />}
            {further.map(([name, value]) => (
              <Fact key={name} name={name} value={digits(value)} />
            ))}
            {of.spans.length > 0 && <Fact name="spans" value={of.spans.map(({ name, start, end }) => `${name} ${start}–${end}`).join(", ")} />}
          </dl>
          <Pairs title="notes" of={of.notes} />
        </details>
      </footer>
    </article>
  );
}

function Fact({ name, value }: { readonly name: string; readonly value: string }): JSX.Element {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        <Word text={value} />
      </dd>
    </div>
  );
}

/** Parts of a verdict and what it rests on: what was extracted and how it was read. */
function Finding({ of: { parts = {}, evidence, score, reward } }: { readonly of: ShownVerdict }): JSX.Element | null {
  const rows: [string, unknown][] = [
    ...(score === undefined ? [] : [["score", percent(score)] as [string, unknown]]),
    ...(reward === undefined ? [] : [["its own reward", digits(reward)] as [string, unknown]]),
  ];
  rows.push(...Object.entries(parts).map(([name, value]): [string, unknown] => [name, digits(value)]));
  if (evidence !== undefined && evidence !== null) rows.push(...Object.entries(evidence as object));
  if (rows.length === 0) return null;
  return (
    <dl class="finding">
      {rows.map(([name, value]) => (
        <div key={name}>
          <dt>
            <Word text={name} />
          </dt>
          <dd>
            <Value of={value} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

export function Pairs({ title, of }: { readonly title: string; readonly of: unknown }): JSX.Element | null {
  const entries = Object.entries((of ?? {}) as object);
  if (entries.length === 0) return null;
  return (
    <div class="message">
      <span class="muted">{title}</span>
      <Value of={JSON.stringify(of, null, 2)} />
    </div>
  );
}

/** The answer as text; a conversation turn by turn, what came back folded. */
export function PlainAnswer({ of, onWhole }: { readonly of: Member; readonly onWhole: () => void }): JSX.Element {
  if (!of.turns) return <Text of={of.text} whole={onWhole} />;
  return (
    <div class="turns">
      {of.turns.map(({ action, observation, verdict, info, fault, cut }, i) => (
        <div class="turn" key={i}>
          <span class="muted">turn {i + 1}</span>
          <Text of={action} whole={onWhole} />
          {observation.total > 0 && (
            <details class="observation">
              <summary>
                came back: {plural(observation.total, "character")}
                {cut !== undefined && `, ${plural(cut, "more")} left out`}
              </summary>
              <Text of={observation} whole={onWhole} />
            </details>
          )}
          {fault !== undefined && (
            <p class="bad">
              <Word text={fault} />
            </p>
          )}
          {verdict && <span class={`badge ${verdict.kind}`}>{verdict.kind}</span>}
          {Object.entries(info).map(([name, value]) => (
            <span class="tag" key={name}>
              {name} {digits(value)}
            </span>
          ))}
        </div>
      ))}
    </div>
  );
}
