/** An audit of a verifier: what it misses of right answers, what it lets through of wrong ones, and examples of both. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { ShareOf, ShownAudit } from "../shapes.js";
import { Bars } from "./bars.js";
import { source } from "./data.js";
import { count, digits, percent, plural } from "./format.js";
import { useLoad } from "./hooks.js";
import { Fault, Waiting, Wide } from "./parts.js";
import { Word } from "./text.js";

export function Clean({ is }: { readonly is: boolean }): JSX.Element {
  return <span class={`badge ${is ? "accept" : "reject"}`}>{is ? "nothing to object to" : "fails"}</span>;
}

const span = ({ low, high }: ShareOf): string => `${percent(low)} to ${percent(high)}`;

export function Audit({ id }: { readonly id: string }): JSX.Element {
  const { value, fault } = useLoad(() => source.audit(id), [id], true);
  if (fault) return <Fault text={fault} />;
  if (!value) return <Waiting />;
  const { verifier, other, clean, golds, seed, verdicts, self_validation: self, in_contract: within, mutants, hacks, disagreement, median_ms, p99_ms } = value;
  const total = (list: ShownAudit["mutants"], of: "n" | "accepted"): number => list.reduce((sum, each) => sum + each[of], 0);
  const facts: [string, string, string][] = [
    ["references accepted as they are", `${count(self.accepted)} of ${count(self.n)}`, span(self)],
    ["right answers missed", `${count(within.failures)} of ${count(within.n)}`, "of those within the contract"],
    ["changed values accepted", `${count(total(mutants, "accepted"))} of ${count(total(mutants, "n"))}`, "all are wrong"],
    ["answers without one accepted", `${count(total(hacks, "accepted"))} of ${count(total(hacks, "n"))}`, "none has an answer"],
    ...(disagreement
      ? [[`${other ?? "the other"} differs`, `${count(disagreement.differ)} of ${count(disagreement.n)}`, span(disagreement)] as [string, string, string]]
      : []),
    ["a verdict takes", `${digits(median_ms)} ms`, `${digits(p99_ms)} ms at the 99th percentile`],
  ];
  const promised = value.cells.filter((cell) => cell.promised);
  return (
    <>
      <p class="crumb">
        <a href="#/reports">Reports</a> / <Word text={value.name} />
      </p>
      <h1>
        Audit of <Word text={verifier} /> <Clean is={clean} />
      </h1>
      <p class="muted prose">
        {plural(golds, "reference")} from seed {seed}, {plural(verdicts, "verdict")}. Answers are rewritten so that their value stays, or provably does not.
        Intervals are Wilson's, 95 %.
      </p>
      <div class="facts gap">
        {facts.map(([name, text, more]) => (
          <div class="fact" key={name}>
            <span>
              <Word text={name} />
            </span>
            <b>{text}</b>
            <small>{more}</small>
          </div>
        ))}
      </div>
      <div class="charts wide">
        <Bars
          title="Right answers that were rejected, by what was rewritten"
          file={`${value.name}-rejected`}
          colour="var(--bad)"
          rows={promised.map(({ category, n, reject_rate }) => ({ label: category, n, ...reject_rate }))}
        />
        <Bars
          title="Wrong answers that were accepted, by what was changed"
          file={`${value.name}-accepted`}
          colour="var(--bad)"
          rows={[...mutants, ...hacks].map(({ kind, n, accept_rate }) => ({ label: kind, n, ...accept_rate })).sort((a, b) => b.share - a.share)}
        />
      </div>
      <Examples title="Wrong answers that were accepted" of={value.examples.accepted} />
      <Cells of={value} />
      <Steps of={value} />
      <Examples title="Right answers that were not accepted" of={value.examples.rejected} />
    </>
  );
}

function Cells({ of: { cells, in_contract } }: { readonly of: ShownAudit }): JSX.Element {
  return (
    <section aria-label="Categories">
      <h2>Right answers, by what was rewritten</h2>
      <Wide label="Categories">
        <table>
          <thead>
            <tr>
              <th scope="col">category</th>
              <th scope="col">within the contract</th>
              {["answers", "accepted", "rejected", "failed to judge", "rejected, 95 %", "share of the failures"].map((name) => (
                <th scope="col" class="n" key={name}>
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {cells.map(({ category, promised, n, accept, reject, error, timeout, reject_rate }) => (
              <tr key={`${category}${promised}`}>
                <th scope="row">{category}</th>
                <td>{promised ? "yes" : <span class="muted">no</span>}</td>
                <td class="n">{count(n)}</td>
                <td class="n">{count(accept)}</td>
                <td class="n">{count(reject)}</td>
                <td class="n">{count(error + timeout)}</td>
                <td class="n">
                  {percent(reject_rate.share)}
                  <small class="under">{span(reject_rate)}</small>
                </td>
                <td class="n">{promised && in_contract.budget[category] !== undefined ? percent(in_contract.budget[category]) : ""}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Wide>
    </section>
  );
}

/** Neighbours of whole numbers: a cell a size, marked where one of the two was accepted. */
function Steps({ of: { off_by_one: steps } }: { readonly of: ShownAudit }): JSX.Element {
  const passing = steps.filter(({ one_less, one_more }) => one_less === "accept" || one_more === "accept");
  return (
    <section aria-label="Neighbours">
      <h2>Whole numbers against their neighbours</h2>
      <p class="prose">
        {passing.length === 0
          ? `Of ${plural(steps.length, "whole number")} from ${steps[0]?.value ?? "–"} to ${steps.at(-1)?.value ?? "–"}, none is taken for one less or one more.`
          : `${plural(passing.length, "whole number")} of ${steps.length} ${passing.length === 1 ? "is" : "are"} taken for a neighbour, from ${passing[0].value} on:`}
      </p>
      {passing.length > 0 && (
        <ul class="sizes">
          {passing.map(({ value, one_less, one_more }) => (
            <li key={value}>
              {value}
              {one_less === "accept" && " − 1"}
              {one_less === "accept" && one_more === "accept" && ","}
              {one_more === "accept" && " + 1"}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

/** Examples that are drawn before one asks for more. */
const shown = 20;

function Examples({ title, of }: { readonly title: string; readonly of: ShownAudit["examples"]["rejected"] }): JSX.Element {
  const [all, setAll] = useState(false);
  return (
    <section aria-label={title}>
      <h2>{title}</h2>
      {of.length === 0 ? (
        <p class="muted">none</p>
      ) : (
        <Wide label={title}>
          <table class="examples">
            <thead>
              <tr>
                {["of", "reference", "answer", "verdict"].map((name) => (
                  <th scope="col" key={name}>
                    {name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {of.slice(0, all ? of.length : shown).map(({ of: kind, gold, text, outcome, reason }, i) => (
                <tr key={i}>
                  <th scope="row">
                    <Word text={kind} />
                  </th>
                  <td>
                    <code>
                      <Word text={gold} />
                    </code>
                  </td>
                  <td>
                    <code>
                      <Word text={text} />
                    </code>
                  </td>
                  <td>
                    {outcome}
                    {reason !== undefined && (
                      <span class="muted">
                        {" "}
                        (<Word text={reason} />)
                      </span>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </Wide>
      )}
      {of.length > shown && !all && (
        <p>
          <button type="button" onClick={() => setAll(true)}>
            Show all {count(of.length)}
          </button>
        </p>
      )}
    </section>
  );
}
