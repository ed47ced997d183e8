import { describe, expect, it } from "vitest";
import { z } from "zod";
import type { Json } from "../core/json.js";
import { judge } from "../verify/contract.js";
import { number } from "../verify/number/number.js";
import { posedBy, type Row, type Split } from "./contract.js";
import { defineTask, splitOf } from "./define.js";

const twice = defineTask({
  name: "twice",
  draw: (random) => {
    const n = random.int(1000);
    return { prompt: `Twice ${n}:`, answer: 2 * n };
  },
  verify: ({ response, reference }) => Number(response) === reference,
});

const listed = (rows: readonly Row<string | number>[]) => defineTask({ name: "listed", rows: () => rows, verifier: number() });
const many = Array.from({ length: 300 }, (_, i): Row<number> => ({ prompt: `p${i}`, answer: i }));

describe("problems that are drawn", () => {
  const few = defineTask({
    name: "few",
    draw: (random) => ({ prompt: String(random.int(20)), answer: 1 }),
    shares: { eval: 0.25, train: 0.5, warm: 0.25 },
    verify: () => true,
  })();

  it("are the same at once and with pauses", async () => {
    const task = twice();
    expect(await task.pose?.("train", 40, 3)).toEqual(task.problems("train", 40, 3));
  });

  it("are all that there are, where fewer are different than one asks for", async () => {
    const posed = await posedBy(few, "train", 1000, 0);
    expect(posed.length).toBeGreaterThan(3);
    expect(posed.length).toBeLessThan(20);
    expect(posed).toEqual(few.problems("train", posed.length, 0));
    expect(() => few.problems("train", 1000, 0)).toThrow(`only ${posed.length} different ones were found`);
  });

  it("let the event loop go on, and tell how many there are", async () => {
    const found: number[] = [];
    let turns = 0;
    const timer = setInterval(() => turns++, 1);
    await twice().pose?.("train", 1000, 0, (n) => found.push(n));
    clearInterval(timer);
    expect(found.length).toBeGreaterThan(0);
    expect(found).toEqual([...found].sort((a, b) => a - b));
    expect(turns).toBeGreaterThan(0);
  });
});

describe("a task of one's own", () => {
  it("is a few typed lines: its reference has the type that its problems gave it", async () => {
    const task = twice();
    const [problem] = task.problems("train", 1, 0);
    if (problem === undefined) throw new Error("no problem");
    expect(problem.prompt[0]?.content).toMatch(/^Twice \d+:$/);
    expect((await judge(task.verifier, problem, String(problem.reference.answer))).kind).toBe("accept");
    expect(await judge(task.verifier, problem, "none")).toMatchObject({ kind: "reject", reason: "wrong" });
    const typed: number = defineTask({ name: "t", draw: () => ({ prompt: "p", answer: 1 }), verify: ({ reference }) => reference.toFixed(1) === "1.0" })().size(
      "eval",
    );
    expect(typed).toBe(Number.POSITIVE_INFINITY);
    // @ts-expect-error a check may not treat a number as a text
    defineTask({ name: "t", draw: () => ({ prompt: "p", answer: 1 }), verify: ({ reference }) => reference.trim() === "" });
  });

  it("takes options by a strict schema, and hands them on typed", () => {
    const table = defineTask({
      name: "table",
      options: z.strictObject({ factor: z.int().min(1).default(3) }),
      draw: (random, { factor }) => {
        const n = random.int(1e6);
        return { prompt: String(n), answer: n * factor };
      },
      verifier: () => number(),
      solution: (problem, random, { factor }) => `${factor * Number(problem.prompt[0]?.content)}/${random.int(10)}`,
      maxTokens: ({ factor }) => factor + 5,
    });
    const task = table({ factor: 4 });
    const [problem] = task.problems("warm", 1, 0);
    expect(task.options).toEqual({ factor: 4 });
    expect(task.maxTokens).toBe(9);
    expect(problem?.reference.answer).toBe(4 * Number(problem?.prompt[0]?.content));
    expect(problem && task.solution?.(problem, [1, 2, 3, 4])).toMatch(new RegExp(`^${problem?.reference.answer}/\\d$`));
    expect(() => table({ faktor: 4 } as object)).toThrow('task table, option faktor: there is no such option; did you mean "factor"?');
    expect(() => twice({ n: 1 } as never)).toThrow("task twice, option n: there is no such option; nothing can be set here; leave it out");
    expect([table.taskName, Object.keys(table.schema.shape)]).toEqual(["table", ["factor"]]);
    expect(new Set([table().id, table({ factor: 4 }).id, task.id, twice().id]).size).toBe(3);
  });
});

describe("a task of rows", () => {
  it("gives each row one split and one key, and what only training may see apart", () => {
    const task = listed([
      { prompt: "one", answer: 1, split: "train", solution: "1 is 1", privileged: { hint: "h" }, tags: { level: 1 } },
      { prompt: "two", answer: 2, split: "eval", key: "k2" },
    ]);
    const [one] = task().problems("train", 1, 0);
    expect(one).toEqual({
      key: expect.stringMatching(/^[0-9a-f]{20}$/),
      prompt: [{ role: "user", content: "one" }],
      reference: { state: "gold", answer: 1, version: 0 },
      privileged: { solution: "1 is 1", hint: "h" },
      tags: { level: 1 },
    });
    expect(task().problems("eval", 1, 0)[0]?.key).toBe("k2");
    expect((["train", "eval", "warm"] as Split[]).map((split) => task().size(split))).toEqual([1, 1, 0]);
  });

  it("splits many rows by their shares, shuffled by seed, each in one split", () => {
    const task = listed(many)();
    const sizes = [task.size("train"), task.size("eval"), task.size("warm")] as const;
    expect(sizes[0] + sizes[1]).toBe(300);
    expect(sizes[2]).toBe(0);
    expect(sizes[1]).toBeGreaterThan(15);
    expect(sizes[1]).toBeLessThan(50);
    const keys = (seed: number): string[] => task.problems("train", sizes[0], seed).map((problem) => problem.key);
    expect(keys(1)).toEqual(keys(1));
    expect(keys(2)).not.toEqual(keys(1));
    expect([...keys(2)].sort()).toEqual([...keys(1)].sort());
    const held = new Set(task.problems("eval", sizes[1], 1).map((problem) => problem.key));
    expect(keys(1).filter((key) => held.has(key))).toEqual([]);
  });

  it("keeps a row's split when rows are added before it", () => {
    const splitsOf = (rows: readonly Row<number>[]): Map<string, Split> => {
      const task = listed(rows)();
      return new Map(
        (["train", "eval"] as Split[]).flatMap((split) => task.problems(split, task.size(split), 0).map((problem) => [problem.key, split] as const)),
      );
    };
    const more = splitsOf([{ prompt: "new", answer: 0 }, ...many]);
    expect([...splitsOf(many)].filter(([key, split]) => more.get(key) !== split)).toEqual([]);
  });

  it("refuses bad rows by number before anything runs", () => {
    const task = listed([
      { prompt: "a", answer: "1" },
      { prompt: "b", answer: "one" },
      { prompt: "a", answer: "1" },
      { prompt: "c", answer: "" },
    ])();
    expect(() => task.size("train")).toThrow(
      'task listed: 3 of 4 rows are bad (row 2: "one" is not one number (unreadable); row 3: it is the same problem as row 1; row 4: "" is not one number (no-answer)); mend or leave out these rows',
    );
    const faulty = listed(Array.from({ length: 20 }, (_, i) => ({ prompt: `${i}`, answer: "x" })))();
    expect(() => faulty.problems("train", 1, 0)).toThrow("and 15 more)");
  });

  it("refuses to give more problems than there are", () => {
    const task = listed([{ prompt: "a", answer: 1, split: "train" }])();
    expect(() => task.problems("train", 2, 0)).toThrow("task listed, split train: 2 problems were asked for, and only 1 different ones were found");
    expect(() => task.problems("warm", 1, 0)).toThrow("there are none");
    expect(() => task.problems("train", 0.5, 0)).toThrow(RangeError);
    expect(task.problems("warm", 0, 0)).toEqual([]);
  });

  it("may lack a reference, and is then never scored", async () => {
    const task = defineTask({ name: "open", rows: () => [{ prompt: "write", split: "train" }], verifier: number() })();
    const [problem] = task.problems("train", 1, 0);
    expect(problem?.reference).toEqual({ state: "none", version: 0 });
    expect(problem && (await judge(task.verifier, problem, "1"))).toMatchObject({ kind: "unscored", reason: "no-reference" });
  });
});

describe("drawn problems", () => {
  it("are refused when the verifier cannot read their answer", () => {
    const broken = defineTask({ name: "broken", draw: (random): Row<Json> => ({ prompt: `${random.int(100)}`, answer: "x" }), verifier: number() })();
    expect(() => broken.problems("train", 1, 0)).toThrow(
      /task broken, problem "\d+": its answer is refused: "x" is not one number \(unreadable\); return an answer that the verifier number reads/,
    );
  });

  it("fall into splits by shares that must sum to 1", () => {
    const shares = { eval: 0.25, train: 0.75, warm: 0 };
    const counts = { eval: 0, train: 0, warm: 0 };
    for (let i = 0; i < 4000; i++) counts[splitOf(`key${i}`, shares)]++;
    expect(counts.warm).toBe(0);
    expect(Math.abs(counts.eval - 1000)).toBeLessThan(4 * Math.sqrt(4000 * 0.25 * 0.75));
    const base = { name: "s", draw: () => ({ prompt: "p" }), verify: () => true };
    expect(() => defineTask({ ...base, shares: { eval: 0.5, train: 0.2, warm: 0.2 } })).toThrow(
      "task s, shares: they are train 0.2, warm 0.2, eval 0.5; give numbers from 0 on that sum to 1",
    );
    expect(() => defineTask({ ...base, shares: { eval: -0.5, train: 1.5, warm: 0 } })).toThrow("task s, shares");
  });
});
