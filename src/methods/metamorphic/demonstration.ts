/**
 * What is claimed of answer verifiers (P21): on answers that are right by construction they differ widely, two settings of one
 * differ, what is lost within their own promises is lost to blanks and punctuation, and a tolerance that grows with the number
 * lets neighbours through from 10^4 on. Four small verifiers of kinds that are in use, each in two settings; `math` beside them.
 * No policy is trained: an arm is an audit (`touchstone audit`), and a seed draws its references.
 */
import { type AuditReport, audit, type Share } from "../../audit/audit.js";
import { contractOf } from "../../audit/contracts.js";
import { auditedVerifier } from "../../audit/find.js";
import type { Json } from "../../core/json.js";
import { defineDemonstration, type MeasuredArm, type Numbers, type SeedNumbers } from "../demonstration.js";

/** References a seed; five seeds have 2,000. */
const golds = 400;
const quickGolds = 25;

type Settings = { readonly [option: string]: Json };

/** The audit of a verifier as it comes, with another of its settings on the same answers. */
function audited(name: string, other: Settings, about: string, settings: Settings = {}): MeasuredArm {
  return {
    about,
    run: async ({ seed, quick }) => {
      const [first, second] = [await auditedVerifier(name, settings), await auditedVerifier(name, other)];
      return numbersOf(await audit({ audited: first, other: second, contract: contractOf(name), golds: quick ? quickGolds : golds, seed, workers: 0 }));
    },
  };
}

function numbersOf(report: AuditReport): Numbers {
  const { self_validation, in_contract, disagreement, mutants, hacks, off_by_one } = report;
  const { whitespace = 0, punctuation = 0 } = in_contract.budget;
  const accepted = (side: "one_less" | "one_more", from: number, below: number): number => {
    const here = off_by_one.filter(({ value }) => Number(value) >= from && Number(value) < below);
    return here.filter((step) => step[side] === "accept").length / here.length;
  };
  const both = (less: readonly [number, number], more: readonly [number, number]): number =>
    (accepted("one_less", ...less) + accepted("one_more", ...more)) / 2;
  const wrong = [...mutants, ...hacks];
  return {
    "self-validation": self_validation.share,
    "in-contract failures": in_contract.failures / in_contract.n,
    "from blanks and punctuation": in_contract.failures === 0 ? undefined : whitespace + punctuation,
    disagreement: (disagreement as Share).share,
    "neighbours below the step": both([0, 10_000], [0, 9_999]),
    "neighbours from the step on": both([10_000, Number.POSITIVE_INFINITY], [9_999, Number.POSITIVE_INFINITY]),
    "wrong answers accepted": wrong.reduce((sum, cell) => sum + cell.accepted, 0) / wrong.reduce((sum, { n }) => sum + n, 0),
  };
}

/** Of the four verifiers, without ours. */
const spread = ({ math: _, ...others }: SeedNumbers): number | undefined => {
  const shares = Object.values(others).map((numbers) => numbers["self-validation"]);
  return shares.includes(undefined) ? undefined : Math.max(...(shares as number[])) - Math.min(...(shares as number[]));
};

/** A share that is to be exactly 0 or 1 is so in every seed, and its interval has no width. */
const exactly = 1e-9;

export default defineDemonstration({
  paper: "P21 Metamorphic verifier testing",
  method: "metamorphic",
  testbed:
    "References drawn as exact values in nine forms, each rewritten in twelve categories and changed to other values; every rewriting is certified by a second reader. Four small verifiers in two settings each, and `math`.",
  arms: {
    trimmed: audited("baseline:trimmed", { strip: true }, "equality of texts without the blanks around them; with and without dollar signs and a final stop"),
    normaliser: audited("baseline:normaliser", { numbers: true }, "equality after replacements in the text; with and without those of numbers"),
    cascade: audited("baseline:cascade", { percent: false }, "numbers within 1e-4 of the larger, a hundredth and a hundred times too, or without these"),
    symbolic: audited("baseline:symbolic", { undelimited: "wrapped" }, "reads LaTeX between delimiters; of other texts a numeral, or all of it"),
    math: audited(
      "math",
      { policies: { "percent-number": "strict" } },
      "the verifier that comes with Touchstone, held to every category; with and without one policy changed",
    ),
  },
  metrics: {
    "self-validation": { kind: "returned", about: "references that are accepted against themselves, as written" },
    "in-contract failures": { kind: "returned", about: "right answers not accepted, of those that the verifier says it reads" },
    "from blanks and punctuation": { kind: "returned", about: "share of these failures" },
    disagreement: { kind: "returned", about: "right answers on which the two settings differ" },
    "neighbours below the step": { kind: "returned", about: "g - 1 against g below 10,000, and g + 1 below 9,999, accepted" },
    "neighbours from the step on": { kind: "returned", about: "the same from there on, up to 10^12" },
    "wrong answers accepted": { kind: "returned", about: "changed values, hedges and other hacks" },
  },
  claims: {
    "verifiers differ by 20 points or more on answers as written": { kind: "above", of: spread, than: 0.2 },
    "80 % or more of what the reader of LaTeX loses within its promises is lost to blanks and punctuation": {
      kind: "above",
      metric: "from blanks and punctuation",
      arm: "symbolic",
      than: 0.8,
    },
    "two settings of it differ on 20 % or more of the answers": { kind: "above", metric: "disagreement", arm: "symbolic", than: 0.2 },
    "a relative tolerance lets no neighbour through below 10,000": {
      kind: "nullDifference",
      metric: "neighbours below the step",
      arm: "cascade",
      than: 0,
      margin: exactly,
    },
    "and every one from there on": { kind: "nullDifference", metric: "neighbours from the step on", arm: "cascade", than: 1, margin: exactly },
    "math fails nowhere, though held to every category": { kind: "nullDifference", metric: "in-contract failures", arm: "math", than: 0, margin: exactly },
    "math accepts no wrong answer": { kind: "nullDifference", metric: "wrong answers accepted", arm: "math", than: 0, margin: exactly },
  },
  sabotage: {
    about: "the cascade with an absolute tolerance of a half, which has no step",
    stands: "cascade",
    arm: audited("baseline:cascade", { absolute: 0.5, percent: true }, "the same with an absolute tolerance", { absolute: 0.5, percent: false }),
    unshown: ["and every one from there on"],
  },
  quick: {},
  minutes: 8,
  differences: [
    "The paper audits public libraries; these are four small verifiers of the kinds that they are, written for this.",
    "307,420 verdicts there, some 400,000 here, on references that are drawn and not taken from data sets.",
  ],
});
