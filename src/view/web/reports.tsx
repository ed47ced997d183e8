/** What reproductions and audits showed: their list, and one reproduction with its claims, arms and history. */
import type { JSX } from "preact";
import type { Home, ShownRecord } from "../shapes.js";
import { Clean } from "./audit.js";
import { Chart } from "./chart.js";
import { source } from "./data.js";
import { count, digits, plural } from "./format.js";
import { useLoad } from "./hooks.js";
import { Fault, Waiting, Wide } from "./parts.js";
import { address } from "./route.js";
import { mostOf, Spread } from "./spread.js";
import { Word } from "./text.js";

const tones: { readonly [outcome: string]: string } = { shown: "accept", reversed: "reject", "not shown": "partial" };

function Outcome({ of }: { readonly of: string | null }): JSX.Element {
  return <span class={`badge ${tones[of ?? ""] ?? ""}`}>{of ?? "too small to be judged"}</span>;
}

export function Reports({ home }: { readonly home: Home }): JSX.Element {
  if (home.records.length + home.audits.length === 0) {
    return (
      <div class="empty">
        <h1>No reports here</h1>
        <p>touchstone reproduce PAPER and touchstone audit VERIFIER write one; touchstone view FOLDER opens it.</p>
      </div>
    );
  }
  return (
    <>
      <h1>Reports</h1>
      {home.audits.length > 0 && <Audits of={home.audits} />}
      {home.records.length > 0 && <Records of={home.records} />}
    </>
  );
}

function Records({ of }: { readonly of: Home["records"] }): JSX.Element {
  return (
    <section aria-label="Reproductions">
      <h2>Reproductions of papers</h2>
      <Wide label="Reproductions">
        <table>
          <thead>
            <tr>
              <th scope="col">id</th>
              <th scope="col">paper</th>
              <th scope="col">outcome</th>
              <th scope="col" class="n">
                seeds
              </th>
              <th scope="col">date</th>
            </tr>
          </thead>
          <tbody>
            {of.map(({ id, paper, outcome, seeds, date }) => (
              <tr key={id}>
                <th scope="row">
                  <a href={address(["reports", id])}>{id}</a>
                </th>
                <td>
                  <Word text={paper} />
                </td>
                <td>
                  <Outcome of={outcome} />
                </td>
                <td class="n">{seeds}</td>
                <td>{date}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Wide>
    </section>
  );
}

function Audits({ of }: { readonly of: Home["audits"] }): JSX.Element {
  return (
    <section aria-label="Audits">
      <h2>Audits of verifiers</h2>
      <Wide label="Audits">
        <table>
          <thead>
            <tr>
              <th scope="col">audit</th>
              <th scope="col">verifier</th>
              <th scope="col">outcome</th>
              <th scope="col" class="n">
                right answers missed
              </th>
              <th scope="col" class="n">
                wrong ones accepted
              </th>
              <th scope="col" class="n">
                verdicts
              </th>
            </tr>
          </thead>
          <tbody>
            {of.map(({ id, name, verifier, clean, missed, wrong, verdicts }) => (
              <tr key={id}>
                <th scope="row">
                  <a href={address(["audits", id])}>
                    <Word text={name} />
                  </a>
                </th>
                <td>
                  <Word text={verifier} />
                </td>
                <td>
                  <Clean is={clean} />
                </td>
                <td class="n">
                  {count(missed[0])} of {count(missed[1])}
                </td>
                <td class="n">
                  {count(wrong[0])} of {count(wrong[1])}
                </td>
                <td class="n">{count(verdicts)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Wide>
    </section>
  );
}

export function Report({ id }: { readonly id: string }): JSX.Element {
  const { value, fault } = useLoad(() => source.record(id), [id], true);
  if (fault) return <Fault text={fault} />;
  if (!value) return <Waiting />;
  const { paper, outcome, testbed, remark, differences, failed, earlier, sabotage, seeds, date, minutes, commit } = value;
  return (
    <>
      <p class="crumb">
        <a href="#/reports">Reports</a> / {id}
      </p>
      <h1>
        <Word text={paper} /> <Outcome of={outcome} />
      </h1>
      <p class="muted prose">
        <Word text={testbed} /> {plural(seeds.length, "seed")}, {date}, {Math.round(minutes)} minutes of work, commit {commit.slice(0, 12)}.
      </p>
      {remark !== "" && (
        <p class="prose">
          <Word text={remark} />
        </p>
      )}
      <Claims of={value} />
      <Arms of={value} />
      <section aria-label="What a reader must know">
        <h2>What a reader must know</h2>
        <ul class="notices">
          {failed.map(({ arm, seed, why }) => (
            <li class="bad" key={`${arm}${seed}`}>
              {arm}, seed {seed}, yielded nothing: <Word text={why} />
            </li>
          ))}
          {differences.map((text) => (
            <li key={text}>
              differs from the paper: <Word text={text} />
            </li>
          ))}
          <li>
            {sabotage
              ? `the sabotaged method (${sabotage.about}) on two sets of seeds: ${sabotage.outcomes.map((each) => each ?? "nothing").join(", ")}`
              : "the sabotaged method was not run"}
          </li>
          {earlier.map((run) => (
            <li key={run.commit}>
              an earlier run: {run.outcome ?? "not judged"}, {plural(run.seeds, "seed")}, {run.date}, commit {run.commit.slice(0, 12)}
            </li>
          ))}
        </ul>
      </section>
    </>
  );
}

function Claims({ of: { claims } }: { readonly of: ShownRecord }): JSX.Element {
  const most = claims.map((claim) => mostOf([claim]));
  return (
    <section aria-label="Claims">
      <h2>Claims, stated beforehand; 95 % intervals over paired seeds</h2>
      <Wide label="Claims">
        <table class="snug">
          <thead>
            <tr>
              <th scope="col">claim</th>
              <th scope="col">outcome</th>
              <th scope="col" class="n">
                mean
              </th>
              <th scope="col" class="n">
                interval
              </th>
              <th scope="col">around 0; dots are seeds</th>
            </tr>
          </thead>
          <tbody>
            {claims.map(({ claim, statement, about, mean, interval, values, outcome }, i) => (
              <tr key={claim}>
                <th scope="row">
                  <Word text={claim} />
                  <div class="muted">
                    <code>
                      <Word text={statement} />
                    </code>
                  </div>
                  {about !== undefined && (
                    <div class="muted">
                      <Word text={about} />
                    </div>
                  )}
                </th>
                <td>
                  <Outcome of={outcome} />
                </td>
                <td class="n">{digits(mean)}</td>
                <td class="n">{interval ? `${digits(interval.low)} to ${digits(interval.high)}` : "no interval"}</td>
                <td>
                  <Spread {...{ mean, interval, values }} most={most[i]} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Wide>
    </section>
  );
}

function Arms({ of: { id, arms } }: { readonly of: ShownRecord }): JSX.Element {
  const metrics = [...new Set(arms.flatMap((arm) => Object.keys(arm.metrics)))];
  const curves = arms.flatMap(({ arm, curve }) => (curve && curve.length > 1 ? [{ arm, curve }] : []));
  return (
    <section aria-label="Arms">
      <h2>Arms, means over the seeds with 95 % intervals</h2>
      <Wide label="Arms">
        <table class="snug">
          <thead>
            <tr>
              <th scope="col">arm</th>
              {metrics.map((metric) => (
                <th scope="col" class="n" key={metric}>
                  {metric}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {arms.map(({ arm, about, metrics: of }) => (
              <tr key={arm}>
                <th scope="row">
                  <Word text={arm} />
                  {about !== undefined && (
                    <div class="muted">
                      <Word text={about} />
                    </div>
                  )}
                </th>
                {metrics.map((metric) => (
                  <td class="n" key={metric}>
                    {digits(of[metric]?.mean)}
                    {of[metric]?.interval && (
                      <small class="under">
                        {digits(of[metric].interval.low)} to {digits(of[metric].interval.high)}
                      </small>
                    )}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </Wide>
      {curves.length > 0 && (
        <div class="one-chart">
          <Chart
            title="Held-out score while training"
            about="Mean over the seeds, in a band from the lowest to the highest"
            height={280}
            file={`${id}-held-out`}
            lines={curves.map(({ arm, curve }) => ({
              label: arm,
              steps: curve.map(({ step }) => step),
              values: curve.map(({ mean }) => mean),
              low: curve.map(({ low }) => low),
              high: curve.map(({ high }) => high),
            }))}
          />
        </div>
      )}
    </section>
  );
}
