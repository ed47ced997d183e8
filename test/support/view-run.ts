/** A run folder written for the view, without a model: hostile texts, a tree of forks, a conversation, credit in stages, groups of all verdicts. */
import type { Problem } from "../../src/core/problem.js";
import type { Group, Trajectory, Turn } from "../../src/core/trajectory.js";
import { accept, partial, reject, unscored, type Verdict } from "../../src/core/verdict.js";
import type { Extra } from "../../src/train/store/record.js";
import { RunStore } from "../../src/train/store/store.js";
import { group, row } from "./batch.js";
import { meta, quickFiles } from "./run-writer.js";

/** What must be shown as text: markup, scripts, control characters, marks that turn text around, half a character. */
export const hostileText =
  '<script>window.owned=1</script><img src=x onerror="window.owned=2">&lt;b&gt; \u0000\u0007\u001b[31m \u202Eevil\u202C \u200B\u2066x\u2069 \uD800 "quoted" </textarea>';
/** Right-to-left letters, which are no marks. */
export const hebrew = "שלום עולם 123";
/** One line of a megabyte. */
export const longLine = "0123456789abcdef".repeat(65_536);

const numbers = (value: number | undefined): Extra["numbers"] => ({ reward: value, advantage: value === undefined ? undefined : value - 0.5 });

function answer(problem: string, member: number, text: string, verdict: Verdict, more: Partial<Trajectory> = {}, length = 6): Trajectory {
  const old = Array.from({ length }, (_, t) => -0.1 * (t + 1) - 0.05 * member);
  return { ...row(problem, member, { old, verdict, spans: [{ name: "answer", start: length - 2, end: length }] }), text, ...more };
}

const asked = (key: string, content: string, tags: Problem["tags"] = {}): Problem => ({
  key,
  prompt: [{ role: "user", content }],
  reference: { state: "gold", answer: "7", version: 0 },
  tags,
});

function hostile(step: number): Group {
  const name = `hostile-${step}`;
  return {
    ...group(name, [
      answer(name, 0, hostileText, reject(hostileText.slice(0, 60), { evidence: { extracted: hostileText } })),
      answer(name, 1, longLine, accept()),
      answer(name, 2, hebrew, partial(0.25, { parts: { form: 1, value: -0.5 } })),
      answer(name, 3, "", unscored("judge lost"), { stop: "length" }),
    ]),
    problem: asked(name, hostileText, { level: 5, source: "<b>x</b>" }),
  };
}

function tree(step: number): Group {
  const name = `tree-${step}`;
  const root = answer(name, 0, "root 1 2 3 4 5", reject("wrong"), {}, 12);
  const fork = (member: number, parent: Trajectory, at: number, verdict: Verdict): Trajectory =>
    answer(name, member, `fork ${member}`, verdict, { parent: { key: parent.key, fork: at } }, 12);
  const first = fork(1, root, 4, accept());
  return {
    ...group(name, [root, first, fork(2, root, 7, reject("wrong")), fork(3, first, 9, accept())]),
    problem: asked(name, "a tree of answers", { level: 3 }),
  };
}

function conversation(step: number): Group {
  const name = `talk-${step}`;
  const turns: Turn[] = [
    { action: "calc(2+3)", observation: "5", info: { calls: 1 } },
    { action: "so it is 5", observation: "", info: { calls: 0 }, verdict: accept() },
  ];
  const spans = [
    { name: "turn", start: 0, end: 3 },
    { name: "observation", start: 3, end: 5 },
    { name: "turn", start: 5, end: 8 },
  ];
  const sampled = Uint8Array.from([1, 1, 1, 0, 0, 1, 1, 1]);
  const talk = answer(name, 0, "so it is 5", accept(), { turns, spans, sampled, reward: sampled, loss: sampled }, 8);
  return { ...group(name, [talk, answer(name, 1, "no", reject("format"))]), problem: asked(name, "add 2 and 3 with the tool", { level: 1 }) };
}

/** Plain groups whose rewards rise with the step. */
function plain(step: number, index: number): Group {
  const name = `p${(7 * step + index) % 20}`;
  const members = Array.from({ length: 4 }, (_, m) => {
    const right = (step + 2 * m + index) % 7 < 1 + step / 3;
    return answer(name, m, `${name} gives ${right ? 7 : m}`, right ? accept({ evidence: { read: "7" } }) : reject(m % 2 === 0 ? "wrong" : "format"));
  });
  return { ...group(`${name}`, members), key: `${step}:${index}`, problem: asked(name, `what is ${name} of step ${step}?`, { level: 1 + (index % 3) }) };
}

export const groupsAt = (step: number): Group[] => [plain(step, 0), plain(step, 1), ...(step === 2 ? [hostile(step), tree(step), conversation(step)] : [])];

function extraOf(trajectory: Trajectory): Extra {
  const { verdict, response } = trajectory;
  const score = verdict.kind === "accept" ? 1 : verdict.kind === "reject" ? 0 : verdict.kind === "partial" ? verdict.score : undefined;
  const credit = (score ?? 0.5) - 0.5;
  const column = (of: (t: number) => number): Float64Array => Float64Array.from(response, (_, t) => of(t));
  return {
    numbers: numbers(score),
    columns: {
      "coefficient.credit.0.grpo": column(() => credit),
      "coefficient.shape.0.cscr": column((t) => credit * (1 + t / 4)),
      coefficient: column((t) => (trajectory.reward[t] === 1 ? credit * (1 + t / 4) : 0)),
      weight: column(() => 1 / 24),
      logp: column((t) => -0.1 * (t + 1) - 0.05 * trajectory.member + 0.02 * (t - 2)),
    },
  };
}

/** Begins the run; `write` adds a step, `end` says that it is done. */
export function viewRun(folder: string, steps: number, config: { readonly [name: string]: string | number } = {}) {
  const store = RunStore.create(
    folder,
    { ...meta, config: { ...meta.config, steps, seed: 0, method: "grpo", model: "test", task: "written", problems: 2, group: 4, ...config } },
    { files: quickFiles },
  );
  store.appendEvent({ step: 0, kind: "start", data: { heldout: Array.from({ length: 100 }, (_, i) => ({ key: `h${i}`, text: `held out ${i}` })) } });
  return {
    store,
    write(step: number): void {
      const groups = groupsAt(step);
      store.appendRollouts(step, groups, extraOf);
      const members = groups.flatMap(({ trajectories }) => trajectories);
      const count = (kind: Verdict["kind"]): number => members.filter(({ verdict }) => verdict.kind === kind).length;
      const metrics = {
        reward: Math.min(1, step / steps),
        entropy: 1 / step,
        tokens_mean: 6,
        truncated: 0,
        groups_silent: 0.2,
        unscored: 0,
        grad_norm: 0.5,
        lr: 1e-4,
      };
      const verdicts = {
        accept: count("accept"),
        reject: count("reject"),
        partial: count("partial"),
        unscored: count("unscored"),
        reasons: { wrong: 2, format: 1 },
      };
      store.appendEvent({ step, kind: "step", data: { metrics, verdicts }, clock: { ms: 20 + step } });
    },
    evaluate(step: number, scores: readonly number[]): void {
      const score = scores.reduce((a, b) => a + b, 0) / scores.length;
      const estimates = [
        { name: "avg", k: 1, value: score, interval: { low: Math.max(0, score - 0.2), high: Math.min(1, score + 0.2) }, problems: scores.length },
      ];
      store.appendEvent({ step, kind: "evaluation", data: { score, problems: scores.length, estimates, scores: [...scores], problem_set: "four" } });
    },
    end(): void {
      store.appendEvent({ step: steps, kind: "end", data: { reason: "done", message: `${steps} steps are done` } });
      store.close();
    },
  };
}

/** A whole one, with an evaluation before and after. */
export function writtenRun(folder: string, steps = 12, config: { readonly [name: string]: string | number } = {}, scores = [1, 1, 0, 1]): void {
  const run = viewRun(folder, steps, config);
  run.evaluate(0, [0, 1, 0, 0]);
  for (let step = 1; step <= steps; step++) run.write(step);
  run.evaluate(steps, scores);
  run.end();
}
