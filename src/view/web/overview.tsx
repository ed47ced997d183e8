/** A run's numbers over its steps, and in plain words whether it learns. */
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Overview as Data, Table } from "../shapes.js";
import { Chart, type Line, type Range, smoothed } from "./chart.js";
import { source } from "./data.js";
import { count, digits, percent, plural } from "./format.js";
import { useNews } from "./hooks.js";
import { Fault, Standing, Waiting } from "./parts.js";
import { address, go, type Query } from "./route.js";
import { Value, Word } from "./text.js";

interface Plot {
  readonly title: string;
  readonly about: string;
  /** Names of columns, or how they begin where they end in a star. */
  readonly names: readonly string[];
  readonly share?: boolean;
  readonly unit?: string;
  /** What a number is divided by. */
  readonly per?: number;
}

const sections: readonly { readonly title: string; readonly plots: readonly Plot[] }[] = [
  {
    title: "Learning",
    plots: [
      { title: "Reward", about: "Mean reward of the scored answers of a batch", names: ["reward", "reward.*"] },
      { title: "Held-out", about: "Right answers to held-out problems, with 95 % intervals", names: [], share: true, unit: "95 % intervals" },
      { title: "Entropy", about: "Mean entropy of the distributions that tokens were drawn from, nats a token", names: ["entropy"], unit: "nats a token" },
      {
        title: "Groups without signal",
        about: "Share of groups that teach nothing, and why",
        names: ["groups_silent", "groups.equal", "groups.one_scored", "groups.unscored"],
        share: true,
      },
    ],
  },
  {
    title: "Answers",
    plots: [
      {
        title: "Verdicts",
        about: "Share of the answers by kind of verdict",
        names: ["verdict.accept", "verdict.reject", "verdict.partial", "verdict.unscored"],
        share: true,
      },
      { title: "Reasons", about: "Share of the answers that were not accepted, by reason", names: ["reason.*"], share: true },
      { title: "Length", about: "Tokens of a response, its end token included", names: ["tokens_mean", "tokens_max"], unit: "tokens" },
      { title: "Cut off", about: "Share of answers cut off by max_tokens", names: ["truncated"], share: true },
      { title: "Turns", about: "Actions of a conversation", names: ["turns", "turns_max"], unit: "actions" },
    ],
  },
  {
    title: "Updates",
    plots: [
      { title: "Gradient norm", about: "Mean norm of the gradient over the updates, before clipping", names: ["grad_norm"] },
      {
        title: "Clipped tokens",
        about: "Share of tokens whose ratio lies beyond a bound, so that they have no gradient",
        names: ["clip_low", "clip_high", "clip_dual"],
        share: true,
      },
      { title: "Ratio", about: "Probability under the weights that are trained over that under those of the rollout", names: ["ratio", "ratio_max"] },
      {
        title: "Sampler against trainer",
        about: "Difference of log-probs of the same tokens at the same weights, nats a token",
        names: ["gap_mean", "gap_max", "gap_kl"],
        unit: "nats",
      },
      {
        title: "KL",
        about: "Of the weights of the rollout, or of the reference, to the present ones",
        names: ["kl_k1", "kl_k3", "kl_reference", "kl_teacher"],
        unit: "nats",
      },
      { title: "Loss", about: "In the first epoch, each minibatch before its step; near 0 on-policy", names: ["loss"] },
      { title: "Learning rate", about: "Of the last update of the step", names: ["lr"] },
    ],
  },
  {
    title: "Machine",
    plots: [
      {
        title: "Speed",
        about: "Tokens that are sampled, and that are trained on, in a second of either",
        names: ["clock.sampled_per_s", "clock.trained_per_s"],
        unit: "tokens a second",
      },
      { title: "Idle", about: "Share of the step in which the engine's processes computed nothing", names: ["clock.idle"], share: true },
      {
        title: "Time of a step",
        about: "All of it, sampling with judging, coefficients, training",
        names: ["clock.ms", "clock.sample_ms", "clock.coefficients_ms", "clock.train_ms", "clock.wait_ms"],
        unit: "seconds",
        per: 1000,
      },
    ],
  },
];

/** Curves of one chart: more cannot be told apart. */
const mostLines = 8;

function namesOf(table: Table, wanted: readonly string[]): string[] {
  const all = Object.keys(table.columns);
  return wanted.flatMap((name) => (name.endsWith("*") ? all.filter((each) => each.startsWith(name.slice(0, -1))) : all.includes(name) ? [name] : []));
}

const last = (column: readonly (number | null)[] | undefined): number | null => column?.findLast((value) => value !== null) ?? null;

/** Adds the points of a later answer to those that are there; the last one may have been of some steps yet, and comes again. */
function joined(before: Data | undefined, next: Data): Data {
  const { after } = next;
  if (before === undefined || after === undefined) return next;
  const { every, steps, columns: all } = before.table;
  const kept = steps.filter((step) => step <= after).length;
  const table = { steps: steps.slice(0, kept), columns: Object.fromEntries(Object.entries(all).map(([name, column]) => [name, column.slice(0, kept)])) };
  const names = new Set([...Object.keys(table.columns), ...Object.keys(next.table.columns)]);
  const nulls = (length: number): null[] => new Array<null>(length).fill(null);
  const columns = Object.fromEntries(
    [...names].map((name) => [name, [...(table.columns[name] ?? nulls(table.steps.length)), ...(next.table.columns[name] ?? nulls(next.table.steps.length))]]),
  );
  return { ...next, table: { every, steps: [...table.steps, ...next.table.steps], columns } };
}

/** A run's overview that grows with the run. */
export function useOverview(id: string): { readonly value?: Data; readonly fault?: string } {
  const news = useNews([id]);
  const [state, set] = useState<{ readonly value?: Data; readonly fault?: string }>({});
  const held = useRef<Data | undefined>(undefined);
  useEffect(() => {
    let stale = false;
    const { current } = held;
    const after = current?.card.id === id ? current.table.steps.at(-2) : undefined;
    const had = current && after !== undefined ? { after, generation: current.generation, every: current.table.every } : undefined;
    source.overview(id, had).then(
      (next) => {
        if (stale) return;
        held.current = joined(had && current, next);
        set({ value: held.current });
      },
      (error: unknown) => stale || set({ ...(held.current && { value: held.current }), fault: (error as Error).message }),
    );
    return () => {
      stale = true;
    };
  }, [id, news]);
  return state.value && state.value.card.id !== id ? {} : state;
}

export interface OverviewProps {
  readonly id: string;
  /** How the curves are drawn, as it stands in the address. */
  readonly query: { readonly [name: string]: string };
}

const usualSmoothing = 0.6;

/** The part of the run that an address zooms into: `100-250`. */
function rangeOf(text: string | undefined): Range | undefined {
  const [, from, to] = /^(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)$/.exec(text ?? "") ?? [];
  return from !== undefined && to !== undefined && Number(from) < Number(to) ? { from: Number(from), to: Number(to) } : undefined;
}

export function Overview({ id, query }: OverviewProps): JSX.Element {
  const { value, fault } = useOverview(id);
  const given = Number(query.smooth ?? usualSmoothing);
  const [smooth, setSmooth] = useState(given >= 0 && given < 1 ? given : usualSmoothing);
  const logY = query.log?.includes("y") ?? false;
  const logX = query.log?.includes("x") ?? false;
  const zoom = useMemo(() => rangeOf(query.zoom), [query.zoom]);
  const put = (change: Query): void => go(address(["run", id], { ...query, ...change }), true);
  const setLog = (y: boolean, x: boolean): void => put({ log: `${y ? "y" : ""}${x ? "x" : ""}` });
  const setZoom = (range: Range | undefined): void => put({ zoom: range && `${Math.max(0, round(range.from))}-${round(range.to)}` });
  const [at, setAt] = useState<number | undefined>();
  const plots = useMemo(() => (value ? plotsOf(value, smooth) : []), [value, smooth]);
  if (!value) return fault ? <Fault text={fault} /> : <Waiting />;
  if (value.card.fault !== undefined) return <Fault text={value.card.fault} />;
  const shared = { logX, zoom, onZoom: setZoom, at, onAt: setAt };
  return (
    <>
      {fault && <Fault text={fault} />}
      <Summary of={value} />
      <Verdict of={value} />
      <fieldset class="toolbar">
        <legend class="sr">Curves</legend>
        <label>
          Smoothing
          <input
            type="range"
            min="0"
            max="0.98"
            step="0.02"
            value={smooth}
            onInput={(event) => setSmooth(Number(event.currentTarget.value))}
            // Once it is let go: browsers slow down pages that write their address many times a second.
            onChange={(event) => put({ smooth: Number(event.currentTarget.value) === usualSmoothing ? undefined : event.currentTarget.value })}
          />
          <output>{smooth === 0 ? "off" : smooth.toFixed(2)}</output>
        </label>
        <label>
          <input type="checkbox" checked={logY} onChange={(event) => setLog(event.currentTarget.checked, logX)} /> log values
        </label>
        <label>
          <input type="checkbox" checked={logX} onChange={(event) => setLog(logY, event.currentTarget.checked)} /> log steps
        </label>
        <button type="button" disabled={!zoom} onClick={() => setZoom(undefined)}>
          Whole run
        </button>
        <span class="muted">{value.table.every > 1 ? `Each point is the mean of ${value.table.every} steps. ` : ""}Drag over a chart to zoom.</span>
      </fieldset>
      {value.table.steps.length === 0 && value.evaluations.length === 0 ? (
        <Waiting text={value.card.standing === "going" ? "The first step is under way." : "The run has no step yet."} />
      ) : (
        plots.map(({ title, charts }) => (
          <section key={title} aria-label={title}>
            <h2>{title}</h2>
            <div class="charts">
              {charts.map(({ lines, per: _, names: __, ...plot }) => (
                <Chart key={plot.title} {...plot} {...shared} lines={lines} logY={logY} file={`${value.card.name}-${plot.title}`} />
              ))}
            </div>
          </section>
        ))
      )}
      <Notices of={value} />
      <details class="fold">
        <summary>Configuration as resolved</summary>
        <Value of={JSON.stringify(value.config, null, 2)} />
      </details>
    </>
  );
}

const round = (step: number): number => Number(step.toFixed(2));

function plotsOf(value: Data, smooth: number): { title: string; charts: (Plot & { lines: Line[] })[] }[] {
  const { table } = value;
  const seen = new Set<string>(["reward_min", "reward_max"]);
  const lineOf = (name: string, per = 1): Line => {
    const column = per === 1 ? table.columns[name] : table.columns[name].map((each) => (each === null ? null : each / per));
    const values = smoothed(column, smooth);
    return { label: labelOf(name), name, steps: table.steps, values, ...(smooth > 0 && { raw: column }) };
  };
  const made = sections.map(({ title, plots }) => ({
    title,
    charts: plots.flatMap((plot) => {
      if (plot.title === "Held-out") return value.evaluations.length === 0 ? [] : [{ ...plot, lines: heldoutLines(value) }];
      const names = namesOf(table, plot.names);
      for (const name of names) seen.add(name);
      const lines = names
        .filter((name) => names.length === 1 || table.columns[name].some((each) => each !== null && each !== 0))
        .slice(0, mostLines)
        .map((name) => lineOf(name, plot.per));
      return names.length === 0 ? [] : [{ ...plot, lines: lines.length === 0 ? [lineOf(names[0], plot.per)] : lines }];
    }),
  }));
  const others = Object.keys(table.columns).filter((name) => !seen.has(name) && new Set(table.columns[name]).size > 1);
  const rest = others.map((name) => ({ title: name, about: "docs/metrics.md says what it is", names: [name], lines: [lineOf(name)] }));
  return [...made, { title: "Further numbers", charts: rest }].filter(({ charts }) => charts.length > 0);
}

/** Columns in words, where their chart does not say all. */
const labels: { readonly [name: string]: string } = {
  groups_silent: "all of them",
  "groups.equal": "all scores equal",
  "groups.one_scored": "one answer with a score",
  "groups.unscored": "no answer with a score",
  tokens_mean: "mean",
  tokens_max: "longest",
  turns: "mean",
  turns_max: "most",
  clip_low: "below the lower bound",
  clip_high: "above the upper bound",
  clip_dual: "beyond the dual bound",
  ratio: "mean",
  ratio_max: "largest",
  gap_mean: "mean",
  gap_max: "largest",
  gap_kl: "KL",
  kl_k1: "mean log ratio (k1)",
  kl_k3: "k3 of the rollout",
  kl_reference: "to the reference",
  kl_teacher: "to the teacher",
  "clock.ms": "all",
  "clock.sample_ms": "sampling",
  "clock.coefficients_ms": "coefficients",
  "clock.train_ms": "training",
  "clock.wait_ms": "waiting",
  "clock.sampled_per_s": "sampled",
  "clock.trained_per_s": "trained",
};

const labelOf = (name: string): string => labels[name] ?? name.replace(/^(verdict|reason|clock|groups)\./, "");

function heldoutLines({ evaluations }: Data): Line[] {
  const steps = evaluations.map(({ step }) => step);
  const kinds = new Map(evaluations.flatMap(({ estimates }) => estimates.map(({ name, k }) => [`${name}@${k}`, { name, k }] as const)));
  const lines = [...kinds].map(([label, { name, k }]): Line => {
    const of = evaluations.map(({ estimates }) => estimates.find((each) => each.name === name && each.k === k));
    const values = of.map((each) => each?.value ?? null);
    return { label, steps, values, low: of.map((each) => each?.interval?.low ?? null), high: of.map((each) => each?.interval?.high ?? null), dots: true };
  });
  // pass@1 is the mean of the answers by another name.
  const [first, ...others] = lines;
  return first ? [first, ...others.filter(({ values }) => values.some((value, i) => value !== first.values[i]))].slice(0, mostLines) : [];
}

function Summary({ of }: { readonly of: Data }): JSX.Element {
  const { card, table, evaluations } = of;
  const evaluation = evaluations.findLast(({ score }) => score !== null);
  const interval = evaluation?.estimates.find(({ name }) => name === "avg")?.interval;
  const facts: [string, string, string?][] = [
    ["step", card.steps > 0 ? `${count(card.step)} / ${count(card.steps)}` : count(card.step)],
    ["reward", digits(last(table.columns.reward))],
    ["held-out", percent(evaluation?.score), interval ? `${percent(interval.low)} to ${percent(interval.high)}` : undefined],
    ["entropy", digits(last(table.columns.entropy))],
    ["silent groups", percent(last(table.columns.groups_silent))],
    ["cut off", percent(last(table.columns.truncated))],
    ["rollouts", count(card.rollouts)],
  ];
  return (
    <div class="summary">
      <div class="facts">
        {facts.map(([name, value, more]) => (
          <div class="fact" key={name}>
            <span>{name}</span>
            <b>{value}</b>
            {more && <small>{more}</small>}
          </div>
        ))}
      </div>
      <p class="settings">
        <Standing card={card} />{" "}
        {of.settings.map(([name, value]) => (
          <span key={name}>
            <span class="muted">{name}</span> <Word text={value} />
          </span>
        ))}
      </p>
    </div>
  );
}

function Verdict({ of }: { readonly of: Data }): JSX.Element {
  const { insight } = of;
  const marks = { good: "✓", note: "•", bad: "!" };
  const order = { bad: 0, note: 1, good: 2 };
  const remarks = [...insight.remarks].sort((a, b) => (a.about === "learning" ? -1 : order[a.level]) - (b.about === "learning" ? -1 : order[b.level]));
  return (
    <section class={`insight ${insight.verdict.replaceAll(" ", "-")}`} aria-label="Does it learn?">
      <h2>{insight.headline}</h2>
      <ul>
        {remarks.map(({ level, text }) => (
          <li key={text} class={level}>
            <i class="mark" aria-hidden="true">
              {marks[level]}
            </i>
            <span>
              {level === "bad" && <span class="sr">Problem: </span>}
              <Word text={text} />
            </span>
          </li>
        ))}
      </ul>
      {of.card.rollouts > 0 && (
        <p>
          <a href={address(["run", of.card.id, "rollouts"])}>Look at the rollouts</a>
        </p>
      )}
    </section>
  );
}

function Notices({ of: { notices, damage, end } }: { readonly of: Data }): JSX.Element | null {
  if (notices.length === 0 && damage.length === 0 && end === undefined) return null;
  return (
    <details class="fold" open={damage.length > 0}>
      <summary>{plural(notices.length + damage.length, "notice")} of the run</summary>
      <ul class="notices">
        {damage.map((text) => (
          <li key={text} class="bad">
            {text}
          </li>
        ))}
        {notices.map(({ step, kind, text }) => (
          <li key={`${step}${text}`}>
            <span class="muted">
              step {step}, {kind}
            </span>{" "}
            <Word text={text} />
          </li>
        ))}
      </ul>
    </details>
  );
}
