/** The pages of the view in a real Chromium, by pointer and by keys: live and finished runs, filters, colourings, comparison, and a page in one file. */
import { spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Browser, Download, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { repository } from "../../test/paths.js";
import { chromiumMissing, chromiumPath, type Look, type OpenPage, openPage, startChromium } from "../../test/support/chromium.js";
import { recordOf } from "../../test/support/shown-record.js";
import { command } from "../../test/support/touchstone.js";
import { hebrew, viewRun, writtenRun } from "../../test/support/view-run.js";
import { audit, isClean } from "../audit/audit.js";
import { contractOf } from "../audit/contracts.js";
import { auditedVerifier } from "../audit/find.js";
import { Answers } from "./answers.js";
import { archiveOf, fileOf } from "./archive.js";
import { readPage } from "./page.js";
import { type Served, serve } from "./serve.js";

const executable = chromiumPath();
if (executable === undefined) console.log(chromiumMissing);

const scratch = mkdtempSync(join(tmpdir(), "touchstone-pages-"));
const folder = join(scratch, "runs/written");
let browser: Browser;
let address: string;
const served: Served[] = [];
const pages: OpenPage[] = [];

async function serveRuns(paths: readonly string[], expected: readonly string[] = []): Promise<string> {
  const one = await serve({ answers: new Answers({ paths, expected }), port: 0, everyMs: 50 });
  served.push(one);
  return one.address;
}

async function open(at: string, look: Look = {}): Promise<Page> {
  const opened = await openPage(browser, at, look);
  pages.push(opened);
  return opened.page;
}

const bytesOf = async (download: Download): Promise<Buffer> => readFileSync(await download.path());
/** The drawn lines of all charts: what a run's numbers look like. */
const curvesOf = (page: Page): Promise<string[]> => page.$$eval(".chart .line", (lines) => lines.map((line) => line.getAttribute("d") ?? ""));
const focused = (page: Page): Promise<string> =>
  page.evaluate(() => document.activeElement?.getAttribute("aria-label") ?? document.activeElement?.textContent ?? "");

describe.skipIf(executable === undefined)("the view's pages", () => {
  beforeAll(async () => {
    browser = await startChromium(executable as string);
    writtenRun(folder);
    address = await serveRuns([folder]);
  });

  afterEach(async () => {
    const said = pages.flatMap((each) => each.said);
    await Promise.all(pages.splice(0).map((each) => each.close()));
    expect(said).toEqual([]);
  });

  afterAll(async () => {
    await browser?.close();
    await Promise.all(served.map((each) => each.close()));
    rmSync(scratch, { recursive: true, force: true });
  });

  it("follow a run that trains, tokens as text, and stay when it has ended", async () => {
    const out = join(scratch, "trained");
    const options = ["--steps", "6", "--problems", "2", "--group", "4", "--lr", "1e-4", "--eval-every", "3", "--eval-problems", "16", "--max-tokens", "40"];
    const args = [...command, "train", "--view", "--model", "starters/chain-1M", "--task", "chain", ...options, "--out", out];
    const child = spawn(process.execPath, args, { cwd: repository, stdio: ["ignore", "pipe", "pipe"] });
    let said = "";
    child.stdout.resume();
    const live = await new Promise<string>((done, fail) => {
      child.stderr.on("data", (data) => {
        said += String(data);
        const found = /can be seen at (\S+)/.exec(said)?.[1];
        if (found) done(found);
      });
      child.once("exit", () => fail(new Error(said)));
    });
    const page = await open(live);
    await page.getByText("running").waitFor({ timeout: 120_000 });
    const ended = new Promise((done) => child.once("exit", done));
    await page.getByText("6 / 6").waitFor({ timeout: 120_000 });
    expect(await ended).toBe(0);
    await page.getByText("ended", { exact: true }).waitFor();
    await page.getByRole("status").getByText("not connected").waitFor();
    // The view has gone with the run, and the browser says so in its console each time that it asks for it again.
    const [gone] = pages.splice(0, 1);
    await gone?.close();
    expect(gone?.said.filter((text) => !text.includes("ERR_"))).toEqual([]);
    const again = await open(`${await serveRuns([out])}#/run/trained/rollouts?step=6&group=0`);
    await again.locator(".tok").first().waitFor();
    expect((await again.locator(".run").first().textContent())?.replace(/\s/g, "")).toMatch(/[-+*]\d+=\d+.*<eos>$/);
  });

  it("show a growing run without being loaded again, and a finished one the same", async () => {
    const growing = join(scratch, "growing");
    const live = await serveRuns([growing], [growing]);
    const page = await open(live);
    await page.getByText("waiting to begin").waitFor();
    const run = viewRun(growing, 5);
    for (let step = 1; step <= 5; step++) {
      run.write(step);
      await page.getByText(`${step} / 5`).waitFor();
    }
    run.evaluate(5, [1, 0, 1, 1]);
    run.end();
    await page.getByText("ended", { exact: true }).waitFor();
    await page.getByText("75 %", { exact: true }).waitFor();
    const fresh = await open(await serveRuns([growing]));
    await fresh.getByText("75 %", { exact: true }).waitFor();
    expect(await curvesOf(page)).toEqual(await curvesOf(fresh));
    expect(await page.locator("main").textContent()).toBe(await fresh.locator("main").textContent());
  });

  it("read, smooth, zoom and save curves", async () => {
    const page = await open(address);
    const chart = page.locator(".chart").filter({ hasText: "Entropy" }).first();
    const plot = chart.locator("svg");
    // Drawn once its width is known; before, its place would be another.
    await chart.locator(".line").first().waitFor({ state: "attached" });
    await plot.hover();
    const box = (await plot.boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
    await page.mouse.move(box.x + box.width - 12, box.y + 40);
    await chart.getByText("step 12").waitFor();
    expect(await chart.locator(".tip").textContent()).toMatch(/^step 12entropy 0\.0833/);
    // The other charts mark the step, and nothing covers their curves.
    expect(await page.locator(".tip").count()).toBe(1);
    expect(await page.locator(".cursor").count()).toBe(await page.locator(".chart").count());
    const whole = await curvesOf(page);
    await page.mouse.move(box.x + 0.4 * box.width, box.y + 60);
    await page.mouse.down();
    await page.mouse.move(box.x + 0.8 * box.width, box.y + 60, { steps: 4 });
    await page.mouse.up();
    await expect.poll(() => new URL(page.url()).hash).toMatch(/zoom=[\d.]+-[\d.]+$/);
    const linked = await open(page.url());
    await linked.locator(".line").first().waitFor({ state: "attached" });
    expect(await curvesOf(linked)).toEqual(await curvesOf(page));
    await page.getByRole("button", { name: "Whole run" }).click();
    expect(await curvesOf(page)).toEqual(whole);
    await page.getByRole("checkbox", { name: "log values" }).check();
    expect(await curvesOf(page)).not.toEqual(whole);
    await page.getByRole("checkbox", { name: "log steps" }).check();
    await page.getByRole("slider", { name: "Smoothing" }).fill("0.9");
    await expect.poll(() => new URL(page.url()).hash).toMatch(/log=yx&smooth=0\.9$/);
    const drawn = await open(page.url());
    await drawn.locator(".line").first().waitFor({ state: "attached" });
    expect(await curvesOf(drawn)).toEqual(await curvesOf(page));
    // No two numbers of an axis stand in each other.
    const places = await drawn
      .locator(".chart svg")
      .first()
      .locator(".tick[text-anchor=middle]")
      .evaluateAll((ticks) => ticks.map((tick) => tick.getBoundingClientRect()).map(({ left, right }) => [left, right] as const));
    expect(places.length).toBeGreaterThan(2);
    places.slice(1).forEach(([left], i) => {
      expect(left).toBeGreaterThan(places[i][1]);
    });
    const saved = async (kind: string): Promise<Buffer> => {
      const [file] = await Promise.all([page.waitForEvent("download"), chart.getByRole("button", { name: `Save Entropy as ${kind}` }).click()]);
      expect(file.suggestedFilename()).toBe(`written-entropy.${kind.toLowerCase()}`);
      return bytesOf(file);
    };
    expect((await saved("SVG")).toString()).toMatch(/^<svg [^>]*xmlns="http:\/\/www.w3.org\/2000\/svg".*Entropy.*<path [^>]*stroke="rgb/s);
    expect((await saved("PNG")).subarray(1, 4).toString()).toBe("PNG");
  });

  it("filter and search rollouts, with every state in the address", async () => {
    const page = await open(`${address}#/run/written/rollouts`);
    await page.getByText("27 groups, 106 rollouts").waitFor();
    await page.getByLabel("Verdict").selectOption("partial");
    await page.getByText("1 group found in 27").waitFor();
    expect(new URL(page.url()).hash).toContain("verdict=partial");
    await page.locator(".group-row").click();
    await page.locator(".problem b").getByText("hostile-2").waitFor();
    const linked = await open(page.url());
    await linked.getByText("1 group found in 27").waitFor();
    await linked.locator(".problem b").getByText("hostile-2").waitFor();
    await linked.getByRole("button", { name: "Show everything" }).click();
    await linked.getByLabel("Text", { exact: true }).fill("fork 3");
    await linked.getByText("1 group found in 27").waitFor();
    await linked.getByText("More filters").click();
    await linked.getByLabel("Text", { exact: true }).fill("");
    await linked.getByLabel("Tag, as level=3").fill("level=1");
    await linked.getByLabel("Most tokens").fill("5");
    await linked.getByText("0 groups found in 27").waitFor();
    await linked.getByLabel("Most tokens").fill("8");
    await linked.getByText(/^1?\d groups found in 27$/).waitFor();
  });

  it("colour tokens by each number, and tell a token's credit through the stages", async () => {
    const page = await open(`${address}#/run/written/rollouts?step=2&group=4&member=0&token=2`);
    const first = page.getByRole("article", { name: "Member 0" });
    await first.locator(".tok").first().waitFor();
    const colours = (): Promise<string[]> => first.locator(".tok").evaluateAll((tokens) => tokens.map((token) => (token as HTMLElement).style.backgroundColor));
    const seen: string[] = [];
    for (const colouring of ["coefficient", "ratio", "log-prob", "entropy", "mask"]) {
      await page.getByRole("combobox", { name: "Colour" }).selectOption(colouring);
      await expect.poll(() => new URL(page.url()).hash).toContain(`colour=${colouring}`);
      const now = await colours();
      expect(now.filter((colour) => colour !== "").length, colouring).toBeGreaterThan(1);
      // What came back was not drawn: it has none of these.
      if (colouring !== "ratio") expect(now.slice(3, 5), colouring).toEqual(["", ""]);
      seen.push(now.join());
    }
    expect(new Set(seen).size).toBe(5);
    const fall = page.getByRole("complementary", { name: "Token" }).locator(".fall tr");
    expect(
      await fall.evaluateAll((rows) =>
        rows.map((row) =>
          [...row.children]
            .map(({ textContent }) => textContent)
            .join(" ")
            .replace(/\s+/g, " ")
            .trim(),
        ),
      ),
    ).toEqual([
      "reward of the answer +1",
      "advantage of the answer +0.5 -0.5",
      "grpo, credit +0.5",
      "cscr, shape +0.75 +0.25",
      "coefficient in the loss +0.75",
      "× weight 0.04167 in the batch +0.03125",
    ]);
    const back = first.locator("details.observation");
    expect(await back.getAttribute("open")).toBeNull();
    expect(await back.locator("summary").textContent()).toContain("came back, 2 tokens");
    await page.goto(`${address}#/run/written/rollouts?step=2&group=3`);
    await page.getByRole("button", { name: "#3 R 1, accept, forked at token 9" }).click();
    await expect.poll(() => new URL(page.url()).hash).toContain("member=3");
    expect(await page.locator(".tree .stem").count()).toBe(3);
  });

  it.each([390, 1280])("lead to the token that an address names, at %i pixels, however soon it is gone to", async (width) => {
    // Before the page is drawn: what is gone to meanwhile must not be lost.
    const page = await open(`${address}#/run/written`, { width });
    await page.evaluate(() => {
      location.hash = "#/run/written/rollouts?step=2&group=1&member=3&token=2";
    });
    const inView = async (): Promise<boolean> =>
      page.evaluate(() => {
        const boxOf = (selector: string): DOMRect | undefined => document.querySelector(selector)?.getBoundingClientRect();
        const [token, panel, head] = [boxOf('.tok[aria-selected="true"]'), boxOf(".inspector"), boxOf("header")];
        return token !== undefined && panel !== undefined && head !== undefined && token.top >= head.bottom && token.bottom <= panel.top;
      });
    await expect.poll(inView).toBe(true);
    // Along the tokens the chosen one stays in view.
    await page.getByRole("article", { name: "Member 3" }).locator(".run").focus();
    for (let i = 0; i < 3; i++) await page.keyboard.press("ArrowRight");
    await expect.poll(() => new URL(page.url()).hash).toContain("token=5");
    await expect.poll(inView).toBe(true);
    // The group that is open is to be seen in the list.
    const row = page.locator(".group-row[aria-current]");
    const [frame, box] = [await page.locator(".list").boundingBox(), await row.boundingBox()];
    expect(frame && box && box.y >= frame.y && box.y + box.height <= frame.y + frame.height).toBe(true);
    // Another group is shown from its beginning.
    await page.getByRole("button", { name: "Close the token" }).click();
    await row.locator("xpath=following-sibling::*[1]").click();
    await page.locator(".problem b").getByText("hostile-2").waitFor();
    const top = (): Promise<number> => page.locator(".group").evaluate((group) => Math.round(group.getBoundingClientRect().top));
    await expect.poll(top).toBeLessThan(300);
    expect(await top()).toBeGreaterThan(40);
  });

  it("draw a single step as whole dots within the axes", async () => {
    const single = join(scratch, "single");
    const run = viewRun(single, 1);
    run.write(1);
    run.end();
    const page = await open(await serveRuns([single]));
    await page.getByText("Too short to say").waitFor();
    const first = page.locator(".chart").first();
    await first.locator("circle").waitFor();
    const [plot, clip] = [await first.locator("circle").getAttribute("cx"), await first.locator("clipPath rect").getAttribute("x")];
    expect(Number(plot) - 3).toBeGreaterThanOrEqual(Number(clip));
    const shares = await page.locator(".chart").filter({ hasText: "Verdicts" }).locator(".tick[text-anchor=end]").allTextContents();
    expect(shares.length).toBeGreaterThan(1);
    expect(shares.map((text) => Number.parseFloat(text)).every((share) => share >= 0 && share <= 100)).toBe(true);
  });

  it.each([390, 1280])("draw a tree whose branches can be chosen by pointer and by keys at %i pixels, on a slow processor too", async (width) => {
    const page = await open(address, { width });
    const session = await page.context().newCDPSession(page);
    await session.send("Emulation.setCPUThrottlingRate", { rate: 6 });
    // From a group without a tree to one with: the drawing must not wait for the window to change.
    await page.goto(`${address}#/run/written/rollouts?step=2&group=0`);
    await page.locator(".tok").first().waitFor();
    await page.goto(`${address}#/run/written/rollouts?step=2&group=3`);
    const branches = page.locator(".branch");
    await branches.first().waitFor();
    // The tree is drawn in the order of its forks: 3 under 1, then 2.
    for (const [line, member] of [0, 1, 3, 2].entries()) {
      await branches.nth(line).click();
      await expect.poll(() => new URL(page.url()).hash).toContain(`member=${member}`);
      await expect.poll(() => branches.nth(line).getAttribute("aria-pressed")).toBe("true");
    }
    await branches.nth(1).focus();
    await page.keyboard.press("Enter");
    await expect.poll(() => new URL(page.url()).hash).toContain("member=1");
    expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBe(0);
  });

  it("show hostile texts as texts", async () => {
    const page = await open(`${address}#/run/written/rollouts?step=2&group=2&as=text`);
    await page.getByText("<script>window.owned=1</script>").first().waitFor();
    expect(await page.evaluate(() => (window as { owned?: number }).owned)).toBeUndefined();
    expect(await page.locator("main img, main script, main b:has-text('quoted')").count()).toBe(0);
    expect(await page.locator(".odd").allTextContents()).toEqual(expect.arrayContaining(["␀", "␇", "␛", "RLO", "PDF", "ZWSP", "LRI", "PDI", "U+D800"]));
    const long = page.getByRole("article", { name: "Member 1" });
    expect((await long.locator(".pre").textContent())?.length).toBe(6000);
    await long.getByRole("button", { name: "show all 1,048,576 characters" }).click();
    await expect.poll(async () => (await long.locator(".pre").textContent())?.length).toBe(1_048_576);
    expect(await page.getByRole("article", { name: "Member 2" }).locator("bdi.pre").first().textContent()).toBe(hebrew);
  });

  it("can be used by keys alone", async () => {
    const page = await open(`${address}#/run/written`);
    await page.locator(".chart").first().waitFor();
    await page.keyboard.press("Tab");
    expect(await focused(page)).toBe("Skip to the content");
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keys" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    const until = async (name: RegExp): Promise<void> => {
      for (let i = 0; i < 60 && !name.test(await focused(page)); i++) await page.keyboard.press("Tab");
      expect(await focused(page)).toMatch(name);
    };
    await until(/^Reward\. /);
    await page.keyboard.press("End");
    await page.locator(".tip").getByText("step 12").first().waitFor();
    await page.keyboard.press("ArrowLeft");
    await page.locator(".tip").getByText("step 11").first().waitFor();
    await page.keyboard.press("+");
    await expect.poll(() => page.getByRole("button", { name: "Whole run" }).isEnabled()).toBe(true);
    await page.keyboard.press("-");
    await page.keyboard.press("Shift+Tab");
    await page.goto(`${address}#/run/written/rollouts?step=1&group=0`);
    const at = (part: string) => expect.poll(() => new URL(page.url()).hash, { timeout: 10_000 }).toContain(part);
    await page.locator(".tok").first().waitFor();
    await page.keyboard.press("j");
    await at("group=1");
    await page.keyboard.press("]");
    await at("step=2");
    await page.keyboard.press("[");
    await at("step=1");
    await page.keyboard.press("c");
    await at("colour=ratio");
    await page.keyboard.press("t");
    await at("as=text");
    await page.keyboard.press("t");
    await page.keyboard.press("/");
    expect(await focused(page)).toBe("Text");
    await until(/^Tokens$/);
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    await at("token=1");
    await page.getByRole("complementary", { name: "Token" }).waitFor();
  });

  it("compare methods over paired seeds, problem by problem, and open reports", async () => {
    const root = join(scratch, "sides");
    for (const seed of [0, 1, 2]) {
      writtenRun(join(root, `grpo/seed-${seed}`), 4, { seed }, [1, 0, 0, 0]);
      writtenRun(join(root, `rloo/seed-${seed}`), 4, { seed, method: "rloo" }, [1, 1, seed === 0 ? 0 : 1, 0]);
    }
    const record = join(scratch, "record.json");
    writeFileSync(record, JSON.stringify(recordOf("P99")));
    const audited = await auditedVerifier("baseline:cascade", {});
    const report = await audit({ audited, contract: contractOf("baseline:cascade"), golds: 10, seed: 0, workers: 0 });
    mkdirSync(join(root, "audit"));
    writeFileSync(join(root, "audit/audit.json"), JSON.stringify({ ...report, clean: isClean(report, 0) }));
    const page = await open(`${await serveRuns([root, record])}#/compare`);
    const row = page.getByRole("region", { name: "Differences" }).getByRole("row", { name: /rloo/ });
    await row.waitFor();
    expect(await row.textContent()).toMatch(/3 pairs/);
    expect(await page.locator(".band").count()).toBe(2);
    await page.getByRole("button", { name: "solved by rloo, not by grpo" }).getByText("2").waitFor();
    expect(await page.getByRole("region", { name: "Problems solved by rloo, not by grpo" }).locator("tbody th").allTextContents()).toEqual([
      "h1held out 1",
      "h2held out 2",
    ]);
    await page.getByRole("button", { name: "solved by neither" }).click();
    await page.getByRole("region", { name: "Problems solved by neither" }).getByText("h3").first().waitFor();
    await page.getByLabel("compared with").selectOption("rloo");
    await page.getByText("differences to rloo").waitFor();
    await page.getByLabel("Number").selectOption("reward");
    await page.getByText("reward at the end, and differences").waitFor();
    await page.getByRole("link", { name: "Reports" }).click();
    await page.getByRole("link", { name: "P99" }).click();
    await page.getByText("accuracy: ours - grpo > 0").waitFor();
    expect(await page.locator(".spread .pair").count()).toBe(5);
    await page.getByRole("link", { name: "Reports" }).first().click();
    await page.getByRole("link", { name: "audit", exact: true }).click();
    await page.getByRole("heading", { name: "Audit of baseline:cascade fails" }).waitFor();
    const missed = report.in_contract;
    await page.getByText(`${missed.failures} of ${missed.n}`, { exact: true }).waitFor();
    expect(await page.getByRole("region", { name: "Categories" }).first().locator("tbody tr").count()).toBe(report.cells.length);
    const [file] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Save Wrong answers that were accepted, by what was changed as SVG" }).click(),
    ]);
    expect((await bytesOf(file)).toString()).toContain("a hundred times");
  });

  it("say what is wrong with broken folders", async () => {
    const root = join(scratch, "broken");
    const copy = (name: string): string => {
      cpSync(folder, join(root, name), { recursive: true });
      return join(root, name);
    };
    const file = join(copy("older"), "run.json");
    writeFileSync(file, readFileSync(file, "utf8").replace('"version":1', '"version":0'));
    truncateSync(join(copy("torn"), "rollouts/rollouts.jsonl"), 50);
    rmSync(join(copy("bare"), "rollouts"), { recursive: true });
    const at = await serveRuns([root]);
    const page = await open(at);
    await page.getByText("it was written in version 0 of the run format").waitFor();
    for (const [hash, text] of [
      ["run/older", "it was written in version 0 of the run format"],
      ["run/bare/rollouts", "The run has no rollouts yet."],
      ["run/nowhere", "There is no run nowhere in this view."],
      ["no/such/page", "There is no page no/such/page."],
    ]) {
      await page.goto(`${at}#/${hash}`);
      await page.locator("main").getByText(text).waitFor();
    }
    await page.goto(`${at}#/run/torn/rollouts?step=3&group=0`);
    await page.getByText("it ends at byte 50, before its index says").first().waitFor();
    // Answers that say what is wrong are failed ones to the browser.
    for (const each of pages) each.said.splice(0, each.said.length, ...each.said.filter((text) => !text.includes("400")));
  });

  it("work from one file on the disk, and ask nobody for anything", async () => {
    const root = join(scratch, "kept");
    mkdirSync(root);
    cpSync(folder, join(root, "written"), { recursive: true });
    writtenRun(join(root, "other"), 6, { method: "rloo" });
    const file = join(scratch, "page.html");
    writeFileSync(file, fileOf(readPage(), await archiveOf(new Answers({ paths: [root] }))));
    const at = pathToFileURL(file).href;
    const page = await open(at);
    const asked: string[] = [];
    page.on("request", (request) => /^(file|data|blob):/.test(request.url()) || asked.push(request.url()));
    await page.getByRole("link", { name: "written" }).click();
    await page.getByText("It learns").waitFor();
    const online = await open(`${address}#/run/written`);
    await online.getByText("It learns").waitFor();
    expect(await curvesOf(page)).toEqual(await curvesOf(online));
    await page.getByRole("link", { name: "Rollouts", exact: true }).click();
    await page.getByLabel("Verdict").selectOption("partial");
    await page.getByText("1 group found in 27").waitFor();
    await page.goto(`${at}#/run/written/rollouts?step=2&group=4&member=0&token=2`);
    await page.getByText("cscr, shape").waitFor();
    await page.goto(`${at}#/compare`);
    await page.getByText("differences to rloo").waitFor();
    await page.getByLabel("compared with").selectOption("grpo");
    await page.getByText("differences to grpo").waitFor();
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: /^Save .* as PNG$/ }).click()]);
    expect((await bytesOf(download)).subarray(1, 4).toString()).toBe("PNG");
    expect(asked).toEqual([]);
  });
});
