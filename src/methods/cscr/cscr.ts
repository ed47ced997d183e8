/**
 * CSCR: credit is taken from tokens that react to any claim about the outcome, and given to the others of the answer (P45).
 *
 *     D+_t, D-_t = log pi(y_t | x, claim, y_<t) - log pi(y_t | x, y_<t)       claims "right" and "wrong", same weights   (the paper, as a third party tells it)
 *     s_t        = max(|D+_t|, |D-_t|)                                                                              (the same)
 *     w_t        = max(w_min, exp(-beta max(0, s_t - kappa)))                 the shape is the paper's, the numbers our choice
 *     A_t        = A w_t n / sum w                                            n tokens: the answer keeps its sum and sign
 *
 * Our choice: the exact form of the last line, and where another method gave an answer's tokens unlike coefficients, their
 * positive and negative sums are each kept; kappa may be the median of the batch; an answer that does not fit beside a claim
 * keeps its coefficients. Base advantage and loss are whoever's they are, GRPO's by default.
 */
import { z } from "zod";
import { Stream } from "../../core/random.js";
import type { Batch, Trajectory } from "../../core/trajectory.js";
import type { Scores } from "../../engine/contract.js";
import type { Lab, Method, MethodModule } from "../contract.js";
import { rowsOf } from "../credit.js";
import { hintContext, plainLogp, refuseUnlessHinted, scoresUnder, tellsReference } from "../hints.js";
import { training } from "../needs.js";
import { type Gaps, median, redistributed, sensitivity, tokenWeight } from "./sensitivity.js";

const prompt = z.string().includes("{problem}");

export const cscrOptions = z.strictObject({
  right_prompt: prompt
    .default("{problem}\n\n(The answer given below is correct.)")
    .describe("The last message with the claim that the answer is right; {problem} is what it said."),
  wrong_prompt: prompt.default("{problem}\n\n(The answer given below is incorrect.)").describe("The last message with the claim that the answer is wrong."),
  beta: z.number().min(0).default(1).describe("How fast the weight of a token falls with its sensitivity, a nat; 0 changes nothing."),
  kappa: z
    .union([z.number().min(0), z.literal("median")])
    .default(0.5)
    .describe("Sensitivity in nats up to which a token keeps its weight, or `median`: that of the batch."),
  w_min: z.number().gt(0).max(1).default(0.1).describe("Smallest weight, before an answer's weights are scaled to keep its sum."),
  control: z
    .enum(["none", "inverted", "shuffled"])
    .default("none")
    .describe(
      "For comparisons: inverted gives sensitive tokens more instead of less, shuffled gives each answer's sensitivities to its tokens in a random order.",
    ),
  floor: z.number().min(0).default(0.3).describe("Sensitivity from which on a token counts in the shares of claims that move it one way, or opposite ways."),
});
export type CscrOptions = z.output<typeof cscrOptions>;

const place = "cscr";

/** Where coefficients fall and losses too. */
const maskOf = ({ reward, loss }: Trajectory): Uint8Array => reward.map((m, t) => m & (loss[t] as number));

/** Gaps of each row to both claims; undefined for one that does not fit beside them. */
export async function claimGaps(
  batch: Batch,
  lab: Lab,
  { right_prompt, wrong_prompt }: Pick<CscrOptions, "right_prompt" | "wrong_prompt">,
): Promise<(Gaps | undefined)[]> {
  const problems = new Map(batch.groups.map(({ problem }) => [problem.key, problem]));
  const contexts = (template: string, label: string) =>
    new Map([...problems].map(([key, problem]) => [key, hintContext(problem, template, label, lab, place)] as const));
  const [right, wrong] = [contexts(right_prompt, "claimed-right"), contexts(wrong_prompt, "claimed-wrong")];
  const rows = rowsOf(batch);
  const under = (claim: typeof right) => rows.map((row) => ({ row, context: claim.get(row.problem) }));
  const scores = await scoresUnder([...under(right), ...under(wrong)], lab.policy, lab);
  const identity = scores.find((score) => score !== undefined)?.weights;
  if (identity === undefined) return rows.map(() => undefined);
  const plain = await plainLogp(rows, lab.policy, identity, lab);
  return rows.map((_, i) => {
    const [up, down] = [scores[i], scores[rows.length + i]] as readonly (Scores | undefined)[];
    if (up === undefined || down === undefined) return undefined;
    const less = ({ logp }: Scores): Float64Array => logp.map((value, t) => value - (plain[i]?.[t] as number));
    return { right: less(up), wrong: less(down) };
  });
}

export const cscr: MethodModule<CscrOptions, null> = {
  name: "cscr",
  paper: "P45 CSCR",
  options: cscrOptions,
  initial: null,
  make(options): Method {
    const { beta, kappa, w_min, control, floor } = options;
    const templates = [options.right_prompt, options.wrong_prompt];
    /** Of the batch in hand, for its metrics. */
    const measured = new WeakMap<Batch, readonly (Gaps | undefined)[]>();
    return {
      name: "cscr",
      needs: [training, { for: "log-probs under claims", oneOf: [{ capabilities: ["score"] }] }],
      ...(tellsReference(...templates) ? { references: "needed" } : {}),
      slots: {
        setup: { about: "the claims fit into the model", run: (lab) => refuseUnlessHinted(templates, lab, place) },
        shape: {
          level: "token",
          keeps: ["sign", "sum", "zero"],
          about: `exp(-${beta} max(0, sensitivity - ${kappa})), at least ${w_min}${control === "none" ? "" : `, ${control}`}`,
          run: async (batch, credit, lab) => {
            const rows = rowsOf(batch);
            const gaps = await claimGaps(batch, lab, options);
            measured.set(batch, gaps);
            const sensitivities = gaps.map((gap) => gap && sensitivity(gap));
            const masks = rows.map(maskOf);
            const threshold = kappa === "median" ? median(sensitivities.flatMap((s, i) => (s ? [...s].filter((_, t) => masks[i]?.[t]) : []))) : kappa;
            const tokens = credit.token.map((coefficients, i) => {
              let s = sensitivities[i];
              const mask = masks[i] as Uint8Array;
              if (s === undefined) return coefficients;
              if (control === "shuffled") s = shuffled(s, mask, rows[i] as Trajectory, lab);
              const weights = s.map((value) => tokenWeight(value, threshold, { beta, w_min, inverted: control === "inverted" }));
              return redistributed(coefficients, weights, mask);
            });
            return credit.with("token", tokens);
          },
        },
        observe: { run: ({ batch }) => metrics(rowsOf(batch), measured.get(batch) ?? [], floor) },
      },
    };
  },
};

/** The sensitivities of an answer's own tokens in an order that the run's seed draws. */
function shuffled(s: Float64Array, mask: Uint8Array, { problem, member, turn }: Trajectory, lab: Lab): Float64Array {
  const own = [...mask.keys()].filter((t) => mask[t] === 1);
  const order = new Stream(lab.key({ purpose: "cscr/shuffle", step: lab.step, problem, member, turn })).shuffle(own);
  const next = s.slice();
  own.forEach((t, n) => {
    next[t] = s[order[n] as number] as number;
  });
  return next;
}

/** Mean sensitivity, of all tokens and by named span, and the shares of tokens above the floor that both claims move one way, or opposite ways. */
function metrics(rows: readonly Trajectory[], gaps: readonly (Gaps | undefined)[], floor: number): { readonly [name: string]: number } {
  const sums = new Map<string, { sum: number; count: number }>();
  const add = (name: string, value: number): void => {
    const so = sums.get(name) ?? { sum: 0, count: 0 };
    sums.set(name, { sum: so.sum + value, count: so.count + 1 });
  };
  rows.forEach((row, i) => {
    const gap = gaps[i];
    add("cscr.skipped", gap === undefined ? 1 : 0);
    if (gap === undefined) return;
    const mask = maskOf(row);
    sensitivity(gap).forEach((s, t) => {
      if (!mask[t]) return;
      add("cscr.sensitivity", s);
      for (const name of new Set(row.spans.filter(({ start, end }) => t >= start && t < end).map((span) => span.name))) add(`cscr.sensitivity.${name}`, s);
      if (s <= floor) return;
      const product = (gap.right[t] as number) * (gap.wrong[t] as number);
      add("cscr.same_direction", product > 0 ? 1 : 0);
      add("cscr.reversal", product < 0 ? 1 : 0);
    });
  });
  return Object.fromEntries([...sums].map(([name, { sum, count }]) => [name, sum / count]));
}
