/** The report of an audit as one page without anything from outside: tables, and charts where vega is installed. */
import type { AuditReport, Example, Share, WrongCell } from "../audit/audit.js";
import { drawn, type Spec } from "../compare/plot.js";
import { ConfigError } from "../core/errors.js";

const width = 520;
const rowHeight = 22;

/** The page, and why it has no charts, where it has none. */
export async function auditPage(report: AuditReport): Promise<{ readonly html: string; readonly missing?: string }> {
  const { cells, mutants, hacks, off_by_one: steps, in_contract, self_validation, disagreement, examples } = report;
  const promised = cells.filter((cell) => cell.promised);
  const charts: { [name: string]: string } = {};
  let missing: string | undefined;
  try {
    charts.rejected = await drawn(bars(promised.map(({ category, reject_rate }) => ({ label: category, ...reject_rate }))));
    charts.wrong = await drawn(bars([...mutants, ...hacks].map(({ kind, accept_rate }) => ({ label: kind, ...accept_rate }))));
    charts.steps = await drawn(stepChart(report));
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    missing = error.message;
  }
  const figure = (name: string, caption: string): string =>
    charts[name] === undefined
      ? ""
      : `<figure role="img" aria-label="${escaped(caption)}">${charts[name]}<figcaption>${escaped(caption)}</figcaption></figure>`;
  const budget = Object.entries(in_contract.budget);
  const parts = [
    `<h1>Audit of ${escaped(report.verifier)}</h1>`,
    `<p>${report.golds} references from seed ${report.seed}, ${report.verdicts} verdicts; ${escaped(report.id)}. ${report.median_ms} ms a verdict (median), ${report.p99_ms} ms (99 %). Intervals are Wilson's, 95 %.</p>`,
    listOf([
      ["references accepted against themselves", `${self_validation.accepted} of ${self_validation.n} (${shareText(self_validation)})`],
      ["right answers that were not accepted, of those within the contract", `${in_contract.failures} of ${in_contract.n}`],
      ["wrong answers accepted", `${accepted(mutants)} of ${count(mutants)} changed values, ${accepted(hacks)} of ${count(hacks)} responses without an answer`],
      ...(disagreement
        ? [[`variants on which ${report.other} differs`, `${disagreement.differ} of ${disagreement.n} (${shareText(disagreement)})`] as const]
        : []),
    ]),
    "<h2>Right answers, by what was rewritten</h2>",
    figure("rejected", "Share of right answers within the contract that were rejected, with 95 % intervals"),
    tableOf(
      ["category", "in the contract", "n", "accepted", "rejected", "errors", "stopped", "rejected, 95 %", "failed to judge, 95 %"],
      cells.map((cell) => [
        cell.category,
        cell.promised ? "yes" : "no",
        cell.n,
        cell.accept,
        cell.reject,
        cell.error,
        cell.timeout,
        shareText(cell.reject_rate),
        shareText(cell.exec_fail_rate),
      ]),
    ),
    ...(budget.length > 0
      ? [
          "<h3>Shares of the failures within the contract</h3>",
          tableOf(
            ["category", "share"],
            budget.map(([name, share]) => [name, percent(share)]),
          ),
        ]
      : []),
    "<h2>Wrong answers, by what was changed or tried</h2>",
    figure("wrong", "Share of wrong answers that were accepted, with 95 % intervals"),
    tableOf(
      ["kind", "n", "accepted", "accepted, 95 %"],
      [...mutants, ...hacks].map(({ kind, n, accepted: yes, accept_rate }) => [kind, n, yes, shareText(accept_rate)]),
    ),
    "<h2>Whole numbers against their neighbours</h2>",
    figure("steps", "Whether a neighbour of a whole number is accepted, by its size"),
    tableOf(
      ["reference", "one less", "one more"],
      steps.map(({ value, one_less, one_more }) => [value, one_less, one_more]),
    ),
    "<h2>Examples</h2>",
    examplesOf("Right answers that were not accepted", examples.rejected),
    examplesOf("Wrong answers that were accepted", examples.accepted),
  ];
  return { html: page(`Audit of ${report.verifier}`, parts.join("\n")), ...(missing !== undefined && { missing }) };
}

const accepted = (cells: readonly WrongCell[]): number => cells.reduce((sum, cell) => sum + cell.accepted, 0);
const count = (cells: readonly WrongCell[]): number => cells.reduce((sum, { n }) => sum + n, 0);
const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;

/** A share with its interval. */
export const shareText = ({ share, low, high }: Share): string => `${percent(share)} (${percent(low)} to ${percent(high)})`;

const escaped = (text: string | number): string => String(text).replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);

function tableOf(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const line = (cells: readonly (string | number)[]): string =>
    `<tr>${cells.map((cell, i) => (i === 0 ? `<th scope="row">${escaped(cell)}</th>` : `<td>${escaped(cell)}</td>`)).join("")}</tr>`;
  return `<div class="wide"><table><thead><tr>${head.map((cell) => `<th scope="col">${escaped(cell)}</th>`).join("")}</tr></thead><tbody>${rows.map(line).join("")}</tbody></table></div>`;
}

const listOf = (rows: readonly (readonly [string, string])[]): string =>
  `<dl>${rows.map(([name, value]) => `<dt>${escaped(name)}</dt><dd>${escaped(value)}</dd>`).join("")}</dl>`;

function examplesOf(title: string, examples: readonly Example[]): string {
  if (examples.length === 0) return `<p>${title}: none.</p>`;
  const rows = examples.map(({ of, gold, text, outcome, reason }) => [
    of,
    gold,
    JSON.stringify(text),
    reason === undefined ? outcome : `${outcome} (${reason})`,
  ]);
  return `<h3>${title}</h3>${tableOf(["of", "reference", "answer", "verdict"], rows)}`;
}

const page = (title: string, body: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)}</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1b1b1b; background: #fff; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .15rem .7rem .15rem 0; text-align: left; border-bottom: 1px solid #ddd; overflow-wrap: anywhere; }
thead th { border-bottom: 2px solid #888; }
tbody th { font-weight: normal; }
dt { font-weight: 600; } dd { margin: 0 0 .5rem; }
.wide, figure { overflow-x: auto; } figure { margin: 1rem 0; } figcaption { color: #555; }
</style>
</head>
<body>
<main>
${body}
</main>
</body>
</html>
`;

/** One bar a row, from 0 to its share, with the interval as a line. */
function bars(rows: readonly (Share & { readonly label: string })[]): Spec {
  const y = { scale: "y", field: "label" };
  return {
    width,
    height: rowHeight * rows.length,
    padding: 8,
    background: "white",
    data: [{ name: "rows", values: [...rows] }],
    scales: [
      { name: "x", type: "linear", range: "width", domain: [0, 1] },
      { name: "y", type: "band", range: "height", domain: rows.map(({ label }) => label), padding: 0.25 },
    ],
    axes: [
      { orient: "bottom", scale: "x", format: "%", grid: true, gridOpacity: 0.4 },
      { orient: "left", scale: "y", ticks: false, labelLimit: 240 },
    ],
    marks: [
      {
        type: "rect",
        from: { data: "rows" },
        encode: { enter: { x: { scale: "x", value: 0 }, x2: { scale: "x", field: "share" }, y, height: { scale: "y", band: 1 }, fill: { value: "#9ecae9" } } },
      },
      {
        type: "rule",
        from: { data: "rows" },
        encode: {
          enter: {
            x: { scale: "x", field: "low" },
            x2: { scale: "x", field: "high" },
            y: { ...y, band: 0.5 },
            strokeWidth: { value: 2 },
            stroke: { value: "#1f4e79" },
          },
        },
      },
    ],
  };
}

/** Accepted or not, by the size of the reference. */
function stepChart({ off_by_one: steps }: AuditReport): Spec {
  const values = steps.flatMap(({ value, one_less, one_more }) => [
    { value: Number(value), side: "one less", accepted: one_less === "accept" ? 1 : 0 },
    { value: Number(value), side: "one more", accepted: one_more === "accept" ? 1 : 0 },
  ]);
  return {
    width,
    height: 90,
    padding: 8,
    background: "white",
    data: [{ name: "steps", values }],
    scales: [
      { name: "x", type: "log", range: "width", domain: { data: "steps", field: "value" } },
      { name: "y", type: "linear", range: "height", domain: [-0.2, 1.2] },
      { name: "shape", type: "ordinal", domain: ["one less", "one more"], range: ["triangle-down", "triangle-up"] },
    ],
    axes: [
      { orient: "bottom", scale: "x", title: "reference", format: "~e", tickCount: 6 },
      { orient: "left", scale: "y", values: [0, 1], encode: { labels: { update: { text: { signal: "datum.value ? 'accepted' : 'not'" } } } } },
    ],
    legends: [{ shape: "shape", orient: "right" }],
    marks: [
      {
        type: "symbol",
        from: { data: "steps" },
        encode: {
          enter: {
            x: { scale: "x", field: "value" },
            y: { scale: "y", field: "accepted" },
            shape: { scale: "shape", field: "side" },
            size: { value: 50 },
            stroke: { value: "#1f4e79" },
            fill: { value: "#9ecae9" },
          },
        },
      },
    ],
  };
}
