import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { groupsOf, meta, snapshot, writeStep, writeUntil } from "../../../test/support/run-writer.js";
import { notesOf } from "../../core/note.js";
import { RunReader } from "./reader.js";
import { RunStore } from "./store.js";

let base: string;
let folder: string;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "run-"));
  folder = join(base, "run");
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

const eventsOf = (run: string) => [...RunReader.open(run).events()].map(({ end: _, ...event }) => event);

describe("a run folder", () => {
  it("gives back groups, notes, numbers and columns as they were appended", async () => {
    await writeUntil(folder, 4);
    const [first] = await RunReader.open(folder).groups(2);
    const [expected] = groupsOf(2);
    const elapsedGone = (v: object) => ({ ...v, elapsedMs: 0 });
    expect(first?.group.trajectories.map((t) => ({ ...t, verdict: elapsedGone(t.verdict) }))).toEqual(
      expected?.trajectories.map((t) => ({ ...t, verdict: elapsedGone(t.verdict) })),
    );
    expect(first?.group.problem).toEqual(expected?.problem);
    expect(notesOf(first!.group.trajectories[0]!)).toEqual({ prior: 2 / 7 });
    expect(first?.rollouts.map((r) => r.numbers)).toEqual([{ reward: 1 }, { reward: null }]);
    expect([...(first?.rollouts[0]?.columns.advantage ?? [])]).toEqual([2 / 3, 2 / 3, 2 / 3]);
  });

  it("finds a rollout by its number over the run, and says which numbers there are", async () => {
    await writeUntil(folder, 4);
    const reader = RunReader.open(folder);
    expect((await reader.rollout(9)).trajectory.key).toBe("1:s3g0/1"); // 4 a step: the 10th is the 2nd of step 3
    await expect(reader.rollout(16)).rejects.toThrow("there is no rollout 16; give a number from 0 to 15");
  });

  it("shows a live reader new steps and events from where it stopped", async () => {
    const store = RunStore.create(folder, meta);
    await writeStep(store, 1);
    const reader = RunReader.open(folder);
    expect(reader.rolloutIndex().length).toBe(1);
    const end = [...reader.events()].at(-1)?.end as number;
    await writeStep(store, 2);
    expect(reader.rolloutIndex().length).toBe(2);
    expect([...reader.events(end)].map((e) => e.step)).toEqual([2]);
    store.close();
  });

  it("leaves out a line that is still being written", async () => {
    await writeUntil(folder, 2);
    writeFileSync(join(folder, "events.jsonl"), `${readFileSync(join(folder, "events.jsonl"), "utf8")}{"step":3,"ki`);
    expect(eventsOf(folder).map((e) => e.step)).toEqual([1, 2]);
  });

  it("holds what depends on a clock in `clock` alone: two runs are otherwise the same bytes", async () => {
    await writeUntil(folder, 7);
    const twin = join(base, "twin");
    await writeUntil(twin, 7);
    expect(snapshot(twin)).toEqual(snapshot(folder));
  });

  it("refuses numbers that JSON cannot carry, naming the event, and writes nothing", () => {
    const store = RunStore.create(folder, meta);
    expect(() => store.appendEvent({ step: 4, kind: "step", data: { loss: Number.NaN } })).toThrow("event step of step 4: data.loss");
    store.close();
    expect(statSync(join(folder, "events.jsonl")).size).toBe(0);
  });

  it("refuses rollouts of a step that was written", async () => {
    const store = RunStore.create(folder, meta);
    await writeStep(store, 1);
    expect(() => store.appendRollouts(1, groupsOf(1))).toThrow("rollouts of step 1 were to follow those of step 1");
    store.close();
  });
});

describe("checkpoints", () => {
  it("keeps the last two and the best, and points at them", async () => {
    await writeUntil(folder, 13);
    expect(readdirSync(join(folder, "checkpoints"))).toEqual(["00000003", "00000009", "00000012", "best", "latest"]);
    expect(readFileSync(join(folder, "checkpoints/latest"), "utf8")).toBe("00000012\n");
    expect(readFileSync(join(folder, "checkpoints/best"), "utf8")).toBe("00000003\n");
  });

  it("resumes with state and paths; logs are cut to the checkpoint and the cut part is kept aside", async () => {
    await writeUntil(folder, 8);
    const { store, resume, messages } = RunStore.open(folder, meta);
    store.close();
    expect(resume).toMatchObject({ step: 6, state: { cursor: 12 }, differs: [] });
    expect(readFileSync(`${resume?.policy}/model.safetensors`, "utf8")).toBe("weights of step 6");
    expect(readFileSync(resume?.optimizer as string, "utf8")).toBe("moments of step 6");
    expect(eventsOf(folder).map((e) => e.step)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(readFileSync(join(folder, "cut/0001/events.jsonl"), "utf8").trim().split("\n").length).toBe(2);
    expect(readdirSync(join(folder, "cut/0001/columns"))).toEqual(["00000007.safetensors", "00000008.safetensors"]);
    expect(messages).toEqual(["Resuming from the checkpoint of step 6.", `What was logged after it is kept in ${folder}/cut/0001.`]);
  });

  it("ends, after any resume, with the bytes of a run that was never interrupted", async () => {
    const whole = join(base, "whole");
    await writeUntil(whole, 11);
    for (const stop of [1, 3, 5, 9]) await writeUntil(folder, stop);
    await writeUntil(folder, 11);
    expect(snapshot(folder)).toEqual(snapshot(whole));
  });

  it("skips a damaged checkpoint with a message and sets it aside", async () => {
    await writeUntil(folder, 9);
    const file = join(folder, "checkpoints/00000009/policy/model.safetensors");
    writeFileSync(file, "weights of step 8");
    const { store, resume, messages } = RunStore.open(folder, meta);
    store.close();
    expect(resume?.step).toBe(6);
    expect(messages[0]).toBe(
      `Skipped a checkpoint: ${folder}/checkpoints/00000009/policy/model.safetensors: its bytes are not those that were written; resume from an earlier checkpoint.`,
    );
    expect(readdirSync(join(folder, "cut/0001/checkpoints"))).toEqual(["00000009"]);
    expect(readFileSync(join(folder, "checkpoints/latest"), "utf8")).toBe("00000006\n");
  });

  it.each([
    ["a missing file", (c: string) => rmSync(join(c, "optimizer.safetensors")), "it is missing"],
    ["a short file", (c: string) => truncateSync(join(c, "optimizer.safetensors"), 4), "it has 4 bytes instead of 17"],
    ["half a checkpoint.json", (c: string) => truncateSync(join(c, "checkpoint.json"), 100), "it is not JSON"],
    ["a changed checkpoint.json", (c: string) => rewrite(join(c, "checkpoint.json"), '"cursor":18', '"cursor":19'), "it is not what was written"],
    ["no checkpoint.json", (c: string) => rmSync(join(c, "checkpoint.json")), "it has no checkpoint.json"],
    ["a log shorter than it says", (c: string) => truncateSync(join(c, "../../events.jsonl"), 700), "part of it was lost"],
  ])("does not resume from one with %s", async (_what, damage, message) => {
    await writeUntil(folder, 9);
    damage(join(folder, "checkpoints/00000009"));
    const { store, resume, messages } = RunStore.open(folder, meta);
    store.close();
    expect(resume?.step).toBe(6);
    expect(messages[0]).toContain(message);
  });

  it("of a newer version are refused, not skipped", async () => {
    await writeUntil(folder, 6);
    rewrite(join(folder, "checkpoints/00000006/checkpoint.json"), '"version":1', '"version":2');
    expect(() => RunStore.open(folder, meta)).toThrow("it was written in version 2 of the run format, and this Touchstone reads up to 1");
    expect(readdirSync(folder)).not.toContain("lock.json");
  });

  it("starts from the beginning when there is none", async () => {
    await writeUntil(folder, 2);
    const { store, resume, messages } = RunStore.open(folder, meta);
    store.close();
    expect(resume).toBeUndefined();
    expect(messages[0]).toBe("There is no whole checkpoint: the run starts from the beginning.");
    expect(eventsOf(folder)).toEqual([]);
  });

  it("tells what differs in the fingerprint, and refuses other data", async () => {
    await writeUntil(folder, 3);
    const { store, resume, messages } = RunStore.open(folder, { ...meta, fingerprint: { processor: "test", threads: 4 } });
    store.close();
    expect(resume?.differs).toEqual(["threads was 2 and is 4"]);
    expect(messages).toContain("This resume is not byte-exact: threads was 2 and is 4.");
    expect(() => RunStore.open(folder, { ...meta, data: "d1" })).toThrow(
      "its data set has changed since it began; give the data it began with, or start a new run",
    );
  });
});

describe("what is not a run of ours", () => {
  it.each([
    ["a missing folder", () => {}, "there is no such folder; give the folder of a run"],
    [
      "a folder without run.json",
      () => copyInto("notes.txt", "hello"),
      "it is not the folder of a run (it has no run.json); give the folder that touchstone train wrote",
    ],
    [
      "a run of a newer version",
      () => copyInto("run.json", '{"format":"touchstone-run","version":9}'),
      "it was written in version 9 of the run format, and this Touchstone reads up to 1; open it with the newer Touchstone that wrote it",
    ],
    ["a broken run.json", () => copyInto("run.json", '{"format":'), "it is not JSON; give the folder of a run, or take run.json from a copy"],
    [
      "another run.json",
      () => copyInto("run.json", '{"format":"other"}'),
      'format: Invalid input: expected "touchstone-run"; give the folder of a run, or take run.json from a copy',
    ],
  ])("%s is refused in one sentence", (_what, make, sentence) => {
    make();
    expect(() => RunStore.open(folder, meta)).toThrow(sentence);
  });

  it("create refuses a folder with a run or with other files", async () => {
    await writeUntil(folder, 1);
    expect(() => RunStore.create(folder, meta)).toThrow("it already holds a run; resume it with --resume, or give another folder");
    folder = join(base, "other");
    copyInto("notes.txt", "hello");
    expect(() => RunStore.create(folder, meta)).toThrow("it holds other files; give a new or empty folder");
  });
});

describe("the lock", () => {
  it("keeps a second writer out, naming the first", () => {
    const store = RunStore.create(folder, meta);
    expect(() => RunStore.open(folder, meta)).toThrow(`the run is in use by process ${process.pid}`);
    store.close();
    RunStore.open(folder, meta).store.close();
  });

  it.each([
    ["of a process that has ended", { pid: 2 ** 22 + 1, started: "1" }],
    ["whose process id now belongs to another", { pid: process.ppid, started: "before" }],
  ])("%s is taken over", async (_what, holder) => {
    await writeUntil(folder, 3);
    writeFileSync(join(folder, "lock.json"), JSON.stringify({ ...holder, host: hostname() }));
    const { store } = RunStore.open(folder, meta);
    expect(lockOf(folder).pid).toBe(process.pid);
    store.close();
  });

  it("that was never filled in is taken over; one of another host is not", async () => {
    await writeUntil(folder, 3);
    writeFileSync(join(folder, "lock.json"), "");
    RunStore.open(folder, meta).store.close();
    writeFileSync(join(folder, "lock.json"), JSON.stringify({ pid: 1, started: "1", host: "elsewhere" }));
    expect(() => RunStore.open(folder, meta)).toThrow(
      `the run is in use by process 1 on elsewhere; end it there, or delete ${folder}/lock.json when it no longer runs`,
    );
  });
});

function lockOf(run: string): { pid: number; host: string } {
  return JSON.parse(readFileSync(join(run, "lock.json"), "utf8"));
}

function copyInto(name: string, text: string): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, name), text);
}

function rewrite(path: string, from: string, to: string): void {
  writeFileSync(path, readFileSync(path, "utf8").replace(from, to));
}
