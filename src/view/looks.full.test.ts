/** How the view's pages look: narrow and wide, light and dark, without faults of accessibility; and the pictures of the documentation. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import axe from "axe-core";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { repository } from "../../test/paths.js";
import { chromiumMissing, chromiumPath, openPage, startChromium } from "../../test/support/chromium.js";
import { recordOf } from "../../test/support/shown-record.js";
import { viewRun } from "../../test/support/view-run.js";
import { audit, isClean } from "../audit/audit.js";
import { contractOf } from "../audit/contracts.js";
import { auditedVerifier } from "../audit/find.js";
import { train } from "../train/train.js";
import { Answers } from "./answers.js";
import { type Served, serve } from "./serve.js";

const executable = chromiumPath();
if (executable === undefined) console.log(chromiumMissing);

const scratch = mkdtempSync(join(tmpdir(), "touchstone-looks-"));
/** With TOUCHSTONE_IMAGES=1 the pictures of the documentation are made anew, of a longer run. */
const making = process.env.TOUCHSTONE_IMAGES === "1";
const images = join(scratch, "images");
const documented = [
  "overview-1280-light",
  "rollouts-1280-dark",
  "compare-1280-light",
  "tree-1280-light",
  "report-1280-light",
  "audit-1280-dark",
  "overview-390-dark",
  "rollouts-390-light",
];
const steps = making ? 40 : 4;
let browser: Browser;
let view: Served;

const places: readonly (readonly [name: string, hash: string, shown: string])[] = [
  ["runs", "", "held-out"],
  ["overview", "run/chain", "Learning"],
  ["rollouts", `run/chain/rollouts?step=${Math.max(1, steps / 2)}&group=${making ? 3 : 1}&member=1&token=4`, "Credit, from the reward to the loss"],
  ["hostile", "run/three-grpo-seed-0/rollouts?step=2&group=2", "hostile-2"],
  ["tree", "run/three-grpo-seed-0/rollouts?step=2&group=3&colour=log-prob", "a tree of answers"],
  ["compare", "compare?runs=three-grpo-seed-0,three-grpo-seed-1,three-grpo-seed-2,three-rloo-seed-0,three-rloo-seed-1,three-rloo-seed-2", "over problems"],
  ["reports", "reports", "P99"],
  ["report", "reports/P99", "Claims"],
  ["audit", "audits/audit", "Whole numbers against their neighbours"],
];

/** Of 100 held-out problems: more are right with each step, easier ones first, with some luck of the seed. */
function scoresAt(step: number, gain: number, seed: number): number[] {
  const right = 0.3 + (0.012 + 0.006 * gain) * step + 0.02 * Math.sin(3 * seed + step);
  return Array.from({ length: 100 }, (_, i) => (i / 100 + 0.2 * Math.sin(17 * i + 5 * seed) < right ? 1 : 0));
}

/** Findings of axe that keep people out. */
async function findings(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  const { violations, passes } = await page.evaluate(() => (globalThis as unknown as { axe: typeof axe }).axe.run());
  // A check that looked at nothing would find nothing.
  expect(passes.length).toBeGreaterThan(15);
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) => nodes.slice(0, 3).map(({ target, failureSummary }) => `${id}: ${target.join(" ")}: ${failureSummary ?? ""}`));
}

describe.skipIf(executable === undefined)("the looks of the view", () => {
  beforeAll(async () => {
    browser = await startChromium(executable as string);
    mkdirSync(images, { recursive: true });
    const root = join(scratch, "runs");
    const model = join(repository, "starters/chain-1M");
    await train({
      model,
      task: "chain",
      out: join(root, "chain"),
      steps,
      problems: making ? 8 : 2,
      group: making ? 8 : 4,
      lr: 1.5e-4,
      eval: { every: Math.max(1, steps / 4), problems: making ? 200 : 20 },
    });
    for (const seed of [0, 1, 2]) {
      for (const [method, gain] of [
        ["grpo", 0],
        ["rloo", 1],
      ] as const) {
        const run = viewRun(join(root, `three/${method}/seed-${seed}`), 24, { seed, method });
        for (let step = 0; step <= 24; step++) {
          if (step > 0) run.write(step);
          if (step % 4 === 0) run.evaluate(step, scoresAt(step, gain, seed));
        }
        run.end();
      }
    }
    const record = join(scratch, "record.json");
    writeFileSync(record, JSON.stringify(recordOf("P99")));
    const audited = await auditedVerifier("baseline:cascade", {});
    const report = await audit({ audited, contract: contractOf("baseline:cascade"), golds: 20, seed: 0, workers: 0 });
    const audits = join(scratch, "audit");
    mkdirSync(audits);
    writeFileSync(join(audits, "audit.json"), JSON.stringify({ ...report, clean: isClean(report, 0) }));
    view = await serve({ answers: new Answers({ paths: [root, record, audits] }), port: 0 });
  });

  afterAll(async () => {
    await browser?.close();
    await view?.close();
    rmSync(scratch, { recursive: true, force: true });
  });

  for (const width of [390, 1280]) {
    for (const theme of ["light", "dark"] as const) {
      it(`holds ${width} pixels in ${theme}: nothing wider than the screen, no serious finding, no fault in the console`, async () => {
        const { page, said, close } = await openPage(browser, view.address, { width, theme });
        const found: { [name: string]: unknown } = {};
        for (const [name, hash, shown] of places) {
          await page.goto(`${view.address}#/${hash}`);
          await page.locator("main").getByText(shown).first().waitFor();
          await page.waitForLoadState("networkidle");
          const wider = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
          const faults = await findings(page);
          if (wider > 0 || faults.length > 0) found[name] = { wider, faults };
          const file = `${name}-${width}-${theme}`;
          const picture = await page.screenshot({ path: join(making && documented.includes(file) ? join(repository, "docs/images") : images, `${file}.png`) });
          expect(picture.length, name).toBeGreaterThan(5000);
        }
        await close();
        expect(found).toEqual({});
        expect(said).toEqual([]);
      });
    }
  }
});
