/**
 * What is claimed for CSCR, on chains whose lines begin with phrases that mean the same. The policy was taught to say other
 * phrases where the prompt claims that the answer is right, or wrong; what it computes is the same.
 */
import { plainContext } from "../../core/problem.js";
import type { Scores } from "../../engine/contract.js";
import { chain, forms, responseTokens } from "../../tasks/chain/chain.js";
import { type Bench, defineDemonstration, type TrainedRun } from "../demonstration.js";
import { rewritten } from "../prompts.js";
import { cscr } from "./cscr.js";
import { sensitivity } from "./sensitivity.js";

const options = { modulus: 7, fillers: true } as const;

const prompts = { right_prompt: forms.right, wrong_prompt: forms.wrong };
const reallocated = (more: { readonly [option: string]: string | number } = {}) => ({ method: { module: cscr, options: { ...prompts, ...more } } });

/** The first answers of a run, token by token: how far the claims move each under the policy as it starts, and whether it is a phrase. */
async function reactions(trained: TrainedRun, bench: Bench): Promise<readonly { readonly s: number; readonly filler: boolean }[]> {
  const { tokenizer: symbols } = chain(options);
  const { engine, tokenizer, close } = await bench.open(bench.options.model as string);
  try {
    const answers = (await trained.groups(1)).flatMap(({ group }) => group.trajectories.map(({ response }) => ({ response, problem: group.problem })));
    const score = async (template: string): Promise<Scores[]> =>
      engine.score(
        answers.map(({ response, problem }) => ({
          context: plainContext(tokenizer.render(rewritten(problem, template, {}), { addGenerationPrompt: true })),
          response,
          weights: { role: "policy" },
          temperature: 1,
        })),
      );
    const [plain, right, wrong] = [await score(forms.plain), await score(forms.right), await score(forms.wrong)];
    return answers.flatMap(({ response }, i) => {
      const less = (scores: readonly Scores[]): Float64Array => (scores[i] as Scores).logp.map((x, t) => x - ((plain[i] as Scores).logp[t] as number));
      const kinds = responseTokens(response, symbols ?? tokenizer);
      return [...sensitivity({ right: less(right), wrong: less(wrong) })].map((s, t) => ({ s, filler: kinds[t]?.kind === "filler" }));
    });
  } finally {
    await close();
  }
}

/** The probability that a number of the first set is larger than one of the second, ties counted half. */
function auroc(some: readonly number[], others: readonly number[]): number | undefined {
  if (some.length === 0 || others.length === 0) return undefined;
  const sorted = Float64Array.from(others).sort();
  const below = (x: number, orEqual: boolean): number => {
    let [low, high] = [0, sorted.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (orEqual ? (sorted[middle] as number) <= x : (sorted[middle] as number) < x) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  return some.reduce((sum, x) => sum + (below(x, false) + below(x, true)) / 2, 0) / (some.length * others.length);
}

/** What the shaping left of the credit of phrases, over what it left of all others: 1 where it does not tell them apart. */
async function creditOfPhrases(trained: TrainedRun): Promise<number | undefined> {
  const { tokenizer } = chain(options);
  const sums = { filler: { before: 0, after: 0 }, other: { before: 0, after: 0 } };
  for (const step of [1, Math.ceil(trained.steps / 2), trained.steps]) {
    for (const { rollouts } of await trained.groups(step)) {
      for (const { trajectory, columns } of rollouts) {
        const [before, after] = [columns["coefficient.credit.0.grpo"], columns.coefficient];
        if (before === undefined || after === undefined || tokenizer === undefined) continue;
        responseTokens(trajectory.response, tokenizer).forEach(({ kind }, t) => {
          const sum = sums[kind === "filler" ? "filler" : "other"];
          sum.before += Math.abs(before[t] as number);
          sum.after += Math.abs(after[t] as number);
        });
      }
    }
  }
  const kept = ({ before, after }: { before: number; after: number }): number => after / before;
  return sums.filler.before === 0 || sums.other.before === 0 ? undefined : kept(sums.filler) / kept(sums.other);
}

/** Standard deviation over mean of the gradient norms. */
function spread(trained: TrainedRun): number | undefined {
  const norms = trained.series("grad_norm").map(({ value }) => value);
  if (norms.length < 2) return undefined;
  const mean = norms.reduce((a, b) => a + b, 0) / norms.length;
  return mean === 0 ? undefined : Math.sqrt(norms.reduce((sum, x) => sum + (x - mean) ** 2, 0) / (norms.length - 1)) / mean;
}

export default defineDemonstration({
  paper: cscr.paper,
  method: "cscr",
  testbed:
    "Chains of three to six operations modulo 7, each line with one of six phrases before it; a policy of 0.1M parameters that works 65 % of products as sums and changes its phrases, nothing else, where the prompt claims an outcome. 100 steps.",
  shared: {
    model: "starters/chain-hints",
    task: { name: "chain", options },
    steps: 100,
    problems: 16,
    group: 8,
    minibatches: 2,
    lr: 3e-4,
    eval: { every: 20, problems: 300, temperature: 1 },
  },
  arms: {
    grpo: { method: "grpo" },
    cscr: reallocated(),
    inverted: { about: "more credit to what reacts", ...reallocated({ control: "inverted" }) },
    strong: { about: "beta 8", ...reallocated({ beta: 8 }) },
  },
  metrics: {
    accuracy: { kind: "avg", problems: 500, temperature: 1 },
    "accuracy while it trains": { kind: "area" },
    "phrases told by their reaction": {
      about: "area under the ROC curve of the sensitivity, phrases against other tokens, of the first answers",
      kind: "own",
      run: async (trained, bench) => {
        const tokens = await reactions(trained, bench);
        const of = (filler: boolean): number[] => tokens.filter((token) => token.filler === filler).map(({ s }) => s);
        return auroc(of(true), of(false));
      },
    },
    "same direction": { about: "share of tokens that both claims move one way", kind: "training", metric: "cscr.same_direction", from: 1, to: 5 },
    "credit of phrases": { about: "what is left of it, over what is left of other tokens'", kind: "own", run: creditOfPhrases },
    "spread of gradient norms": { about: "standard deviation over mean", kind: "own", run: spread },
  },
  claims: {
    "phrases react more than other tokens": { kind: "above", metric: "phrases told by their reaction", arm: "cscr", than: 0.7 },
    "opposite claims move tokens one way": { kind: "above", metric: "same direction", arm: "cscr", than: 0.8 },
    "phrases lose credit": { kind: "below", metric: "credit of phrases", arm: "cscr", than: 0.9 },
    "not below GRPO at equal updates": { kind: "notBelow", metric: "accuracy while it trains", arm: "cscr", than: "grpo", margin: 0.005 },
    "GRPO above the inverted weights": { kind: "below", metric: "accuracy while it trains", arm: "inverted", than: "grpo" },
    "strong weights make gradients vary more": { kind: "above", metric: "spread of gradient norms", arm: "strong", than: "cscr" },
  },
  sabotage: {
    about: "the sensitivities of each answer are given to its tokens in a random order",
    stands: "cscr",
    arm: reallocated({ control: "shuffled" }),
    unshown: ["phrases lose credit"],
  },
  quick: { options: { steps: 2, problems: 4, group: 4, eval: { every: 2, problems: 20, temperature: 1 } }, heldout: { problems: 20 }, seeds: 1 },
  minutes: 30,
  differences: [
    "Which tokens react is a habit of the warm start, not something that pre-training left.",
    "Accuracy is the mean of the held-out score over training, because at its end all arms are near the top.",
  ],
});
