import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { snapshot } from "../../test/support/run-writer.js";
import { options, scratch, tablePolicy } from "../../test/support/tabular.js";
import type { Problem } from "../core/problem.js";
import { type ProfileHead, type ProfileLine, profileText } from "../evaluate/profile.js";
import { byProfile, spread } from "./by-profile.js";
import { RunReader } from "./store/reader.js";
import { resume, type TrainOptions, train } from "./train.js";

const folder = scratch();
const problem = (key: string): Problem => ({ key, prompt: [{ role: "user", content: key }], reference: { state: "gold", answer: "1", version: 0 } });
const line = (key: string, pass: number | null, k = 8): ProfileLine => ({
  key,
  pass,
  k,
  accepted: Math.round((pass ?? 0) * k),
  scored: pass === null ? 0 : k,
  unscored: pass === null ? k : 0,
  tokens: 3,
  truncated: 0,
});
function write(name: string, lines: readonly ProfileLine[], problems = lines.length, more: Pick<ProfileHead, "truncation"> = {}): string {
  const head = {
    touchstone_profile: 1,
    model: "m",
    model_sha256: "0",
    tokenizer: "t",
    verifier: "exact:1",
    k: 8,
    temperature: 1,
    max_tokens: 4,
    seed: 0,
    problems,
    problems_sha256: "0",
    ...more,
  } as const;
  const file = join(folder, name);
  writeFileSync(file, profileText(head) + lines.map(profileText).join(""));
  return file;
}
const problems = ["a", "b", "c", "d"].map(problem);
const defaults = { min_pass: 0, max_pass: 1, unprofiled: "refuse", weight: "equal" } as const;

describe("problems by profile", () => {
  const file = write("four.jsonl", [line("d", 1), line("a", 0), line("b", 0.5), line("c", 0.25), line("other", 0.5)]);
  const chosen = (more: object, of = problems, verifier = "exact:1") => {
    const notes: string[] = [];
    const { weights, ...rest } = byProfile(of, { file, ...defaults, ...more }, verifier, notes);
    return { keys: rest.problems.map(({ key }) => key), weights: weights && Object.fromEntries(weights), notes };
  };

  it("are those within the limits, ends included, in the order that they had", () => {
    expect(chosen({}).keys).toEqual(["a", "b", "c", "d"]);
    expect(chosen({ min_pass: 0.25, max_pass: 0.5 }).keys).toEqual(["b", "c"]);
    expect(chosen({ max_pass: 0.9 }, problems, "number:2").notes).toEqual([
      "3 of 4 problems are kept by their pass rate under m (k 8, temperature 1)",
      "the profile was judged by exact:1, and this run by number:2",
    ]);
    const restricted = write(
      "restricted.jsonl",
      ["a", "b", "c", "d"].map((key) => line(key, 1)),
      4,
      { truncation: { topP: 0.9 } },
    );
    expect(chosen({ file: restricted }).notes[1]).toBe(
      "the profile was drawn from the most likely tokens alone, and training draws from the whole distribution",
    );
  });

  it("are weighted by the expected spread of their scores", () => {
    // With pass p of n = 8 answers: a = 8p + 1, b = 8(1 - p) + 1, ab / (10 · 11).
    expect(spread(0.5, 8)).toBeCloseTo(25 / 110, 15);
    expect(spread(0, 8)).toBeCloseTo(9 / 110, 15);
    expect(spread(1, 8)).toBeCloseTo(9 / 110, 15);
    expect(spread(0, 0)).toBeCloseTo(1 / 6, 15);
    const { weights } = chosen({ weight: "spread" });
    for (const [key, expected] of Object.entries({ a: 9, b: 25, c: 21, d: 9 })) expect(weights?.[key]).toBeCloseTo(expected / 110, 15);
  });

  it("that the profile lacks, or has no score of, are refused, dropped or kept", () => {
    const more = [...problems, problem("e")];
    const unscored = write("unscored.jsonl", [line("a", null), ...["b", "c", "d", "e"].map((key) => line(key, 0.5))]);
    expect(() => chosen({}, more)).toThrow(
      `${file}: it has no pass rate of 1 of the 5 problems (the first: problem e); profile these too, or set profile.unprofiled`,
    );
    expect(() => chosen({}, [problem("x")])).toThrow("it has no pass rate of 1 of the 1 problems (the first: problem x); give the profile of this data");
    expect(chosen({ unprofiled: "drop" }, more).keys).toEqual(["a", "b", "c", "d"]);
    expect(chosen({ unprofiled: "keep", min_pass: 0.5, weight: "spread" }, more)).toMatchObject({ keys: ["b", "d", "e"], weights: { e: 1 / 6 } });
    expect(() => chosen({ file: unscored })).toThrow("it has no pass rate of 1 of the 4 problems (the first: problem a)");
    expect(chosen({ file: unscored, unprofiled: "drop" }).keys).toEqual(["b", "c", "d"]);
  });

  it("by a file that is none, unfinished or of impossible limits are refused", () => {
    expect(() => chosen({ min_pass: 0.6, max_pass: 0.7 })).toThrow(`${file}: none of the 4 problems has a pass rate from 0.6 to 0.7; widen`);
    expect(() => chosen({ min_pass: 0.6, max_pass: 0.5 })).toThrow("profile.min_pass: it is 0.6, above max_pass 0.5; set it lower");
    expect(() => chosen({ file: write("unfinished.jsonl", [line("a", 1)], 2) })).toThrow(
      "unfinished.jsonl: it has 1 of its 2 problems; let touchstone profile finish it",
    );
    expect(() => chosen({ file: write("twice.jsonl", [line("a", 1), line("a", 0)]) })).toThrow("twice.jsonl, line 3: the problem a is there twice");
    const none = join(folder, "none.jsonl");
    writeFileSync(none, '{"key":"a","pass":1}\n');
    expect(() => chosen({ file: none })).toThrow("none.jsonl, line 1: it does not begin like a profile; give a file that touchstone profile wrote");
  });
});

describe("a run by a profile", () => {
  let model: string;
  let settings: (more?: Partial<TrainOptions>) => TrainOptions;
  beforeAll(async () => {
    model = await tablePolicy();
    // Key p10 is never solved, p11 half of the time, the others always or nearly so.
    const data = join(folder, "digits.jsonl");
    const texts = Array.from({ length: 12 }, (_, i) => String(10 + i));
    writeFileSync(data, texts.map((prompt) => `${JSON.stringify({ id: `p${prompt}`, prompt, answer: String((Number(prompt) + 1) % 10) })}\n`).join(""));
    const file = write(
      "digits.profile.jsonl",
      texts.map((text) => line(`p${text}`, text === "10" ? 0 : text === "11" ? 0.5 : 0.875)),
    );
    settings = (more = {}) => {
      const { task: _, ...rest } = options(model, {
        data: { file: data, key_column: "id" },
        profile: { file, min_pass: 0.1, weight: "spread" },
        verifier: "exact",
        max_tokens: 3,
        problems: 2,
        steps: 22,
        ...more,
      });
      return rest;
    };
  });

  it("trains on what is left, more often on what is solved half of the time, and is resumed to the same bytes", async () => {
    const whole = settings();
    await train(whole);
    const reader = RunReader.open(whole.out);
    const groups = await Promise.all(Array.from({ length: 22 }, (_, i) => reader.groups(i + 1)));
    const keys = groups.flat().map(({ group }) => group.problem.key);
    expect(keys).not.toContain("p10");
    const count = (key: string): number => keys.filter((each) => each === key).length;
    // Weights 25 for p11 and 16 for each of ten others: 44 places give p11 5.9, rounded up or down in each of four epochs.
    expect(count("p11")).toBeGreaterThanOrEqual(4);
    expect(new Set(keys).size).toBe(11);
    const stop = new AbortController();
    const cut = settings({ signal: stop.signal, onProgress: (progress) => progress.kind === "step" && progress.step === 7 && stop.abort() });
    await train(cut);
    expect((await resume(cut.out)).reason).toBe("done");
    const [expected, is] = [snapshot(whole.out), snapshot(cut.out)];
    expect(Object.keys(expected).filter((path) => is[path] !== expected[path])).toEqual([]);
  });

  it("is refused where a batch takes more problems than are left", async () => {
    await expect(train(settings({ problems: 12 }))).rejects.toThrow(
      "problems: a batch takes 12 different problems, and the profile leaves 11 of 12; set it to fewer",
    );
  });
});
