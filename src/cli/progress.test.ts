import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { duration, Progress } from "./progress.js";

/** A stream that remembers, as a terminal or not. */
function recorder(isTTY: boolean, columns = 80) {
  const written: string[] = [];
  return { isTTY, columns, written, write: (text: string) => written.push(text), text: () => written.join("") };
}

/** What a terminal shows of its last line. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the codes that a terminal acts on
const shown = (text: string): string => (text.split("\n").at(-1) as string).replace(/^.*\r\x1b\[2K/s, "").replace(/\x1b\[\d+m/g, "");

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
});
afterEach(() => {
  vi.useRealTimers();
});

describe("the progress line", () => {
  it("is a bar with count, note, time left and what is awaited on a terminal", () => {
    const stream = recorder(true, 79);
    const progress = new Progress({ label: "train", total: 40, stream });
    vi.advanceTimersByTime(10_000);
    progress.at(10, "reward 0.50");
    expect(shown(stream.text())).toBe(`train ${"█".repeat(6)}${"░".repeat(18)} 10/40 · reward 0.50 · 30 s left`);
    progress.waitFor("samples");
    expect(shown(stream.text())).toMatch(/waiting for samples$/);
    vi.advanceTimersByTime(5000);
    expect(shown(stream.text())).toMatch(/^train [█░]{9,23} 10\/40 · reward 0\.50 · 45 s left · waiting for samples \(5 s\)$/);
    progress.end("done");
    expect(stream.text().endsWith("\r\x1b[2Kdone\n")).toBe(true);
  });

  it("never is longer than the terminal is wide", () => {
    for (const total of [undefined, 40]) {
      const stream = recorder(true, 50);
      const progress = new Progress({ label: "train", ...(total === undefined ? {} : { total }), stream });
      progress.at(10, "a note that is much too long for a line of fifty characters");
      expect(shown(stream.text()).length).toBeGreaterThan(40);
      expect(shown(stream.text()).length).toBeLessThan(50);
      progress.end();
    }
  });

  it("gives up its bar where a terminal is too narrow for both", () => {
    const stream = recorder(true, 20);
    const progress = new Progress({ label: "training", total: 100, stream });
    progress.at(7);
    expect(shown(stream.text())).toMatch(/^training 7\/100/);
    progress.end();
  });

  it("reckons what is left from what was done since it began, and from when that was begun", () => {
    const stream = recorder(false);
    vi.advanceTimersByTime(60_000);
    const progress = new Progress({ label: "train", total: 10, first: 5, since: performance.now() - 4000, stream });
    progress.at(6);
    expect(stream.written).toEqual(["train: 6/10 · 16 s left\n"]);
    progress.end();
  });

  it("takes a terminal that does not know its width for one of 80", () => {
    const stream = recorder(true, 0);
    const progress = new Progress({ label: "doctor", stream });
    progress.waitFor("copies");
    expect(shown(stream.text())).toBe("doctor: waiting for copies");
    progress.end();
  });

  it("is a plain line now and then elsewhere, and says what is awaited while nothing moves", () => {
    const stream = recorder(false);
    const progress = new Progress({ label: "train", total: 100, stream });
    progress.waitFor("samples");
    for (let i = 1; i <= 50; i++) {
      vi.advanceTimersByTime(100);
      progress.at(i);
    }
    expect(stream.written).toEqual(["train: 0/100 · waiting for samples\n"]);
    vi.advanceTimersByTime(40_000);
    expect(stream.written).toHaveLength(4);
    expect(stream.written.at(-1)).toMatch(/^train: 50\/100 · 4\d s left · waiting for samples \(4\d s\)\n$/);
    progress.end();
    vi.advanceTimersByTime(60_000);
    expect(stream.written).toHaveLength(4);
  });

  it("keeps lines that are said apart from the bar", () => {
    const stream = recorder(true);
    const progress = new Progress({ label: "train", stream });
    progress.at(1);
    progress.say("step 1: skipped");
    expect(stream.text()).toContain("\r\x1b[2Kstep 1: skipped\n");
    expect(shown(stream.text())).toBe("train");
    progress.end();
  });

  it("prints nothing when silent", () => {
    const stream = recorder(true);
    const progress = new Progress({ label: "train", total: 2, silent: true, stream });
    progress.waitFor("samples");
    progress.at(1);
    progress.say("line");
    vi.advanceTimersByTime(60_000);
    progress.end("done");
    expect(stream.written).toEqual([]);
  });
});

describe("a duration", () => {
  it("has at most two units", () => {
    expect([400, 8000, 59_600, 200_000, 7_500_000, 7_200_000].map(duration)).toEqual(["0 s", "8 s", "1 min", "3 min 20 s", "2 h 5 min", "2 h"]);
  });

  it("draws a picture above the bar in place of the one before, and nowhere but on a terminal", () => {
    const stream = recorder(true);
    const progress = new Progress({ label: "train", total: 4, stream });
    progress.picture(["one", "two"]);
    progress.at(1);
    expect(stream.text()).toContain("one\ntwo\n\r\x1b[2Ktrain ");
    stream.written.length = 0;
    progress.picture(["uno"]);
    progress.at(2);
    expect(stream.text().startsWith("\r\x1b[2K\x1b[2A\x1b[Juno\n\r\x1b[2Ktrain ")).toBe(true);
    stream.written.length = 0;
    progress.end("done");
    expect(stream.text()).toBe("\r\x1b[2K\x1b[1A\x1b[Jdone\n");
    const log = recorder(false);
    const plain = new Progress({ label: "train", total: 4, stream: log });
    plain.picture(["one"]);
    plain.at(1);
    plain.end();
    expect(log.text()).not.toContain("one");
  });
});
