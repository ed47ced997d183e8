import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { batch, group, row, scores } from "../../../test/support/batch.js";
import { type Asked, hintedLab } from "../../../test/support/hinted.js";
import { lax } from "../../../test/support/lax-task.js";
import { made, resolved } from "../../../test/support/method.js";
import { snapshot } from "../../../test/support/run-writer.js";
import { options as runOf, scratch, successor, tablePolicy } from "../../../test/support/tabular.js";
import type { Batch } from "../../core/trajectory.js";
import { accept, partial, reject, unscored, type Verdict } from "../../core/verdict.js";
import { capabilities, type EngineInfo } from "../../engine/contract.js";
import { RunReader } from "../../train/store/reader.js";
import { resume, type TrainOptions, train } from "../../train/train.js";
import { verifierOf } from "../../verify/simple.js";
import { coefficientsOf, lossOf } from "../coefficients.js";
import type { Lab } from "../contract.js";
import { dapo } from "../dapo/dapo.js";
import { checkNeeds } from "../needs.js";
import { omGrpo } from "../om-grpo/om-grpo.js";
import { compose } from "../resolve.js";
import { klFormOn } from "../reverse-kl.js";
import { branchOf, h2sd, h2sdOptions } from "./h2sd.js";

const old = [
  [-1, -2],
  [-1, -1, -3],
  [-2, -1],
];
const batchOf = (...verdicts: readonly Verdict[]): Batch => {
  const own = group(
    "p",
    old.map((each, i) => row("p", i, { old: each, verdict: verdicts[i] ?? reject("wrong") })),
  );
  return batch({ ...own, problem: { ...own.problem, privileged: { solution: "first 3, then 7", answer: "7" } } });
};
const mixed = (): Batch => batchOf(accept(), reject("wrong"), partial(0.5));

/** A teacher whose log-prob is the policy's and these numbers more. */
const more = [
  [0.1, -3],
  [0.5, 0, -0.5],
  [1, 2],
];
const teacher = (asked: Asked[] = [], and: Partial<Lab> = {}): Lab =>
  hintedLab(
    ({ sequence }) => {
      const i = old.findIndex((each) => each.length === sequence.response.length && each !== old[2]);
      const at = sequence.context.label === "hinted" && sequence.response.length === 2 ? 2 : i;
      return scores((old[at] as number[]).map((x, t) => x + (more[at]?.[t] as number)));
    },
    asked,
    { engine: engineWith("score"), ...and },
  );

function engineWith(...has: readonly EngineInfo["lacks"][keyof EngineInfo["lacks"]][]): EngineInfo {
  return {
    name: "some",
    has: new Set(capabilities.filter((each) => has.includes(each) || ["sample", "train", "roles", "weights.tensors"].includes(each))),
    lacks: {},
    fingerprint: {},
  };
}

const run = async (b: Batch, options: object = {}, lab = teacher()) => {
  const c = await coefficientsOf(resolved(made(h2sd, { teacher: "current", ...options })), b, lab);
  const now = old.map((each) => scores(each));
  const { value, derivatives } = lossOf(c, [0, 1, 2], now);
  return {
    c,
    value,
    tokens: c.credit.token.map((each) => [...each]),
    base: c.waterfall[0]?.token.map((each) => [...each]) ?? [],
    d: derivatives.map(({ dLogp }) => [...(dLogp ?? [])]),
  };
};

describe("right answers", () => {
  it("by hand: half of a weight by the teacher that says the answer again, within 0.8 and 1.2", async () => {
    const { tokens, base } = await run(mixed());
    const a = base[0]?.[0] as number;
    expect(a).toBeGreaterThan(0);
    [0.5 + 0.5 * Math.exp(0.1), 0.9].forEach((factor, t) => expect(tokens[0]?.[t]).toBeCloseTo(a * factor, 12));
    expect(tokens.slice(1)).toEqual(base.slice(1));
  });

  it("keep their sign and a factor within 1 - lambda clip and 1 + lambda clip, and without lambda their advantage exactly", async () => {
    const { tokens, base } = await run(mixed(), { lambda: 0.8, weight_clip: 0.5 });
    tokens[0]?.forEach((x, t) => {
      const factor = x / (base[0]?.[t] as number);
      expect(factor).toBeGreaterThanOrEqual(0.6 - 1e-12);
      expect(factor).toBeLessThanOrEqual(1.4 + 1e-12);
    });
    const none = await run(mixed(), { lambda: 0 });
    expect(none.tokens).toEqual(none.base);
  });

  it("lose their reweighting over steps where they are told to", async () => {
    const late = await run(mixed(), { lambda_end: 0, lambda_steps: 10 }, teacher([], { step: 11 }));
    expect(late.tokens).toEqual(late.base);
  });

  it("are those with the whole score, whatever reward it brings: a part of it is a failure, and no score is neither", () => {
    const verdicts = [accept(), accept({ reward: 0.5 }), partial(0.99), reject("no"), unscored("lost")];
    expect(verdicts.map((verdict) => branchOf(row("p", 0, { old: [-1], verdict })))).toEqual(["success", "success", "failure", "failure", undefined]);
  });
});

describe("wrong answers", () => {
  it("by hand from sampled tokens: the gradient is log p - log q over 3 answers and their tokens, and the advantage has no part in it", async () => {
    const { d, value, c } = await run(mixed(), { mu: 2, success: "plain" });
    [1, 2].forEach((i) => more[i]?.forEach((gap, t) => expect(d[i]?.[t]).toBeCloseTo((2 * -gap) / (3 * (old[i] as number[]).length), 12)));
    const pg = -(c.credit.trajectory[0] as number) / 3;
    expect(value).toBeCloseTo(pg + (2 / 3) * (0 - 3 / 2), 12);
  });

  it("and right ones part the batch: each token with a score is in exactly one of the two losses", async () => {
    const b = batchOf(accept(), reject("no"), unscored("lost"));
    const { c, d } = await run(b);
    const inPolicy = c.mask.policy.map((each) => each.some((m) => m === 1));
    expect(inPolicy).toEqual([true, false, false]);
    expect(d[1]?.[1]).toBe(0); // the teacher says the same there
    expect(d[1]?.[0]).not.toBe(0);
    expect(d[2]).toEqual([0, 0]);
  });

  it("that are called right move to the other branch, and to no other term", async () => {
    const [wrong, right] = [await run(batchOf(accept(), reject("no"), reject("no"))), await run(batchOf(accept(), accept(), reject("no")))];
    expect([wrong, right].map(({ c }) => c.mask.policy.map((each) => each[0]))).toEqual([
      [1, 0, 0],
      [1, 1, 0],
    ]);
    expect(right.d[2]).toEqual(wrong.d[2]);
    expect(right.c.terms.length).toBe(wrong.c.terms.length);
  });

  it("keep their policy gradient beside it where they are told to", async () => {
    const [match, both, plain] = [await run(mixed()), await run(mixed(), { failure: "both" }), await run(mixed(), { failure: "plain" })];
    expect(plain.c.terms).toEqual([]);
    both.d[1]?.forEach((x, t) => expect(x).toBeCloseTo((match.d[1]?.[t] as number) + (plain.d[1]?.[t] as number), 12));
  });

  it("teach where the whole group is wrong, and a group that is right teaches nothing", async () => {
    const failed = await run(batchOf(reject("no"), reject("no"), reject("no")));
    expect(failed.d.flat().some((x) => x !== 0)).toBe(true);
    const solved = await run(batchOf(accept(), accept(), accept()));
    expect(solved.d.flat().every((x) => x === 0)).toBe(true);
  });

  it("have the whole distribution, the teacher's likely tokens, or the sampled one, by what the engine can do, and the difference is told", () => {
    const method = made(h2sd, { teacher: "current" });
    const engines = [engineWith("score", "score.full", "train.targets"), engineWith("score", "score.top-k", "train.targets"), engineWith("score")];
    expect(engines.map((engine) => klFormOn(engine, "full"))).toEqual(["full", "top-k", "sampled"]);
    expect(engines.map((engine) => checkNeeds(method, engine, new Set(["policy"])).map(({ difference }) => difference))).toEqual([
      [],
      ["the KL lumps together all tokens but the teacher's most likely ones"],
      ["the KL is estimated from the sampled token alone"],
    ]);
  });

  it("ask for no more than the vocabulary has, and lump the rest only where there is one", async () => {
    const asked: Asked[] = [];
    const top = (k: number, T: number) => ({ k, ids: new Int32Array(T * k), logp: new Float64Array(T * k), tail: new Float64Array(T) });
    const lab = hintedLab(
      ({ sequence: { response }, want }) => ({
        ...scores(Array.from(response, () => -1)),
        ...(want.topK ? { top: top(want.topK, response.length) } : { full: new Float64Array(response.length * 3) }),
      }),
      asked,
    );
    const options = { success: "plain", divergence: "top-k", top_k: 100, teacher: "current" };
    const c = await coefficientsOf(resolved(made(h2sd, options)), mixed(), lab);
    expect(asked.map(({ want }) => want)).toEqual([{ topK: 3 }, { topK: 3 }]);
    const whole = await coefficientsOf(resolved(made(h2sd, { ...options, divergence: "full" })), mixed(), lab);
    expect([c, whole].map(({ terms }) => [0, 1].map((i) => terms[0]?.want?.targets?.(i)?.k))).toEqual([
      [undefined, 3],
      [undefined, 3],
    ]);
    expect([...(whole.terms[0]?.want?.targets?.(1)?.ids ?? [])]).toEqual([0, 1, 2, 0, 1, 2, 0, 1, 2]);
  });
});

describe("the teacher", () => {
  it("reads the answer to be rephrased, and the hint in the problem's own words", async () => {
    const asked: Asked[] = [];
    await run(mixed(), { rephrase_prompt: "{problem} rephrase {response}", hint_prompt: "{problem} [{solution}: {answer}]" }, teacher(asked));
    expect(asked.map(({ text }) => text)).toEqual(["what is p? rephrase t0 t1", "what is p? [first 3, then 7: 7]", "what is p? [first 3, then 7: 7]"]);
  });

  it("is the role `self`, which follows the policy as the option says, or the policy itself", async () => {
    const role = (options: object) => made(h2sd, options).roles;
    expect(role({})).toEqual([{ name: "self", average: { of: "policy", decay: 0, every: 10 } }]);
    expect(role({ teacher: "average", decay: 0.9 })).toEqual([{ name: "self", average: { of: "policy", decay: 0.9, every: 1 } }]);
    expect(role({ teacher: "current" })).toBeUndefined();
    const asked: Asked[] = [];
    await coefficientsOf(resolved(made(h2sd)), mixed(), teacher(asked));
    expect(new Set(asked.map(({ sequence }) => sequence.weights.role))).toEqual(new Set(["self"]));
  });

  it("of an answer with no place beside its hint teaches nothing, and the run says how many", async () => {
    const lab = teacher([], { weights: { info: async () => ({ maxTokens: 30, vocabulary: 3 }) } as unknown as Lab["weights"] });
    const method = made(h2sd, { teacher: "current" });
    const c = await coefficientsOf(resolved(method), mixed(), lab);
    expect(c.credit.token.map((each) => [...each])).toEqual(c.waterfall[0]?.token.map((each) => [...each]));
    expect(lossOf(c, [1], [scores(old[1] as number[])]).derivatives[0]?.dLogp?.every((x) => x === 0)).toBe(true);
    expect(resolved(method).stages.observe[0]?.run({ batch: c.batch } as never)).toEqual({ "h2sd.failures": 2 / 3, "h2sd.skipped": 1 });
  });
});

describe("a run of H2SD", () => {
  const digits = { rephrase_prompt: "{problem}{response}", hint_prompt: "{problem}{solution}" };
  const use = (more: object = {}) => ({ name: "h2sd", options: { ...digits, ...more } });
  const start = async (more: Partial<TrainOptions> = {}, model?: string) => runOf(model ?? (await tablePolicy()), { task: lax(), method: use(), ...more });
  const weightsOf = (folder: string, name = "policy") => Object.entries(snapshot(folder)).filter(([path]) => path.endsWith(`${name}/model.safetensors`));
  const roleOf = (folder: string, step: number, role: string): Buffer => {
    const at = RunReader.open(folder).checkpoints.pathOf(step);
    return readFileSync(join(at, role === "policy" ? "policy" : join("roles", role), "model.safetensors"));
  };

  it("with both branches left as they are, or reweighted with lambda 0, has GRPO's weights bit for bit", async () => {
    const model = await tablePolicy();
    const weights = async (method: TrainOptions["method"]) => weightsOf((await train(await start({ method, minibatches: 2 }, model))).folder);
    const grpo = await weights("grpo");
    expect(grpo.length).toBeGreaterThan(2);
    expect(await weights(use({ success: "plain", failure: "plain" }))).toEqual(grpo);
    expect(await weights(use({ failure: "reweight", lambda: 0 }))).toEqual(grpo);
    expect(await weights(use())).not.toEqual(grpo);
  });

  it("in which nothing is right learns from hints, down to a smaller KL, where GRPO learns nothing", async () => {
    const wrong = { ...lax(), verifier: verifierOf("never", () => false) };
    const model = await tablePolicy({ order: 2, init: 1 });
    const of = async (method: TrainOptions["method"]) => {
      const { folder, updates } = await train(await start({ task: wrong, method, steps: 12, lr: 1, optimizer: { rule: "sgd" } }, model));
      return {
        updates,
        kl: [...RunReader.open(folder).events()].flatMap(({ kind, data }) =>
          kind === "step" ? [(data.metrics as { [name: string]: number })["h2sd.kl"]] : [],
        ),
      };
    };
    expect((await of("grpo")).updates).toBe(0);
    for (const divergence of ["full", "top-k"]) {
      const { updates, kl } = await of(use({ divergence, top_k: 4, refresh_every: 100 }));
      expect(updates).toBe(12);
      expect(kl.at(-1)).toBeLessThan(0.8 * (kl[0] as number));
    }
  });

  it("leaves its teacher as it was until it is copied anew, and copies it then", async () => {
    const { folder } = await train(await start({ method: use({ refresh_every: 3 }), steps: 4, checkpoint: { every: 1, keep_last: 9 } }));
    const [first, third] = [roleOf(folder, 0, "policy"), roleOf(folder, 3, "policy")];
    expect([0, 1, 2].map((step) => roleOf(folder, step, "self").equals(first))).toEqual([true, true, true]);
    expect([3, 4].map((step) => roleOf(folder, step, "self").equals(third))).toEqual([true, true]);
    expect(third.equals(first)).toBe(false);
  });

  it("goes on after an interruption to the same bytes, the teacher's copies included", async () => {
    for (const more of [{ refresh_every: 3 }, { teacher: "average", decay: 0.5, lambda_end: 0, lambda_steps: 4 }]) {
      const whole = await start({ method: use(more), steps: 5, checkpoint: { every: 1, keep_last: 9 } });
      await train(whole);
      const controller = new AbortController();
      const out = join(scratch(), "run");
      await train({ ...whole, out, signal: controller.signal, onProgress: (p) => p.kind === "step" && p.step === 2 && controller.abort() });
      await resume(out, { task: lax() });
      const [is, wanted] = [snapshot(out), snapshot(whole.out)];
      expect(Object.keys(wanted).filter((path) => path !== "run.json" && is[path] !== wanted[path])).toEqual([]);
    }
  });

  it("is refused before step 1 where a problem does not have what the hint tells", async () => {
    await expect(train(await start({ task: successor(), method: use({ hint_prompt: "{problem}{steps}" }) }))).rejects.toThrow(
      "it has no steps in words, which a hint of h2sd tells; give each problem privileged data named steps (docs/data.md), or write the hint without {steps}",
    );
  });
});

describe("H2SD", () => {
  it("is refused beside what drops groups of equal rewards, and beside what withholds references", () => {
    expect(() => compose(made(dapo), made(h2sd))).toThrow("dapo drops groups whose rewards are equal, and h2sd learns from them");
    expect(() => compose(made(omGrpo), made(h2sd))).toThrow("om-grpo withholds references, and h2sd reads them");
  });

  it("has the specification's numbers as defaults", () => {
    expect(h2sdOptions.parse({})).toMatchObject({
      lambda: 0.5,
      weight_clip: 0.2,
      mu: 1,
      success: "reweight",
      failure: "match",
      divergence: "full",
      top_k: 100,
      refresh_every: 10,
    });
  });
});
