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
    rewrite(join(folder, "checkpoints/00000006/checkpoint.json"), '"step":6,"version":1', '"step":6,"version":2');
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

describe("a run whose files were changed by hand", () => {
  const bytes = () =>
    readdirSync(folder, { recursive: true, encoding: "utf8" })
      .sort()
      .map((path) => [path, statSync(join(folder, path)).isFile() && readFileSync(join(folder, path), "hex")]);
  const log = (name: string) => join(folder, name);
  const lines = (change: (all: string[]) => string[]) =>
    writeFileSync(log("events.jsonl"), change(readFileSync(log("events.jsonl"), "utf8").split("\n")).join("\n"));

  it.each([
    ["missing", () => rmSync(log("events.jsonl")), /events.jsonl: it is missing, and had \d+ bytes at the checkpoint of step 9, which is whole; /],
    ["short", () => truncateSync(log("events.jsonl"), 700), /events.jsonl: it has 700 bytes, and had \d+ at the checkpoint of step 9, which is whole; /],
    ["with a line less", () => lines((all) => all.toSpliced(2, 1)), /its first \d+ bytes are not those that it had at the checkpoint of step 9/],
    [
      "with a line twice",
      () => lines((all) => all.toSpliced(2, 0, all[2] as string)),
      /its first \d+ bytes are not those that it had at the checkpoint of step 9/,
    ],
    ["with another number", () => lines((all) => all.map((line) => line.replace('"step":3', '"step":4'))), /its first \d+ bytes are not those/],
  ])("is not resumed when its events are %s; nothing is touched, and the way on is named", async (_what, change, message) => {
    await writeUntil(folder, 11);
    change();
    const before = bytes();
    expect(() => RunStore.open(folder, meta)).toThrow(message);
    expect(() => RunStore.open(folder, meta)).toThrow(`put the file back from a copy, or go on in a new run: touchstone train --model ${folder}@9`);
    expect(bytes()).toEqual(before);
    expect(readdirSync(folder)).not.toContain("lock.json");
  });

  it.each([
    ["all of them", () => rmSync(log("rollouts"), { recursive: true }), "rollouts/rollouts.jsonl is missing"],
    ["their index", () => rmSync(log("rollouts/index.jsonl")), "rollouts/index.jsonl is missing"],
    ["the end of their log", () => truncateSync(log("rollouts/rollouts.jsonl"), 9000), /rollouts.jsonl has 9000 of \d+ bytes/],
    [
      "a line of their index",
      () => writeFileSync(log("rollouts/index.jsonl"), readFileSync(log("rollouts/index.jsonl"), "utf8").replace('"count":4', '"count":5')),
      "rollouts/index.jsonl is not what was written",
    ],
  ])("goes on without rollouts that are lost (%s), says so, and shows those from there on", async (_what, change, message) => {
    await writeUntil(folder, 10);
    change();
    const { store, resume, messages } = RunStore.open(folder, meta);
    expect(resume?.step).toBe(9);
    expect(messages.join(" ")).toMatch(message);
    for (const step of [10, 11, 12]) await writeStep(store, step);
    store.close();
    expect(eventsOf(folder).find((event) => event.kind === "warning")).toMatchObject({ step: 9, data: { message: messages.at(-1) } });
    const reader = RunReader.open(folder);
    expect((await reader.groups(11)).length).toBe(2);
    expect(await reader.groups(3)).toEqual([]);
    expect((await reader.rollout(36)).trajectory.key).toBe("1:s10g0/0"); // 4 a step, counted over the run: 36 were before
    await expect(reader.rollout(9)).rejects.toThrow("there is no rollout 9; give a number from 36 to 47");
    const again = RunStore.open(folder, meta);
    again.store.close();
    expect([again.resume?.step, again.messages]).toEqual([12, ["Resuming from the checkpoint of step 12."]]);
  });

  it("goes on without token columns that are lost, and keeps the rest", async () => {
    await writeUntil(folder, 9);
    rmSync(log("rollouts/columns"), { recursive: true });
    const { store, messages } = RunStore.open(folder, meta);
    await writeStep(store, 10);
    store.close();
    expect(messages.at(-1)).toContain("the token columns of 9 of 9 steps are missing from rollouts/columns");
    const reader = RunReader.open(folder);
    expect(reader.rolloutIndex().length).toBe(10);
    expect((await reader.groups(10)).length).toBe(2);
    await expect(reader.groups(3)).rejects.toThrow("00000003.safetensors");
  });

  it.each([
    ["an option", '"lr":0.0001', '"lr":0.1', "config.lr was 0.0001 and is 0.1"],
    ["the number of steps", '"steps":30', '"steps":2', "config.steps was 30 and is 2"],
    ["a part that is added", '"steps":30', '"steps":30,"seed":4', "config.seed was absent and is 4"],
    ["what it was made with", '"threads":2', '"threads":3', "fingerprint.threads was 2 and is 3"],
  ])("is refused where run.json was edited: %s", async (_what, from, to, difference) => {
    await writeUntil(folder, 4);
    rewrite(join(folder, "run.json"), from, to);
    expect(() => RunStore.open(folder, meta)).toThrow(
      `run.json: it is not what the run began with: ${difference}; write that back, or begin a new run with other options: touchstone train --model ${folder}@3`,
    );
  });

  it("may be moved, and run.json written in another layout", async () => {
    await writeUntil(folder, 4);
    const path = join(folder, "run.json");
    const run = JSON.parse(readFileSync(path, "utf8")) as { config: object };
    writeFileSync(path, JSON.stringify({ ...run, config: { ...run.config, out: "elsewhere" } }, null, 2));
    const { store, resume } = RunStore.open(folder, meta);
    store.close();
    expect(resume?.step).toBe(3);
  });

  it("does not begin again where its checkpoints are gone, or none is whole", async () => {
    await writeUntil(folder, 4);
    const kept = readFileSync(join(folder, "checkpoints/00000003/optimizer.safetensors"));
    truncateSync(join(folder, "checkpoints/00000003/optimizer.safetensors"), 4);
    expect(() => RunStore.open(folder, meta)).toThrow(
      /checkpoints: no checkpoint of the run is whole \(.*optimizer.safetensors: it has 4 bytes.*; put one back from a copy/,
    );
    writeFileSync(join(folder, "checkpoints/00000003/optimizer.safetensors"), kept);
    RunStore.open(folder, meta).store.close();
    rmSync(join(folder, "checkpoints/00000003"), { recursive: true });
    expect(() => RunStore.open(folder, meta)).toThrow("the checkpoints of the run are not there any more; put one back from a copy");
    rmSync(join(folder, "checkpoints"), { recursive: true });
    expect(() => RunStore.open(folder, meta)).toThrow("the checkpoints of the run are not there any more");
  });

  it("is refused with another program, told by its files", async () => {
    const program = { task: { "task.ts": "a1", "check.ts": "b1" }, verifier: { is: "v1" } };
    RunStore.create(folder, { ...meta, program }).close();
    const open = (now: object) => RunStore.open(folder, { ...meta, data: "d1", program: { ...program, ...now } });
    expect(() => open({ task: { "task.ts": "a1", "check.ts": "b2" } })).toThrow(
      "the program of its task has changed since it began (check.ts), so answers would be judged otherwise than before; put it back as it was, or start a new run",
    );
    expect(() => open({ verifier: { is: "v2" } })).toThrow("the program of its verifier has changed since it began (is)");
    expect(() => open({})).toThrow("its data set has changed");
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
