/** Runs as one HTML file that shows them without a server: everything of them, or as many groups as fit, spread over the run. */
import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import { TouchstoneError } from "../core/errors.js";
import type { Answers } from "./answers.js";
import { askedOf, metricUnasked, unasked, withFirst } from "./chosen.js";
import type { Page } from "./page.js";
import type { Archive, ArchivedRun, Comparison, Home } from "./shapes.js";

export interface ArchiveOptions {
  /** Characters of JSON that groups may take, over all runs; packed they are about a sixth of it. */
  readonly most?: number;
}

/** About 6 MB in the file. */
const usualMost = 36_000_000;

/** Gathers what the page can ask for. Faults of single groups and comparisons leave them out. */
export async function archiveOf(answers: Answers, { most = usualMost }: ArchiveOptions = {}): Promise<Archive> {
  const whole = await answers.home();
  const own = answers.ownRecords;
  const home: Home = { ...whole, live: false, records: whole.records.filter(({ id }) => own.some((record) => record.id === id)) };
  const runs: { [id: string]: ArchivedRun } = {};
  for (const { id, standing } of home.runs) {
    if (standing === "fault" || standing === "waiting") continue;
    runs[id] = { overview: await answers.overview(id), ...(await groupsOf(answers, id, most / home.runs.length)) };
  }
  return {
    home,
    runs,
    comparisons: await comparisonsOf(answers, home),
    records: Object.fromEntries(own.map((record) => [record.id, record])),
    audits: Object.fromEntries(home.audits.map(({ id }) => [id, answers.audit(id)])),
  };
}

/** Whole steps, the last one first, then the first, then always the middle of the widest gap, until there is no more room. */
async function groupsOf(answers: Answers, id: string, room: number): Promise<Pick<ArchivedRun, "groups" | "left" | "damage">> {
  let steps: readonly { readonly step: number; readonly groups: number }[];
  try {
    steps = answers.steps(id);
  } catch (error) {
    if (!(error instanceof TouchstoneError)) throw error;
    return { groups: [], left: 0, damage: error.message };
  }
  const kept: ArchivedRun["groups"][number][] = [];
  const all = steps.reduce((sum, { groups }) => sum + groups, 0);
  let [damage, left]: [string | undefined, number] = [undefined, room];
  for (const place of spread(steps.length)) {
    const { step, groups } = steps[place];
    for (let index = 0; index < groups && left > 0; index++) {
      try {
        const entry = await answers.archived(id, step, index);
        left -= JSON.stringify(entry).length;
        if (left > 0 || kept.length === 0) kept.push(entry);
      } catch (error) {
        if (!(error instanceof TouchstoneError)) throw error;
        damage ??= error.message;
      }
    }
    if (left <= 0) break;
  }
  kept.sort((a, b) => a.row.step - b.row.step || a.row.index - b.row.index);
  return { groups: kept, left: all - kept.length, ...(damage !== undefined && { damage }) };
}

/** The numbers below `count`: last, first, then halves of the widest gap. */
export function spread(count: number): number[] {
  if (count === 0) return [];
  const order = count === 1 ? [0] : [count - 1, 0];
  let gaps: [number, number][] = [[0, count - 1]];
  while (gaps.length > 0) {
    const next: [number, number][] = [];
    for (const [low, high] of gaps) {
      if (high - low < 2) continue;
      const middle = (low + high) >> 1;
      order.push(middle);
      next.push([low, middle], [middle, high]);
    }
    gaps = next;
  }
  return order;
}

/** What the page compares unasked, by held-out score and by reward, with each side in turn as what the others are compared with. */
async function comparisonsOf(answers: Answers, home: Home): Promise<Archive["comparisons"]> {
  const found: { [asked: string]: Comparison } = {};
  const runs = unasked(home);
  if (runs.length < 2) return found;
  for (const metric of new Set([metricUnasked(home), "reward"])) {
    try {
      const first = await answers.compare(runs, metric);
      found[askedOf(runs, metric)] = first;
      for (const side of first.arms.slice(1)) {
        const order = withFirst(side, runs);
        found[askedOf(order, metric)] = await answers.compare(order, metric);
      }
    } catch (error) {
      if (!(error instanceof TouchstoneError)) throw error;
    }
  }
  return found;
}

const hashOf = (text: string): string => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

/** The file: the page with its program and style within, and what it would ask a server for. Nothing else may run or be fetched. */
export function fileOf({ document, script, style }: Page, archive: Archive): string {
  const program = script.replace(/<(\/script|!--)/gi, "\\x3C$1");
  const look = style.replace(/<\//g, "<\\/");
  const policy = `default-src 'none'; script-src ${hashOf(program)}; style-src ${hashOf(look)}; img-src data: blob:; base-uri 'none'; form-action 'none'`;
  const data = gzipSync(JSON.stringify(archive), { level: 9 }).toString("base64");
  const parts: readonly (readonly [RegExp, string])[] = [
    [/<meta charset="utf-8" \/>/, `<meta charset="utf-8" />\n    <meta http-equiv="Content-Security-Policy" content="${policy}" />`],
    [/<link rel="stylesheet"[^>]*>/, `<style>${look}</style>`],
    [/\s*<script src=[^>]*><\/script>/, ""],
    [/<\/body>/, `<script type="application/gzip" id="archive">${data}</script>\n    <script>${program}</script>\n  </body>`],
  ];
  return parts.reduce((text, [place, put]) => text.replace(place, () => put), document);
}
