/** `touchstone compare` as a user meets it, with real runs on softmax tables. */
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it, vi } from "vitest";
import { repository } from "../../test/paths.js";
import { scratch, tablePolicy } from "../../test/support/tabular.js";
import { exitCode, failureText } from "./failure.js";
import { runProgram } from "./program.js";

/** The command within this process, whose start would take most of the time. */
async function touchstone(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const said = { out: "", err: "" };
  const spies = (["stdout", "stderr"] as const).map((name, i) =>
    vi.spyOn(process[name], "write").mockImplementation((text) => {
      said[i === 0 ? "out" : "err"] += String(text);
      return true;
    }),
  );
  try {
    await runProgram(["compare", ...args]);
    return { code: 0, ...said };
  } catch (error) {
    return { code: exitCode(error), out: said.out, err: said.err + failureText(error) };
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
}

const out = (): string => join(scratch(), "compared");
let base: string[];
/** GRPO and RLOO on two seeds, compared. */
let made: { readonly folder: string; readonly args: string[]; readonly text: string };
beforeAll(async () => {
  const file = join(scratch(), "base.yaml");
  const task = join(repository, "test/support/successor-task.ts");
  writeFileSync(
    file,
    `model: ${await tablePolicy()}\ntask: ${task}\nengine: { name: table }\nsteps: 6\nproblems: 4\ngroup: 4\nlr: 0.3\neval: { every: 2, problems: 4, samples: 4 }\n`,
  );
  base = ["--config", file];
  const folder = out();
  const args = ["--methods", "grpo,rloo", "--seeds", "2", ...base, "--out", folder];
  const { code, out: text, err } = await touchstone(...args, "--threshold", "0.05");
  expect(err).toContain("rloo, seed 1 (run 4 of 4)");
  expect(code).toBe(0);
  made = { folder, args, text };
});

describe("touchstone compare --methods", () => {
  it("runs each method on each seed and reports pairs, curves and plots", () => {
    expect(made.text).toMatch(/eval\.score at the end, and the difference to grpo; intervals of 95 %/);
    expect(made.text).toMatch(/\nrloo {2,}2 {2,}[\d.]+ % .* to .*[+-]?[\d.]+ {2,}.* to .* to /);
    expect(made.text).toMatch(/steps to 5\.0 % {2,}reached/);
    expect(made.text).toContain("rloo (steps 0 to 6)");
    const report = JSON.parse(readFileSync(join(made.folder, "compare.json"), "utf8"));
    expect(report.arms[1]).toMatchObject({
      label: "rloo",
      runs: [
        { seed: 0, ended: "done" },
        { seed: 1, ended: "done" },
      ],
      difference: { pairs: 2, seeds: { n: 2 }, problems: { n: 4 } },
      area_difference: { pairs: 2 },
      curve: [{ step: 0 }, { step: 2 }, { step: 4 }, { step: 6 }],
    });
    expect(report.arms[0].tokens.sampled).toBeGreaterThan(0);
    expect(report.arms[0].tokens.trained).toBeGreaterThan(0);
    expect(report.arms[0].curve[0]).toEqual(report.arms[1].curve[0]);
  });

  it("writes the curves as SVG with both names, and as a PNG that is no blank", async () => {
    const svg = readFileSync(join(made.folder, "curves.svg"), "utf8");
    for (const part of ["<svg", ">grpo<", ">rloo<", ">step<", ">eval.score<"]) expect(svg).toContain(part);
    const { createCanvas, loadImage } = await import("@napi-rs/canvas");
    const image = await loadImage(readFileSync(join(made.folder, "curves.png")));
    const canvas = createCanvas(image.width, image.height);
    canvas.getContext("2d").drawImage(image, 0, 0);
    const { data } = canvas.getContext("2d").getImageData(0, 0, image.width, image.height);
    const colours = new Set<string>();
    for (let i = 0; i < data.length; i += 4) colours.add(`${data[i]},${data[i + 1]},${data[i + 2]}`);
    // Blue and orange lines, grey grid, black text, white ground, with what lies between.
    expect(colours.has("255,255,255") && colours.size > 20).toBe(true);
    expect(image.width).toBe(2 * Number(/width="(\d+)"/.exec(svg)?.[1]));
  });

  it("keeps runs that are done: the same command changes none of their bytes", async () => {
    const events = join(made.folder, "grpo", "seed-0", "events.jsonl");
    const before = statSync(events).mtimeMs;
    const again = await touchstone(...made.args);
    expect(again.err).toContain("4 of 4 runs are done and are kept.");
    expect(again.err).not.toContain("(run ");
    expect(statSync(events).mtimeMs).toBe(before);
  });

  it("refuses to mix runs that were made with other options", async () => {
    const { code, err } = await touchstone(...made.args, "--lr", "0.1");
    expect(code).toBe(2);
    expect(err).toContain("this run is there and was made with other options: lr was 0.3 and is 0.1");
  });

  it("of one method is its curve over the seeds, without a difference", async () => {
    const args = made.args.map((arg) => (arg === "grpo,rloo" ? "grpo" : arg));
    const { code, out: text, err } = await touchstone(...args);
    expect(code).toBe(0);
    expect(err).toContain("2 of 2 runs are done and are kept.");
    expect(text).toMatch(/eval\.score at the end; intervals of 95 %/);
    expect(text).toContain("grpo (steps 0 to 6)");
    expect(text).not.toContain("rloo");
  });

  it("refuses what is of a single run, a misspelt method and a missing folder before any work", async () => {
    const folder = out();
    const refused = async (...args: string[]) => (await touchstone(...args)).err;
    expect(await refused("--methods", "grpo,rlo", ...base, "--out", folder)).toContain("rloo");
    expect(await refused("--methods", "grpo,rloo", ...base)).toContain("option --out: it is missing");
    expect(await refused("--methods", "grpo,grpo", ...base, "--out", folder)).toContain("grpo is there twice");
    expect(await refused("--methods", "grpo,rloo", ...base, "--seed", "3", "--out", folder)).toContain("option --seed: it is of a single run; give --seeds");
    expect(await refused("--methods", "grpo,rloo", ...base, "--seeds", "0", "--out", folder)).toContain("option --seeds");
    expect(existsSync(folder)).toBe(false);
  });
});

describe("touchstone compare RUN RUN", () => {
  const folderOf = (method: string, seed: number) => join(made.folder, method, `seed-${seed}`);

  it("has no interval over one seed, never 0", async () => {
    const folder = out();
    const { code, out: text } = await touchstone(folderOf("grpo", 0), folderOf("rloo", 0), "--out", folder);
    expect(code).toBe(0);
    expect(text).toMatch(/\nrloo {2,}1 {2,}[\d.]+ % {2,}no interval {2,}\S+ {2,}no interval {2,}\S+ to \S+\n/);
    expect(text).toContain("note: grpo and rloo have one seed in common");
  });

  it("gathers seeds under labels, of any metric of the steps", async () => {
    const side = (method: string) => [0, 1].map((seed) => folderOf(method, seed)).join(",");
    const { out: text } = await touchstone(`a=${side("grpo")}`, `b=${side("rloo")}`, "--metric", "reward", "--json", "--out", out());
    const report = JSON.parse(text);
    expect(report.metric).toBe("reward");
    expect(report.arms.map(({ label }: { label: string }) => label)).toEqual(["a", "b"]);
    expect(report.arms[1].difference).toMatchObject({ pairs: 2, seeds: { n: 2 }, problems: null });
    expect(report.arms[0].curve).toHaveLength(6);
  });

  it("says which metric there is, and what two sides need", async () => {
    const none = await touchstone(folderOf("grpo", 0), folderOf("rloo", 0), "--metric", "rewards", "--out", out());
    expect(none.err).toMatch(/option --metric: the steps of .* have no rewards; choose one of eval\.score, .*reward/);
    expect((await touchstone(folderOf("grpo", 0))).err).toContain("it got one side; give two runs or labels or more");
    expect((await touchstone(folderOf("grpo", 0), folderOf("rloo", 0), "--lr", "1")).err).toContain("option --lr: runs that are there keep their options");
  });
});
