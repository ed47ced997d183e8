/** Runs or methods beside each other: which runs, their curves in bands, differences with intervals, and single problems. What is chosen stands in the address. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { comparable, metricUnasked, unasked } from "../chosen.js";
import type { ComparedArm, Comparison, Home } from "../shapes.js";
import { Chart, type Range } from "./chart.js";
import { source } from "./data.js";
import { count, digits, percent, plural } from "./format.js";
import { useLoad, useNews } from "./hooks.js";
import { Fault, Waiting, Wide } from "./parts.js";
import { Picker } from "./picker.js";
import { Problems } from "./problems.js";
import { address, go, type Query } from "./route.js";
import { mostOf, Spread } from "./spread.js";
import { Word } from "./text.js";

interface CompareProps {
  readonly home: Home;
  readonly query: { readonly [name: string]: string };
}

/** Milliseconds between two comparisons of runs that go on: each reads them from their start. */
const pauseMs = 10_000;

export function Compare({ home, query }: CompareProps): JSX.Element {
  const all = comparable(home);
  const named = query.runs?.split(",").filter((id) => all.some((run) => run.id === id));
  const chosen = named ?? unasked(home);
  const metric = query.metric || metricUnasked(home);
  const asked = chosen.join(",");
  const news = useSlowNews(chosen);
  const { value, fault, loading } = useLoad(() => (asked === "" ? Promise.resolve(undefined) : source.compare(chosen, metric)), [asked, metric, news]);
  const metrics = useMetrics(home.runs.find(({ id }) => chosen.includes(id))?.id);
  const put = (change: Query): void => go(address(["compare"], { ...query, ...change }), true);
  return (
    <>
      <h1>Compare</h1>
      <Picker {...{ all, chosen, metric, metrics, onChange: put }} first={value?.arms ?? []} />
      {fault !== undefined && <Fault text={fault} />}
      {!value && !fault && (asked === "" ? <Waiting text="Choose runs above." /> : <Waiting text="Comparing" />)}
      {value && (
        <div class={loading && news === 0 ? "old" : ""}>
          <Report of={value} />
          <Problems of={value} query={query} onChange={put} />
        </div>
      )}
    </>
  );
}

/** Numbers that a run has: those of its evaluations, and of its steps but shares and clocks. */
function useMetrics(run: string | undefined): readonly string[] {
  const { value } = useLoad(async () => (run === undefined ? [] : Object.keys((await source.overview(run)).table.columns)), [run]);
  return source.metrics ?? ["eval.score", ...(value ?? []).filter((name) => !/^(clock|verdict|reason)\./.test(name))];
}

/** News of runs, at most once in a while. */
function useSlowNews(runs: readonly string[]): number {
  const news = useNews(runs);
  const [slow, set] = useState(0);
  const last = useRef(0);
  useEffect(() => {
    if (news === 0) return;
    const wait = Math.max(0, last.current + pauseMs - performance.now());
    const timer = setTimeout(() => {
      last.current = performance.now();
      set(news);
    }, wait);
    return () => clearTimeout(timer);
  }, [news]);
  return slow;
}

function Report({ of: { report, missing } }: { readonly of: Comparison }): JSX.Element {
  const [zoom, setZoom] = useState<Range | undefined>();
  const [at, setAt] = useState<number | undefined>();
  const { metric, arms } = report;
  const share = arms.every(({ final, curve }) => [final.mean, ...curve.flatMap(({ low, high }) => [low, high])].every((value) => value >= 0 && value <= 1));
  const drawn = arms.filter(({ curve }) => curve.length > 0);
  return (
    <>
      {drawn.length > 0 && (
        <div class="one-chart">
          <Chart
            title={metric}
            about="Mean over the runs of a side, in a band from the lowest to the highest"
            share={share}
            height={300}
            file={`compare-${metric}`}
            {...{ zoom, at }}
            onZoom={setZoom}
            onAt={setAt}
            lines={drawn.map(({ label, curve }) => ({
              label,
              colour: arms.findIndex((arm) => arm.label === label),
              steps: curve.map(({ step }) => step),
              values: curve.map(({ mean }) => mean),
              low: curve.map(({ low }) => low),
              high: curve.map(({ high }) => high),
            }))}
          />
        </div>
      )}
      <Differences {...{ arms, metric, share }} />
      {[...report.notes, ...missing].length > 0 && (
        <ul class="notices">
          {[...report.notes, ...missing].map((text) => (
            <li key={text}>
              <Word text={text} />
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

interface DifferencesProps {
  readonly arms: readonly ComparedArm[];
  readonly metric: string;
  readonly share: boolean;
}

function Differences({ arms, metric, share }: DifferencesProps): JSX.Element {
  const show = share ? percent : digits;
  const change = (value: number): string => `${value > 0 ? "+" : ""}${share ? Number((100 * value).toFixed(1)) : digits(value)}`;
  const span = (interval: { readonly low: number; readonly high: number } | null, text: (value: number) => string): string =>
    interval ? `${text(interval.low)} to ${text(interval.high)}` : "no interval";
  const rows = arms.map(({ difference }) => ({ mean: difference?.mean ?? null, interval: difference?.seeds ?? null, thin: difference?.problems ?? null }));
  const most = mostOf(rows);
  const [base] = arms;
  return (
    <section aria-label="Differences">
      <h2>
        {metric} at the end, and differences to {base ? <Word text={base.label} /> : "the first"}
        {share && ", in points"}; 95 % intervals
      </h2>
      <Wide label="Differences">
        <table class="differences">
          <thead>
            <tr>
              <th scope="col">side</th>
              <th scope="col" class="n">
                runs
              </th>
              <th scope="col" class="n">
                mean
              </th>
              <th scope="col" class="n">
                difference
              </th>
              <th scope="col" class="n">
                over seeds
              </th>
              <th scope="col" class="n">
                over problems
              </th>
              <th scope="col">thick: seeds, thin: problems</th>
              <th scope="col" class="n">
                area
              </th>
              <th scope="col" class="n">
                tokens drawn
              </th>
            </tr>
          </thead>
          <tbody>
            {arms.map(({ label, runs, final, difference, area, area_difference: way, tokens }, i) => (
              <tr key={label}>
                <th scope="row">
                  <i class="dot" style={{ background: `var(--c${i % 8})` }} />
                  <Word text={label} />
                </th>
                <td class="n" title={runs.map(({ seed, final: end }) => `seed ${seed ?? "–"}: ${show(end)}`).join("\n")}>
                  {runs.length}
                </td>
                <td class="n">
                  {show(final.mean)}
                  <small class="under">{span(final.interval, show)}</small>
                </td>
                <td class="n">
                  {difference ? change(difference.mean) : ""}
                  {difference && <small class="under">{difference.pairs === 0 ? "no pairs" : plural(difference.pairs, "pair")}</small>}
                </td>
                <td class="n">{difference && span(difference.seeds, change)}</td>
                <td class="n">{difference && span(difference.problems, change)}</td>
                <td>{difference && <Spread {...rows[i]} most={most} />}</td>
                <td class="n">
                  {area ? show(area.mean) : "–"}
                  {way && <small class="under">{change(way.mean)}</small>}
                </td>
                <td class="n">{count(Math.round(tokens.sampled))}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Wide>
    </section>
  );
}
