/** Roles in real runs on softmax tables: loaded, trained, following, saved and restored. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { snapshot } from "../../test/support/run-writer.js";
import { options, tablePolicy } from "../../test/support/tabular.js";
import { TableEngine } from "../engine/table/engine.js";
import { RunReader } from "./store/reader.js";
import { resume, type TrainOptions, train } from "./train.js";

let model: string;
beforeAll(async () => {
  model = await tablePolicy();
});
const settings = (more: Partial<TrainOptions> = {}): TrainOptions => options(model, more);

const metricsOf = (out: string): { readonly [name: string]: number }[] =>
  [...RunReader.open(out).events()].flatMap(({ kind, data }) => (kind === "step" ? [(data as { metrics: { [name: string]: number } }).metrics] : []));

/** Stops after a step, as Ctrl-C does, and resumes. */
async function interruptedAt(step: number, own: TrainOptions): Promise<void> {
  const stop = new AbortController();
  await train({ ...own, signal: stop.signal, onProgress: (progress) => progress.kind === "step" && progress.step === step && stop.abort() });
  await resume(own.out, { task: own.task, ...(own.methods ? { methods: own.methods } : {}) } as never);
}

describe("a critic", () => {
  const ppo = (more: Partial<TrainOptions> = {}) =>
    settings({ method: { name: "ppo", options: {} }, roles: { critic: { lr: 0.05 } }, steps: 12, minibatches: 2, ...more });

  it("learns beside the policy at a rate of its own, explains returns, and is in every checkpoint", async () => {
    const own = ppo({ steps: 60, problems: 8, group: 16, minibatches: 1, lr: 0.1, checkpoint: { every: 0 } });
    await train(own);
    const metrics = metricsOf(own.out);
    const explained = (from: number, to: number) => metrics.slice(from, to).reduce((sum, { value_explained = 0 }) => sum + value_explained / (to - from), 0);
    expect(explained(0, 10)).toBeLessThan(0.05);
    expect(explained(50, 60)).toBeGreaterThan(0.25);
    expect(metrics.at(-1)?.reward).toBeGreaterThan(metrics[0].reward + 0.2);
    const folder = join(own.out, "checkpoints", "00000060", "roles");
    for (const file of ["critic/model.safetensors", "critic.optimizer.safetensors"]) expect(existsSync(join(folder, file))).toBe(true);
  });

  it("is resumed to the byte, with its optimizer", async () => {
    const whole = ppo();
    await train(whole);
    const again = ppo();
    await interruptedAt(5, again);
    const [a, b] = [snapshot(whole.out), snapshot(again.out)];
    const last = Object.keys(a).filter((path) => path.startsWith("checkpoints/00000012/"));
    expect(last.some((path) => path.includes("roles/critic.optimizer"))).toBe(true);
    for (const path of last) expect(b[path], path).toBe(a[path]);
  });

  it("alone, the policy frozen, leaves the policy's bytes as they are and goes on although no answer has a coefficient", async () => {
    const own = ppo({ method: { name: "ppo", options: { policy: "frozen" } }, steps: 6 });
    const { reason } = await train(own);
    expect(reason).toBe("done");
    const files = snapshot(own.out);
    expect(files["checkpoints/00000006/policy/model.safetensors"]).toBe(files["checkpoints/00000000/policy/model.safetensors"]);
    expect(files["checkpoints/00000006/roles/critic/model.safetensors"]).not.toBe(files["checkpoints/00000000/roles/critic/model.safetensors"]);
  });

  it("as a head on the policy needs no role, and the head is resumed with the policy", async () => {
    const head = () => ppo({ method: { name: "ppo", options: { critic: "head" } }, roles: {} });
    const whole = head();
    await train(whole);
    const again = head();
    await interruptedAt(5, again);
    const path = "checkpoints/00000012/policy/model.safetensors";
    expect(snapshot(again.out)[path]).toBe(snapshot(whole.out)[path]);
  });
});

describe("a teacher", () => {
  it("is what the policy becomes, whatever the verdicts say", async () => {
    const { model: teacher } = await train(settings({ steps: 60, problems: 8, group: 16, checkpoint: { every: 0 } }));
    const own = settings({ method: "opd", roles: { teacher: { model: teacher } }, steps: 60, problems: 8, group: 16, lr: 0.3, checkpoint: { every: 0 } });
    await train(own);
    const metrics = metricsOf(own.out);
    expect(metrics.at(-1)?.kl_teacher).toBeLessThan(0.3 * metrics[0].kl_teacher);
    expect(metrics.at(-1)?.reward).toBeGreaterThan(metrics[0].reward + 0.2);
  });

  it("must be named: a copy of the policy would teach it nothing", async () => {
    await expect(train(settings({ method: "opd" }))).rejects.toThrow("method opd: the teacher's log-probs needs a role named teacher; give the run that role");
  });
});

describe("a moving average", () => {
  it("follows the policy: where it does so once, it is decay times itself and the rest of the policy", async () => {
    const own = settings({ method: { name: "grpo", options: { kl_coef: 0.01 } }, roles: { reference: { average: { decay: 0.75, every: 6 } } }, steps: 6 });
    await train(own);
    const tensors = async (folder: string): Promise<number[]> => {
      const engine = new TableEngine();
      const info = await engine.weights.load({ role: "policy", source: { from: "folder", path: folder }, trainable: false });
      const names = info.tensors.map(({ name }) => name);
      return (await engine.weights.read({ role: "policy" }, names)).flatMap(({ data }) => [...data]);
    };
    const at = (path: string) => tensors(join(own.out, "checkpoints", path));
    const [start, policy, average] = [await at("00000000/policy"), await at("00000006/policy"), await at("00000006/roles/reference")];
    expect(policy).not.toEqual(start);
    average.forEach((x, i) => expect(x).toBeCloseTo(0.75 * start[i] + 0.25 * policy[i], 12));
  });

  it("is resumed to the byte", async () => {
    const kl = () => settings({ method: { name: "grpo", options: { kl_coef: 0.1 } }, roles: { reference: { average: { decay: 0.9, every: 2 } } }, steps: 6 });
    const whole = kl();
    await train(whole);
    const again = kl();
    await interruptedAt(3, again);
    for (const path of ["policy", "roles/reference"].map((role) => `checkpoints/00000006/${role}/model.safetensors`))
      expect(snapshot(again.out)[path]).toBe(snapshot(whole.out)[path]);
  });
});

describe("roles that cannot be meant", () => {
  const kl = { name: "grpo", options: { kl_coef: 0.1 } };
  it.each<[string, Partial<TrainOptions>, string]>([
    ["nothing reads", { roles: { critic: {} } }, "roles.critic: no part of grpo reads it; leave it out, or turn on what reads it"],
    ["another method reads", { method: kl, roles: { teacher: {} } }, "roles.teacher: no part of grpo reads it; leave it out, or name one of reference"],
    ["are the policy", { roles: { policy: {} } }, "roles.policy: the policy is no further role; set model, lr and optimizer of the run itself"],
    ["do not learn and have a rate", { method: kl, roles: { reference: { lr: 1 } } }, "roles.reference.lr: nothing trains this role; leave it out"],
    ["follow nobody", { method: kl, roles: { reference: { average: { of: "x", decay: 0.5 } } } }, "roles.reference.average.of: there is no other role x"],
    [
      "learn and follow",
      { method: "ppo", roles: { critic: { average: { decay: 0.5 } } } },
      "roles.critic.average: ppo trains this role; leave the average out",
    ],
  ])("are refused where they %s", async (_, more, sentence) => {
    await expect(train(settings(more))).rejects.toThrow(sentence);
  });
});
