/** Loggers of real runs on softmax tables. */
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { options, scratch, tablePolicy } from "../../../test/support/tabular.js";
import type { LogEntry } from "../logger.js";
import type { TrainProgress } from "../progress.js";
import { RunReader } from "../store/reader.js";
import { resume, type TrainOptions, train } from "../train.js";
import { crc32c } from "./tfevents.js";

/** A run of four steps, evaluated before, after the second and after the fourth, as CSV and for TensorBoard. */
let folder: string;
let model: string;
const made = (more: Partial<TrainOptions> = {}) => options(model, { steps: 4, eval: { every: 2, problems: 4 }, ...more });
beforeAll(async () => {
  model = await tablePolicy();
  folder = (await train(made({ loggers: ["csv", "tensorboard"] }))).folder;
});

interface Table {
  readonly header: string[];
  readonly rows: { readonly [name: string]: string }[];
}
function csvOf(run: string): Table {
  const [header, ...lines] = readFileSync(join(run, "metrics.csv"), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => line.split(","));
  return { header, rows: lines.map((cells) => Object.fromEntries(header.map((name, i) => [name, cells[i]]))) };
}

const metricsOf = (run: string, step: number) =>
  [...RunReader.open(run).events()].find((event) => event.kind === "step" && event.step === step)?.data.metrics as { readonly [name: string]: number };

/** An event file read without our writer: records by hand, protobuf by its wire format. */
function eventsOf(run: string): { step: number; wall: number; version?: string; values: { [tag: string]: number } }[] {
  const name = readdirSync(run).find((file) => file.startsWith("events.out.tfevents.")) as string;
  const file = readFileSync(join(run, name));
  const found: ReturnType<typeof eventsOf> = [];
  const unmasked = (at: number): number => {
    const turned = (file.readUInt32LE(at) - 0xa282ead8) >>> 0;
    return ((turned >>> 17) | (turned << 15)) >>> 0;
  };
  for (let at = 0; at < file.length; ) {
    const length = Number(file.readBigUInt64LE(at));
    expect(unmasked(at + 8)).toBe(crc32c(file.subarray(at, at + 8)));
    const data = file.subarray(at + 12, at + 12 + length);
    expect(unmasked(at + 12 + length)).toBe(crc32c(data));
    const event: ReturnType<typeof eventsOf>[number] = { step: 0, wall: 0, values: {} };
    for (const [field, value] of fields(data)) {
      if (field === 1) event.wall = (value as Buffer).readDoubleLE(0);
      if (field === 2) event.step = value as number;
      if (field === 3) event.version = String(value);
      if (field === 5) {
        for (const [, one] of fields(value as Buffer)) {
          const parts = new Map(fields(one as Buffer));
          event.values[String(parts.get(1))] = (parts.get(2) as Buffer).readFloatLE(0);
        }
      }
    }
    found.push(event);
    at += length + 16;
  }
  return found;
}

function fields(data: Buffer): [number, number | Buffer][] {
  const found: [number, number | Buffer][] = [];
  let at = 0;
  const varint = (): number => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = data[at++];
      value += (byte & 127) * 2 ** shift;
      if (byte < 128) return value;
    }
  };
  const take = (length: number): Buffer => {
    at += length;
    return data.subarray(at - length, at);
  };
  while (at < data.length) {
    const tag = varint();
    const read = { 0: varint, 1: () => take(8), 2: () => take(varint()), 5: () => take(4) }[tag & 7];
    found.push([tag >> 3, (read as () => number | Buffer)()]);
  }
  return found;
}

/** The run as it is after a kill between its checkpoint of the second step and the end. */
function killedAfter2(): string {
  const copy = join(scratch(), "run");
  cpSync(folder, copy, { recursive: true });
  for (const step of ["00000003", "00000004"]) rmSync(join(copy, "checkpoints", step), { recursive: true, force: true });
  writeFileSync(join(copy, "checkpoints", "latest"), "00000002\n");
  return copy;
}

describe("the logger csv", () => {
  it("writes a row a step, with evaluations in the row of their step", () => {
    const { header, rows } = csvOf(folder);
    expect(header[0]).toBe("step");
    expect(rows.map(({ step }) => step)).toEqual(["0", "1", "2", "3", "4"]);
    expect(rows.map((row) => row["eval.score"] !== "")).toEqual([true, false, true, false, true]);
    expect(rows[0].reward).toBe("");
    for (const step of [1, 2, 3, 4]) {
      const { reward, sampled_tokens } = metricsOf(folder, step);
      expect(Number(rows[step].reward)).toBe(reward);
      expect(Number(rows[step].sampled_tokens)).toBe(sampled_tokens);
      expect(Number(rows[step]["clock.ms"])).toBeGreaterThan(0);
    }
  });
});

describe("the logger tensorboard", () => {
  it("computes the CRC-32C of RFC 3720", () => {
    expect(crc32c(new Uint8Array(32))).toBe(0x8a9136aa);
    expect(crc32c(Buffer.from("123456789"))).toBe(0xe3069283);
  });

  it("writes records that another reader reads: version, steps, tags and values", () => {
    const [version, ...events] = eventsOf(folder);
    expect(version).toMatchObject({ version: "brain.Event:2", step: 0 });
    expect(events.map(({ step }) => step)).toEqual([0, 1, 2, 2, 3, 4, 4]);
    for (const { wall } of events) expect(Math.abs(wall - Date.now() / 1000)).toBeLessThan(3600);
    const third = events[4];
    expect(third.values["train/reward"]).toBe(Math.fround(metricsOf(folder, 3).reward));
    expect(third.values["clock/ms"]).toBeGreaterThan(0);
    expect(Object.keys(events[3].values).sort()).toEqual(["eval/score", "eval/tokens_mean"]);
  });
});

describe("loggers of a resumed run", () => {
  it("have each step once, as the uninterrupted run has", async () => {
    const copy = killedAfter2();
    const before = eventsOf(copy).filter(({ step }) => step <= 2);
    await resume(copy, { task: made().task });
    const untimed = ({ rows }: Table) => rows.map((row) => Object.fromEntries(Object.entries(row).filter(([name]) => !name.startsWith("clock."))));
    expect(untimed(csvOf(copy))).toEqual(untimed(csvOf(folder)));
    const after = eventsOf(copy);
    expect(after.map(({ step }) => step)).toEqual([0, 0, 1, 2, 2, 3, 4, 4]);
    expect(after.slice(0, before.length)).toEqual(before);
  });

  it("make good what their files lack", async () => {
    const copy = killedAfter2();
    rmSync(join(copy, "metrics.csv"));
    const name = readdirSync(copy).find((file) => file.startsWith("events.out.")) as string;
    truncateSync(join(copy, name), 300);
    await resume(copy, { task: made().task });
    expect(csvOf(copy).rows.map(({ step }) => step)).toEqual(["0", "1", "2", "3", "4"]);
    expect(eventsOf(copy).map(({ step }) => step)).toEqual([0, 0, 1, 2, 2, 3, 4, 4]);
  });
});

describe("loggers of one's own", () => {
  const module = (text: string): string => {
    const path = join(scratch(), "mine.mjs");
    writeFileSync(path, text);
    return path;
  };

  it("are modules with log(step, metrics), told of the run before and after", async () => {
    const path = module(`
      import { appendFileSync } from "node:fs";
      let file;
      export const begin = ({ folder, config, step, past }) => { file = folder + "/mine.txt"; appendFileSync(file, ["begin", config.steps, step, [...past].length].join(" ") + "\\n"); };
      export const log = async (step, metrics) => { await null; appendFileSync(file, step + (metrics.reward === undefined ? " evaluation" : " step") + "\\n"); };
      export const end = () => appendFileSync(file, "end\\n");`);
    const { folder: run } = await train(made({ steps: 2, loggers: [path] }));
    expect(readFileSync(join(run, "mine.txt"), "utf8").trim().split("\n")).toEqual(["begin 2 0 0", "0 evaluation", "1 step", "2 step", "2 evaluation", "end"]);
  });

  it("may be objects of the program, and change no byte of the run", async () => {
    const logged: LogEntry[] = [];
    const own = { log: (step: number, metrics: LogEntry["metrics"]) => void logged.push({ step, metrics: Object.assign(metrics, { reward: 7 }) }) };
    const { folder: run } = await train(made({ loggers: [own] }));
    expect(logged.map(({ step }) => step)).toEqual([0, 1, 2, 2, 3, 4, 4]);
    expect([1, 2, 3, 4].map((step) => metricsOf(run, step))).toEqual([1, 2, 3, 4].map((step) => metricsOf(folder, step)));
  });

  it("that fail are told once and stop nothing", async () => {
    for (const text of [
      `export const log = () => { throw new Error("no network"); };`,
      `export const log = async () => { throw new Error("no network"); };`,
      `export const begin = () => { throw new Error("no network"); }; export const log = () => { throw new Error("never called"); };`,
      `export const log = () => undefined; export const end = async () => { throw new Error("no network"); };`,
    ]) {
      const said: string[] = [];
      const onProgress = (progress: TrainProgress) => progress.kind === "message" && said.push(progress.text);
      const { reason } = await train(made({ loggers: [module(text), "csv"], onProgress }));
      expect(reason).toBe("done");
      expect(said.filter((line) => line.includes("logger"))).toEqual(["the logger mine.mjs failed and the run goes on: no network"]);
    }
  });

  it("are refused before any work where they are none, with the nearest name", async () => {
    const refused = (loggers: string[], place: Partial<TrainOptions> = {}) => {
      const run = made({ loggers, ...place });
      return train(run).then(
        () => "trained",
        (error: Error) => `${error.message}${existsSync(run.out) ? " (but there is a folder)" : ""}`,
      );
    };
    expect(await refused(["tensorbord"])).toBe(
      'loggers: there is no logger "tensorbord"; did you mean "tensorboard"?, or the path of a module, such as ./mine.ts',
    );
    expect(await refused(["csv", "csv"])).toContain("loggers: csv is there twice");
    expect(await refused(["./nowhere.ts"])).toContain("loggers: there is no file");
    expect(await refused([module("export const write = 1;")])).toContain("it exports no log(step, metrics)");
  });

  it("that are gone when a run is resumed are left out", async () => {
    const path = module(`export const log = () => undefined;`);
    const stop = new AbortController();
    const onStep = (progress: TrainProgress) => progress.kind === "step" && stop.abort();
    const { folder: run } = await train(made({ loggers: [path], signal: stop.signal, onProgress: onStep }));
    rmSync(path);
    const said: string[] = [];
    const { reason } = await resume(run, { task: made().task, onProgress: (progress) => progress.kind === "message" && said.push(progress.text) });
    expect(reason).toBe("done");
    expect(said.join("\n")).toContain("a logger is left out: loggers: there is no file");
  });
});
