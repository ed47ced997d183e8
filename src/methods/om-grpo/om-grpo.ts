/**
 * OM-GRPO: label-free learning from the agreement of answers, with no gradient on the answer itself (P36).
 *
 *     c_i  = n_class(i) / G                                              soft vote; 0 without an answer (derived from the abstract)
 *     s_ij = (P(i first wins) + 1 - P(j first wins)) / 2                 one forced-choice token, both orders (derived from the abstract)
 *     b    = mean over j of s_ij                                         among the first answers of the `classes` largest classes
 *     R_i  = (1 - eta) c_i + eta b_class(i)                              contrast-augmented reward (the mixing: our choice)
 *     m'_t = m_t (1 - o_t)                                               o: tokens of the committed answer, what closes it included
 *
 * The policy's loss and its normaliser have m', terms such as a KL keep m (derived from the abstract). Classes beyond the
 * largest have b = 0, a single class has b = 1. Our choice: an answer that the budget cut off is none; a class speaks through its first
 * answer; ties go to the class that appears first; a pair that is too long for the judge is a draw. References are withheld:
 * no slot sees one and no verdict is asked for. The loss, its advantages and their average are GRPO's.
 */
import { z } from "zod";
import { ConfigError } from "../../core/errors.js";
import { note } from "../../core/note.js";
import type { Batch, Trajectory } from "../../core/trajectory.js";
import { trained } from "../../core/trajectory.js";
import type { AnswerClasses } from "../../verify/contract.js";
import type { Lab, Method, MethodModule, Rewards } from "../contract.js";
import { keepTokens } from "../keep.js";
import { training } from "../needs.js";
import { rewritten } from "../prompts.js";
import { withAnswerSpans } from "../spans.js";
import { choiceIds, contests, type JudgeOptions } from "./judge.js";
import { hardVotes, largest, softVotes, type Votes, voteEntropy, votesOf } from "./votes.js";

export const omGrpoOptions = z.strictObject({
  reward: z
    .enum(["contrast", "soft", "hard"])
    .default("contrast")
    .describe("contrast: soft votes and the judge; soft: the share of the group with this answer; hard: 1 for the most frequent answer."),
  mask: z.boolean().default(true).describe("Leave the tokens of the committed answer out of the policy's loss."),
  eta: z.number().min(0).max(1).default(0.3).describe("Weight of the judge beside the soft vote."),
  classes: z.int().min(2).default(3).describe("Classes that are compared with each other, the largest of a group."),
  judge: z.string().min(1).default("policy").describe("The role that compares: policy is the one that learns, reference (say) a frozen one."),
  judge_prompt: z
    .string()
    .min(1)
    .default("{problem}\n\nAnswer A:\n{first}\n\nAnswer B:\n{second}\n\nWhich answer is more likely right? Say A or B alone.")
    .describe("What the judge is asked, with {problem}, {first} and {second}, in place of the problem's last message."),
  judge_choices: z
    .tuple([z.string().min(1), z.string().min(1)])
    .default(["A", "B"])
    .describe("Its two answers, one token each: the first, or the second."),
});
export type OmGrpoOptions = z.output<typeof omGrpoOptions>;

/** Class of an answer within its group, in the order of appearance; -1 for none. */
export const answerClass = note<number>("om-grpo.class");
/** On a group: pairs that were too long for the judge. */
const skippedPairs = note<number>("om-grpo.skipped", 0);

const place = "method om-grpo";

function classesOf(lab: Pick<Lab, "answers">): AnswerClasses {
  if (lab.answers !== undefined) return lab.answers;
  throw new ConfigError({
    place,
    cause: "the run's verifier does not tell answers apart without a reference",
    mend: "take one that does: number, exact, or one of your own with `extract` and `same`",
  });
}

/** Answers as they were committed; one that was cut off is none. */
const answersOf = (rows: readonly Trajectory[], { extract }: AnswerClasses): (string | undefined)[] =>
  rows.map(({ text, stop }) => (stop === "length" ? undefined : extract(text)));

async function rewards(batch: Batch, lab: Lab, options: OmGrpoOptions): Promise<Rewards> {
  const classes = classesOf(lab);
  const groups = batch.groups.map((group) => {
    const rows = trained(group);
    const votes = votesOf(answersOf(rows, classes), classes.same);
    rows.forEach((row, i) => answerClass.set(row, votes.classOf[i] as number));
    return { group, rows, votes };
  });
  if (options.reward === "hard") return { values: groups.flatMap(({ votes }) => hardVotes(votes)) };
  if (options.reward === "soft" || options.eta === 0) return { values: groups.flatMap(({ votes }) => softVotes(votes)) };
  const asked = groups.map(({ group, rows, votes }) => {
    const top = largest(votes, options.classes);
    return { top, contest: { problem: group.problem, answers: top.map((k) => (rows[votes.first[k] as number] as Trajectory).text) } };
  });
  const { shares, skipped } = await contests(
    asked.map(({ contest }) => contest),
    options satisfies JudgeOptions,
    lab,
  );
  groups.forEach(({ group }, g) => skipped[g] !== 0 && skippedPairs.set(group, skipped[g] as number));
  return {
    values: groups.flatMap(({ votes }, g) => {
      const judged = new Map(asked[g]?.top.map((k, i) => [k, shares[g]?.[i] as number]));
      const soft = softVotes(votes);
      return votes.classOf.map((k, i) => (1 - options.eta) * (soft[i] as number) + options.eta * (judged.get(k) ?? 0));
    }),
  };
}

/** The votes of each group, as the reward left them on its answers. */
function votesOfBatch(batch: Batch): Votes[] {
  return batch.groups.map((group) => {
    const names = trained(group).map((row) => answerClass.get(row) ?? -1);
    return votesOf(
      names.map((k) => (k < 0 ? undefined : String(k))),
      (a, b) => a === b,
    );
  });
}

export const omGrpo: MethodModule<OmGrpoOptions, null> = {
  name: "om-grpo",
  paper: "P36 OM-GRPO",
  options: omGrpoOptions,
  initial: null,
  make(options): Method {
    const { reward, mask, eta, classes, judge } = options;
    const judges = reward === "contrast" && eta > 0;
    const votes = reward === "hard" ? "1 for the most frequent answer" : "the share of the group with this answer";
    return {
      name: "om-grpo",
      needs: [
        training,
        ...(judges ? [{ for: "the judge", oneOf: [{ capabilities: ["score", "score.targets"], roles: judge === "policy" ? [] : [judge] }] } as const] : []),
      ],
      references: "withheld",
      writes: [answerClass, skippedPairs],
      slots: {
        setup: {
          about: "the verifier tells answers apart, and the judge can be asked",
          run: async (lab) => {
            if (lab.conversational) {
              const cause = "answers are conversations, whose environment sees references and judges by itself";
              throw new ConfigError({ place, cause, mend: "take a task of plain answers" });
            }
            classesOf(lab);
            if (mask) withAnswerSpans([], lab, `${place}, option mask`);
            if (!judges) return;
            choiceIds(options, lab);
            lab.render(rewritten(lab.problems.get(0), options.judge_prompt, { first: "", second: "" }));
          },
        },
        ...(mask
          ? { enrich: { late: true, about: "the span of the answer", run: async (groups, lab) => withAnswerSpans(groups, lab, `${place}, option mask`) } }
          : {}),
        reward: {
          owns: (batch, lab) => rewards(batch, lab, options),
          about: judges ? `${1 - eta} ${votes} + ${eta} won against the first answers of the ${classes} largest classes, by ${judge}` : votes,
        },
        ...(mask
          ? {
              keep: {
                about: "the answer's tokens are out of the policy's loss",
                run: (batch) => keepTokens(batch, ({ spans }, t) => !spans.some(({ name, start, end }) => name === "answer" && t >= start && t < end)),
              },
            }
          : {}),
        observe: {
          run: ({ batch }) => {
            const all = votesOfBatch(batch);
            const mean = (of: (votes: Votes) => number): number => all.reduce((sum, each) => sum + of(each), 0) / Math.max(1, all.length);
            return {
              "om-grpo.agreement": mean((each) => Math.max(0, ...softVotes(each))),
              "om-grpo.answer_entropy": mean(voteEntropy),
              "om-grpo.answered": mean(({ classOf }) => classOf.filter((k) => k >= 0).length / Math.max(1, classOf.length)),
              ...(judges ? { "om-grpo.skipped": batch.groups.reduce((sum, group) => sum + (skippedPairs.get(group) ?? 0), 0) } : {}),
            };
          },
        },
      },
    };
  },
};
