/**
 * GRPO from scratch, in one file: sample, verify, compare within groups, clip, step, measure. Of Touchstone it uses the engine alone,
 * which draws tokens, gives their log-probs, and turns derivatives of a loss into a step of the weights. `chain.ts` is the same run by the library.
 *
 *     npm run examples from-scratch -- starters/chain-1M --steps 100 --out runs/from-scratch
 *
 * The task: `5+3*4-2` is worked from left to right modulo 11, a line for each operation, then the answer:
 *
 *     +3=8
 *     *4=10
 *     -2=8
 *     #8
 *
 * The policy knows this, but has learnt a wrong habit: it often works `*` as `+`. Nobody tells it the lines. It is told whether its answer is right.
 */
import { copyFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Derivatives, type Engine, type Sample, type Sequence, startLocal } from "touchstone-rl";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    steps: { type: "string", default: "100" },
    out: { type: "string", default: "runs/from-scratch" },
    seed: { type: "string", default: "0" },
    "eval-problems": { type: "string", default: "200" },
  },
});
const model = positionals[0] ?? "starters/chain-1M";
const steps = Number(values.steps);
const seed = Number(values.seed);
const heldOut = Number(values["eval-problems"]);
if (!(steps >= 1) || existsSync(values.out)) throw new Error(`--steps is a number from 1 on, and --out a folder that is not there yet (${values.out})`);

const problemsPerStep = 16;
const groupSize = 8; // answers to each problem, which are compared with each other
const minibatches = 2; // optimizer steps a batch: from the second on, the policy is no longer the one that answered
const learningRate = 1e-4;
const clip = 0.2;
const evaluateEvery = 25;

// ---- The policy's alphabet: five special tokens, then one symbol a token, numbers included.

const tokenizerFile = "touchstone_tokenizer.json";
const { symbols } = JSON.parse(readFileSync(join(model, tokenizerFile), "utf8")) as { symbols: string[] };
const special = { end: 0, user: 2, assistant: 3 };
const specials = 5;
const idOf = new Map(symbols.map((symbol, i) => [symbol, specials + i]));
const textOf = (ids: ArrayLike<number>): string => Array.from(ids, (id) => symbols[id - specials] ?? "").join("");
const modulus = symbols.filter((symbol) => /^\d+$/.test(symbol)).length;
const longestAnswer = 33; // six lines of five tokens, `#`, the answer and the end

// ---- Problems, drawn by a small generator so that the same seed gives the same run.

interface Problem {
  readonly text: string;
  readonly prompt: Int32Array;
  readonly answer: number;
}

/** Mulberry32: numbers from 0 to 1 from a state of 32 bits. */
function generator(state: number): () => number {
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function drawProblem(random: () => number): Problem {
  const below = (n: number): number => Math.floor(random() * n);
  let answer = below(modulus);
  const words = [String(answer)];
  for (let lines = 3 + below(4); lines > 0; lines--) {
    const operator = "+-*"[below(3)];
    const operand = below(modulus);
    const value = operator === "+" ? answer + operand : operator === "-" ? answer - operand : answer * operand;
    answer = ((value % modulus) + modulus) % modulus;
    words.push(operator, String(operand));
  }
  const ids = words.map((word) => idOf.get(word) as number);
  return { text: words.join(""), prompt: Int32Array.from([special.user, ...ids, special.assistant]), answer };
}

/** n different problems that are not among others. */
function drawProblems(n: number, random: () => number, others: ReadonlySet<string> = new Set()): Problem[] {
  const found = new Map<string, Problem>();
  while (found.size < n) {
    const problem = drawProblem(random);
    if (!others.has(problem.text)) found.set(problem.text, problem);
  }
  return [...found.values()];
}

// ---- The verifier: 1 for an answer that is finished, laid out as lines and right, else 0. What stands in the lines does not count.

function reward({ ids, stop }: Sample, { answer }: Problem): number {
  const read = /^(?:[+*-]\d+=\d+\n)*#(\d+)$/.exec(textOf(ids));
  return stop === "eos" && read !== null && Number(read[1]) === answer ? 1 : 0;
}

// ---- Sampling. The draw of each token is a function of its key, so a run can be repeated whatever else the engine does at the time.

const purposes = { train: 1, evaluate: 2 };

/** `count` answers to each problem. [problems][count] */
async function answer(engine: Engine, problems: readonly Problem[], count: number, purpose: keyof typeof purposes, step: number): Promise<Sample[][]> {
  const requests = problems.flatMap(({ prompt }, p) =>
    Array.from({ length: count }, (_, member) => ({
      context: { ids: prompt, label: "plain" },
      weights: { role: "policy" },
      temperature: 1,
      maxTokens: longestAnswer,
      stop: { ids: [special.end] },
      key: [seed, purposes[purpose], step, p * count + member] as const,
    })),
  );
  const samples: Sample[] = [];
  for await (const sample of engine.sample(requests)) samples[sample.index] = sample;
  return problems.map((_, p) => samples.slice(p * count, (p + 1) * count));
}

/** Share of right answers to held-out problems, one draw each. */
async function evaluate(engine: Engine, problems: readonly Problem[]): Promise<number> {
  const answers = await answer(engine, problems, 1, "evaluate", 0);
  return problems.reduce((right, problem, p) => right + reward(answers[p][0], problem), 0) / problems.length;
}

// ---- Advantages (Shao et al. 2024, sec. 4.1.2): how much better an answer is than the others to its problem.

function advantagesOf(rewards: readonly number[]): number[] {
  // A group in which all are alike teaches nothing.
  if (rewards.every((r) => r === rewards[0])) return rewards.map(() => 0);
  const mean = rewards.reduce((sum, r) => sum + r, 0) / rewards.length;
  const variance = rewards.reduce((sum, r) => sum + (r - mean) ** 2, 0) / (rewards.length - 1);
  return rewards.map((r) => (r - mean) / (Math.sqrt(variance) + 1e-4));
}

// ---- The loss (eq. 3) and its derivative.

interface Row {
  readonly sequence: Sequence;
  /** Log-probs of the tokens when they were drawn. [tokens] */
  readonly old: Float64Array;
  readonly advantage: number;
}

/**
 *     r_t  = exp(l_t - o_t)
 *     loss = -(1/N) sum_i (1/|y_i|) sum_t min(r_t A_i, clip(r_t, 1 - c, 1 + c) A_i)
 *
 * d loss / d l_t of one answer. Where the clipped side is the smaller one, it does not depend on l_t: the token has gone far enough.
 */
function derivativesOf(logp: Float64Array, { old, advantage }: Row, answers: number): { readonly loss: number; readonly derivatives: Derivatives } {
  const weight = 1 / (answers * logp.length);
  const dLogp = new Float64Array(logp.length);
  let loss = 0;
  for (let t = 0; t < logp.length; t++) {
    const ratio = Math.exp(logp[t] - old[t]);
    const clipped = Math.min(Math.max(ratio, 1 - clip), 1 + clip);
    loss -= weight * Math.min(ratio * advantage, clipped * advantage);
    if (ratio * advantage <= clipped * advantage) dLogp[t] = -weight * ratio * advantage;
  }
  return { loss, derivatives: { dLogp } };
}

/** One optimizer step on some answers. `answers` counts those without advantage too: they are part of the mean. */
async function update(engine: Engine, rows: readonly Row[], answers: number): Promise<number> {
  if (rows.length === 0) return 0;
  const { handle, scores } = await engine.forward(rows.map(({ sequence }) => sequence));
  const results = rows.map((row, i) => derivativesOf(scores[i].logp, row, answers));
  const derivatives = results.map((result) => result.derivatives);
  await engine.backward(handle, derivatives, "role:policy");
  const { skipped } = await engine.step({ set: "role:policy", update: { rule: "adamw", rate: learningRate, beta1: 0.9, beta2: 0.95 }, maxNorm: 1 });
  if (skipped) throw new Error(`the gradient of ${skipped.parameter} is not finite: lower the learning rate`);
  return results.reduce((sum, { loss }) => sum + loss, 0);
}

// ---- The run.

const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;
const engine = await startLocal(1_000_000);
try {
  await engine.weights.load({ role: "policy", source: { from: "folder", path: model }, trainable: true });
  const random = generator(seed);
  const held = drawProblems(heldOut, random);
  const heldTexts = new Set(held.map(({ text }) => text));
  const first = await evaluate(engine, held);
  let score = first;
  console.log(`step 0: ${percent(first)} of ${held.length} held-out problems`);

  for (let step = 1; step <= steps; step++) {
    const problems = drawProblems(problemsPerStep, random, heldTexts);
    const groups = await answer(engine, problems, groupSize, "train", step);
    const rewards = groups.map((samples, p) => samples.map((sample) => reward(sample, problems[p])));
    const advantages = rewards.map(advantagesOf);

    const losses: number[] = [];
    for (let part = 0; part < minibatches; part++) {
      const mine = problems.map((_, p) => p).filter((p) => p % minibatches === part);
      const rows = mine.flatMap((p) =>
        groups[p].map(({ ids, logp }, member): Row => {
          const sequence = { context: { ids: problems[p].prompt, label: "plain" }, response: ids, weights: { role: "policy" }, temperature: 1 };
          return { sequence, old: logp, advantage: advantages[p][member] };
        }),
      );
      // An answer without advantage has the derivative 0.
      const active = rows.filter(({ advantage }) => advantage !== 0);
      losses.push(await update(engine, active, rows.length));
    }

    const all = rewards.flat();
    const silent = advantages.filter((group) => group.every((a) => a === 0)).length / groups.length;
    const mean = all.reduce((sum, r) => sum + r, 0) / all.length;
    console.log(`step ${step}: reward ${mean.toFixed(3)}, ${percent(silent)} of groups silent, loss ${losses.map((loss) => loss.toFixed(4)).join(" ")}`);
    if (step % evaluateEvery === 0 || step === steps) {
      score = await evaluate(engine, held);
      console.log(`step ${step}: ${percent(score)} of ${held.length} held-out problems`);
    }
  }

  await engine.weights.save({ role: "policy" }, values.out);
  copyFileSync(join(model, tokenizerFile), join(values.out, tokenizerFile));
  console.log(`held-out: ${percent(first)} at step 0, ${percent(score)} at step ${steps}\nThe policy is in ${values.out}`);
} finally {
  await engine.close();
}
