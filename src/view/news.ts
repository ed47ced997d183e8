/** News of runs by server-sent events: which run has changed. Nothing is looked at while no page is open. */
import type { OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { WatchedRun } from "./watched.js";

/** Milliseconds after which a quiet connection says that it is there: proxies end silent ones. */
const breathMs = 15_000;

/** Share of a core that looking at the runs may take. */
const mostShare = 0.01;

export class News {
  private readonly pages = new Set<ServerResponse>();
  private readonly stamps = new Map<string, string>();
  private timer: NodeJS.Timeout | undefined;
  private last = 0;

  constructor(
    private readonly runs: () => readonly WatchedRun[],
    private readonly everyMs = 1000,
  ) {}

  /** Keeps a page informed until it goes away. */
  add(page: ServerResponse, headers: OutgoingHttpHeaders): void {
    page.writeHead(200, { ...headers, "Content-Type": "text/event-stream; charset=utf-8" });
    page.write("retry: 2000\n\n");
    this.pages.add(page);
    page.once("close", () => this.remove(page));
    if (this.timer !== undefined) return;
    for (const run of this.runs()) this.stamps.set(run.id, run.stamp());
    this.again();
  }

  close(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    for (const page of this.pages) page.end();
    this.pages.clear();
  }

  private remove(page: ServerResponse): void {
    this.pages.delete(page);
    if (this.pages.size > 0) return;
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  /** Many runs take longer to look at: then less often, so that looking stays below a share of the time. */
  private again(took = 0): void {
    this.timer = setTimeout(
      () => {
        const began = performance.now();
        this.look();
        if (this.pages.size > 0) this.again(performance.now() - began);
      },
      Math.max(this.everyMs, took / mostShare),
    );
  }

  private look(): void {
    const changed = this.runs().filter((run) => {
      const stamp = run.stamp();
      const before = this.stamps.get(run.id);
      this.stamps.set(run.id, stamp);
      return stamp !== before;
    });
    const now = performance.now();
    if (changed.length > 0) this.tell(`data: ${JSON.stringify({ runs: changed.map(({ id }) => id) })}\n\n`, now);
    else if (now - this.last > breathMs) this.tell(": here\n\n", now);
  }

  private tell(text: string, now: number): void {
    this.last = now;
    for (const page of this.pages) page.write(text);
  }
}
