/** A real Chromium for tests of pages, where this machine has one; what a page says in its console is kept, and asked for at the end. */
import { existsSync, readdirSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { type Browser, chromium, type Page } from "playwright-core";
import { buildPage } from "./page.js";

/** What `TOUCHSTONE_CHROMIUM` names, else the system's, else one that Playwright has fetched. */
export function chromiumPath(): string | undefined {
  const cache = join(homedir(), ".cache/ms-playwright");
  const fetched = existsSync(cache) ? readdirSync(cache).filter((name) => /^chromium-\d+$/.test(name)) : [];
  const places = [
    process.env.TOUCHSTONE_CHROMIUM,
    "/usr/bin/chromium",
    "/usr/bin/chromium-browser",
    "/usr/bin/google-chrome",
    ...fetched.flatMap((name) => ["chrome-linux/chrome", "chrome-linux64/chrome"].map((part) => join(cache, name, part))),
  ];
  return places.find((place) => place !== undefined && existsSync(place));
}

export const chromiumMissing = "no Chromium here: the pages of touchstone view are not tested (install Debian's chromium, or name one in TOUCHSTONE_CHROMIUM)";

/** Builds the page where the view reads it, and starts the browser. */
export async function startChromium(executablePath: string): Promise<Browser> {
  buildPage();
  const quiet = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
  return chromium.launch({ executablePath, args: ["--no-sandbox", ...quiet] });
}

export interface Look {
  readonly width?: number;
  readonly theme?: "light" | "dark";
}

export interface OpenPage {
  readonly page: Page;
  /** Errors and warnings of the console, exceptions, and answers that failed. */
  readonly said: string[];
  close(): Promise<void>;
}

/** Opens an address in a window of its own. */
export async function openPage(browser: Browser, address: string, { width = 1280, theme = "light" }: Look = {}): Promise<OpenPage> {
  const height = width < 600 ? 844 : 860;
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme, reducedMotion: "reduce", acceptDownloads: true });
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  const said: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") said.push(message.text());
  });
  page.on("pageerror", (error) => said.push(`exception: ${error.message}`));
  await page.goto(address);
  return { page, said, close: () => context.close() };
}
