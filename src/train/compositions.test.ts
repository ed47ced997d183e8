/** Compositions of papers' methods on chains with the starters, two steps each: who answers what, and what is refused. */
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { repository } from "../../test/paths.js";
import { scratch } from "../../test/support/tabular.js";
import { forms } from "../tasks/chain/chain.js";
import { RunReader } from "./store/reader.js";
import { type TrainOptions, train } from "./train.js";

const starter = (name: string): string => join(repository, "starters", name);
const plain = { name: "chain", options: { modulus: 7 } };

/** Two steps of four problems; what was said, who answers each slot, and the numbers of each step. */
async function twoSteps(method: TrainOptions["method"], more: Partial<TrainOptions> = {}) {
  const said: string[] = [];
  const { folder } = await train({
    model: starter("chain-100k"),
    task: plain,
    method,
    out: join(scratch(), "run"),
    steps: 2,
    problems: 4,
    group: 4,
    minibatches: 2,
    train_problems: 24,
    lr: 3e-4,
    checkpoint: { every: 0 },
    engine: { threads: 1, workers: 1 },
    onProgress: (progress) => progress.kind === "message" && said.push(progress.text),
    ...more,
  });
  const reader = RunReader.open(folder);
  const table = reader.run.method as readonly { readonly slot: string; readonly from: string; readonly how: string }[];
  const answers = (slot: string): string[] => table.filter((row) => row.slot === slot).map(({ from }) => from);
  const steps = [...reader.events()].flatMap(({ kind, data }) => (kind === "step" ? [data.metrics as { [name: string]: number }] : []));
  expect(steps.map(({ loss, grad_norm }) => Number.isFinite(loss) && Number.isFinite(grad_norm))).toEqual([true, true]);
  return { said, answers, steps };
}

describe("on chains, two steps", () => {
  it("of dapo+vigor+hispo: rounds of VIGOR, loss of HISPO, the rest of DAPO, and it says whose answers stand over whose", async () => {
    const { said, answers, steps } = await twoSteps(["dapo", "vigor", { name: "hispo", options: { window: 4 } }]);
    expect(["allocate", "loss", "aggregate", "adjust"].map(answers)).toEqual([["vigor"], ["hispo"], ["hispo"], ["dapo"]]);
    expect(said).toContain("method dapo+vigor+hispo: loss and aggregate of hispo, over dapo");
    for (const metrics of steps) expect(metrics).toMatchObject({ "hispo.segments": expect.any(Number), "vigor.largest": expect.any(Number) });
  });

  it("of cscr+gapo: credit moves within answers, bounds go by the answers' advantages", async () => {
    const { answers, steps } = await twoSteps([{ name: "cscr", options: { right_prompt: forms.right, wrong_prompt: forms.wrong } }, "gapo"], {
      model: starter("chain-hints"),
      task: { name: "chain", options: { modulus: 7, fillers: true, forms: {} } },
    });
    expect(["shape", "bounds"].map(answers)).toEqual([["cscr"], ["gapo"]]);
    for (const metrics of steps) expect(metrics["cscr.sensitivity"]).toBeGreaterThan(0.05);
    expect(steps.some((metrics) => "gapo.factor" in metrics)).toBe(true);
  });

  it("of thinkprior+dapo: dropped groups teach the prior, too", async () => {
    const { answers, steps } = await twoSteps([{ name: "thinkprior", options: { samples: 4 } }, "dapo"], {
      roles: { anchor: { model: starter("chain-100k") } },
    });
    expect(["select", "allocate", "loss"].map(answers)).toEqual([["thinkprior"], ["dapo"], ["dapo"]]);
    for (const metrics of steps) expect(metrics["thinkprior.generated"]).toBe(4 * (4 + (metrics["dapo.dropped"] ?? 0)));
  });

  it("of uecr+gapo: credit of reward and teacher, bounds by it", async () => {
    const roles = { teacher: { model: starter("chain-100k") }, reference: { model: starter("chain-100k") } };
    const { answers, steps } = await twoSteps(["uecr", "gapo"], { roles, temperature: 0.7 });
    expect(["credit", "shape", "bounds", "terms"].map(answers)).toEqual([["uecr"], ["uecr"], ["gapo"], ["uecr"]]);
    expect(steps[0]).toMatchObject({ "uecr.score": expect.any(Number), kl_reference: expect.any(Number) });
    // The teacher is the policy as it starts.
    expect(Math.abs(steps[0]?.["uecr.score"] as number)).toBeLessThan(1e-4);
  });

  it("of hispo+gspo: HISPO's loss, and it says what that overrode", async () => {
    const { said, answers, steps } = await twoSteps([{ name: "hispo", options: { window: 4 } }, "gspo"]);
    expect(["loss", "aggregate"].map(answers)).toEqual([["hispo"], ["hispo"]]);
    expect(said).toContain("method hispo+gspo: loss and aggregate of hispo, over gspo");
    expect(steps[0]?.["hispo.segments"]).toBeGreaterThan(1);
  });
});

describe("two owners are refused, both named", () => {
  it.each([
    ["hispo", "oc-grpo", "loss"],
    ["uecr", "opd", "credit"],
  ])("%s+%s: %s", async (a, b, slot) => {
    await expect(twoSteps([a, b])).rejects.toThrow(`method ${a}+${b}: both own the slot ${slot}; leave one of the two out`);
  });
});
