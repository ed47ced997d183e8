import { cpSync, renameSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { repository } from "../../test/paths.js";
import { run } from "../../test/run.js";
import { options, scratch, tablePolicy } from "../../test/support/tabular.js";
import { command } from "../../test/support/touchstone.js";
import { RunReader } from "../train/store/reader.js";
import { train } from "../train/train.js";

const touchstone = (...args: string[]) => run(process.execPath, [...command, ...args], { cwd: repository });
const folder = join(scratch(), "run");

beforeAll(async () => {
  const config = ["--model", await tablePolicy(), "--task", "test/support/successor-task.ts", "--set", "engine.name=table", "--problems", "4", "--group", "4"];
  const trained = await touchstone("train", ...config, "--lr", "0.3", "--steps", "4", "--eval-every", "2", "--eval-problems", "2", "--out", folder);
  expect(trained.code, trained.err).toBe(0);
});

describe("touchstone show", () => {
  it("draws the curve, lists the evaluations and the last step, and says how the run ended", async () => {
    const { code, out } = await touchstone("show", folder);
    expect(code).toBe(0);
    expect(out).toMatch(/^method +grpo, 4 steps of 4 problems x 4 answers, learning rate 0\.3$/m);
    expect(out).toMatch(/^reward of each step\n1 ┤/m);
    expect(out).toMatch(/^ {3}4 {2}avg@1 /m);
    expect(out).toMatch(/^step 4 \(/m);
    expect(out).toMatch(/^checkpoints: 0, 2, 4; 4 steps are done$/m);
  });

  it("draws another number of the steps, and offers the nearest name where it has no such one", async () => {
    expect((await touchstone("show", folder, "--metric", "entropy")).out).toContain("entropy of each step");
    const refused = await touchstone("show", folder, "--metric", "entrpy");
    expect(refused).toEqual({ code: 2, out: "", err: 'error: option --metric: no step has a number "entrpy"; did you mean "entropy"?\n' });
  });

  it("says whether the run learns, draws further numbers in a line each, and lists the groups that went worst", async () => {
    const { out } = await touchstone("show", folder);
    expect(out).toMatch(/^It does not learn, and this is why\n {2}! /m);
    expect(out).toMatch(/^ {2}! \d+ % of the groups teach nothing, because nearly all answers are wrong/m);
    expect(out).toMatch(/^ {2}tokens_mean +\S+ {2}[▁-█]{4} {2}\S+$/m);
    const { worst, insight } = JSON.parse((await touchstone("show", folder, "--json")).out);
    expect(insight).toMatchObject({ verdict: "not learning" });
    expect(worst).toHaveLength(5);
    const means = worst.map(({ mean }: { mean: number }) => mean);
    expect(means).toEqual([...means].sort((a, b) => a - b));
    const [{ step, group, verdicts, problem, answers }] = worst;
    expect(out).toMatch(new RegExp(`^worst groups of the last steps\\ngroup +reward +answers +problem\\n *${step}·${group} `, "m"));
    expect(Object.values(verdicts as { [verdict: string]: number }).reduce((a, b) => a + b, 0)).toBe(answers);
    const stored = (await RunReader.open(folder).groups(step))[group];
    expect(stored?.group.problem.key).toBe(problem);
    expect(stored?.rollouts).toHaveLength(answers);
  });

  it("tells of rollouts that cannot be read, and shows the rest", async () => {
    const torn = join(scratch(), "torn");
    cpSync(folder, torn, { recursive: true });
    truncateSync(join(torn, "rollouts/rollouts.jsonl"), 100);
    const { code, out } = await touchstone("show", torn);
    expect(code).toBe(0);
    expect(out).toMatch(/^rollouts cannot be read: .*rollouts\.jsonl: it ends at byte 100, before its index says; resume the run/m);
    expect(out).toMatch(/^checkpoints: 0, 2, 4;/m);
  });

  it("shows a run up to a checkpoint, and says which there are where there is no such one", async () => {
    const { out } = await touchstone("show", `${folder}@2`);
    expect(out).toContain("up to the checkpoint of step 2\n");
    expect(out).toMatch(/^step 2 \(/m);
    expect(out).not.toMatch(/^ {3}4 {2}avg@1 /m);
    expect((await touchstone("show", `${folder}@best`)).out).toMatch(/^up to the checkpoint of step [024]$/m);
    expect((await touchstone("show", `${folder}@9`)).err).toContain("there is no checkpoint 9; give one of 0, 2, 4, first, last or best");
  });

  it("prints all of it as one JSON object", async () => {
    const shown = JSON.parse((await touchstone("show", folder, "--json")).out);
    expect(shown).toMatchObject({ end: "4 steps are done", checkpoints: [0, 2, 4], config: { steps: 4 } });
    expect(shown.steps.map(({ step }: { step: number }) => step)).toEqual([1, 2, 3, 4]);
    expect(shown.evaluations.map(({ step }: { step: number }) => step)).toEqual([0, 2, 4]);
  });

  it("says how an interrupted run goes on, where it lies now", async () => {
    const controller = new AbortController();
    const stopped = options(await tablePolicy(), { signal: controller.signal, onProgress: ({ kind }) => kind === "step" && controller.abort() });
    await train(stopped);
    const moved = join(scratch(), "moved");
    renameSync(stopped.out, moved);
    const { out } = await touchstone("show", moved);
    expect(out).toContain(`interrupted after step 1 of 6; go on with: touchstone train --resume ${moved}\n`);
    expect(out).not.toContain(stopped.out);
  });

  it("refuses what is no run in one sentence", async () => {
    expect(await touchstone("show", scratch())).toMatchObject({ code: 1, err: expect.stringContaining("it is not the folder of a run") });
  });
});
