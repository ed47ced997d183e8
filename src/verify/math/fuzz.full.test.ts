/** Ten thousand texts that nobody meant: every one gets a verdict within its steps, and none an exception. Half are changed answers of MATH-500, a quarter nested or repeated up to 100 kB. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { repository } from "../../../test/paths.js";
import type { Problem } from "../../core/problem.js";
import { randomKey, Stream } from "../../core/random.js";
import type { Verdict } from "../../core/verdict.js";
import { compare } from "./compare.js";
import { math } from "./math.js";
import { defaultPolicies } from "./policies.js";
import { read } from "./read.js";
import { Budget } from "./types.js";

const answers = readFileSync(join(repository, "test", "data", "math500.jsonl"), "utf8")
  .trimEnd()
  .split("\n")
  .map((line) => (JSON.parse(line) as { answer: string }).answer);
const problem: Problem = { key: "p", prompt: [], reference: { state: "gold", answer: "", version: 0 } };
const count = 10_000;
const longest = 100_000;

const pieces =
  String.raw`\frac{ \frac12 \sqrt{ \sqrt[3]{ ( [ \{ \left( \right) } ) ] \} \begin{pmatrix} \end{pmatrix} \begin{cases} & \\ \boxed{ \text{ \pm \cup \in \mathbb{R} \overline{ \log_ \sin \sum_{k=1}^{9} \binom{ ^ _ ^{ _{ ! !! | \lfloor + - * / = < \le \infty \pi i e x y 1 0 23 4.5 .5 1,000 9^9^9 % \% $ $$ \( \] ° ' : ; , . or and not answer: #### <think> </think> <answer> ** \n ½ √ ² π − × mod base dozen percent cm per`
    .split(" ")
    .concat([" ", "\n", "\u0000", "\ud800", "\u202e", "0".repeat(50), "The answer is ", "\\boxed{"]);
const repeated = [
  "{",
  "(",
  "\\frac{1}{",
  "\\sqrt{",
  "x^{",
  "-",
  "+1",
  "1,",
  "9^",
  "!",
  "\\left(",
  "|",
  "\\boxed{",
  "\\text{",
  "f(",
  "x=",
  "1/",
  "\\begin{pmatrix}",
  "a",
  "1 ",
  "$",
  "\\pm ",
  "(1,",
  "\\{",
  "or ",
  "0.",
  "{}",
  "\\\\",
  "_",
  "\\binom{2}{",
  "\\log_{",
  "sin ",
  "²",
  "<think>",
];

/** One to three small changes of an answer, which is then the reference. */
function mutated(random: Stream, answer: string): string {
  let text = answer;
  for (let changes = 1 + random.int(3); changes > 0; changes--) {
    const at = random.int(text.length + 1);
    const end = Math.min(text.length, at + 1 + random.int(4));
    const kind = random.int(5);
    if (kind === 0) text = text.slice(0, at) + text.slice(end);
    else if (kind === 1) text = text.slice(0, at) + random.pick(pieces) + text.slice(at);
    else if (kind === 2) text = text.slice(0, end) + text.slice(at);
    else if (kind === 3) text = text.slice(0, at) + [...text.slice(at, end)].reverse().join("") + text.slice(end);
    else text = text.slice(0, at) + random.pick(answers).slice(0, 12) + text.slice(end);
  }
  return text;
}

/** Constructs within or behind each other, of any size up to the longest. */
function grown(random: Stream): string {
  const [piece, other] = [random.pick(repeated), random.pick(repeated)];
  const size = Math.floor(10 * (longest / 10) ** (random.int(1000) / 1000));
  const unit = random.int(3) === 0 ? piece + other : piece;
  const opened = unit.repeat(Math.max(1, Math.floor(size / 2 / unit.length)));
  const closed = random.int(2) === 0 ? ")]}|\\}".charAt(random.int(4)).repeat(Math.floor(size / 2)) : "";
  const text = `${opened}${random.int(2) === 0 ? "1" : ""}${closed}`;
  return random.int(3) === 0 ? `\\boxed{${text}}` : text;
}

const mixed = (random: Stream): string => Array.from({ length: 1 + random.int(40) }, () => random.pick(pieces)).join(random.int(2) === 0 ? "" : " ");

describe("texts that nobody meant", () => {
  const random = new Stream(randomKey({ seed: 0, purpose: "math/fuzz" }));
  const texts = Array.from({ length: count }, (_, i) =>
    i % 2 === 0 ? mutated(random, answers[i % answers.length] as string) : i % 4 === 1 ? grown(random) : mixed(random),
  );
  const verifiers = (["response", "answer", "auto"] as const).map((kind) => math({ kind }));

  it("get a verdict, whatever they are and whatever they are held against", () => {
    const kinds = new Map<string, number>();
    let slowest = { ms: 0, text: "" };
    for (const [i, text] of texts.entries()) {
      const verifier = verifiers[i % 3] as (typeof verifiers)[number];
      const reference = answers[i % answers.length] as string;
      const started = performance.now();
      const verdict = verifier.verify({ reference, response: text, problem, truncated: false }) as Verdict;
      // As a reference it is refused, or takes itself.
      const fault = verifier.checkReference(text);
      const ms = performance.now() - started;
      if (ms > slowest.ms) slowest = { ms, text: text.slice(0, 60) };
      expect(["accept", "reject"]).toContain(verdict.kind);
      expect(fault === undefined || fault.length > 5).toBe(true);
      const outcome = verdict.kind === "reject" ? verdict.reason : verdict.kind;
      kinds.set(outcome, (kinds.get(outcome) ?? 0) + 1);
    }
    expect(Math.max(...texts.map(({ length }) => length))).toBeGreaterThan(0.9 * longest);
    expect([...kinds.keys()].length).toBeGreaterThan(5);
    console.log(
      `math, ${count} texts: ${[...kinds].map(([kind, n]) => `${kind} ${n}`).join(", ")}; the slowest took ${slowest.ms.toFixed(0)} ms: ${JSON.stringify(slowest.text)}`,
    );
  });

  it("are compared alike from either side", () => {
    const apart: string[][] = [];
    for (let i = 0; i < count; i += 2) {
      const text = texts[i] as string;
      const answer = answers[i % answers.length] as string;
      for (const other of [answer, random.pick(answers)]) {
        const [a, b] = [text, other].map((each) => read(each, defaultPolicies, new Budget()));
        if (a?.kind !== "value" || b?.kind !== "value") continue;
        const [there, back] = [compare(a, b, defaultPolicies, new Budget()), compare(b, a, defaultPolicies, new Budget())];
        if ((there.kind === "equal") !== (back.kind === "equal")) apart.push([text, other, there.reason, back.reason]);
      }
    }
    expect(apart).toEqual([]);
  });

  it("never take what was changed for the answer unless both are one value", () => {
    // A changed number that is accepted has the same value: whole numbers are compared as such here, without the verifier.
    const whole = /^-?\d+$/;
    const verifier = verifiers[1] as (typeof verifiers)[number];
    const isAccepted = (reference: string, response: string): boolean =>
      (verifier.verify({ reference, response, problem, truncated: false }) as Verdict).kind === "accept";
    const wrong = texts.filter(
      (text, i) =>
        i % 2 === 0 && whole.test(text) && answers.some((answer) => whole.test(answer) && BigInt(answer) !== BigInt(text) && isAccepted(answer, text)),
    );
    expect(wrong).toEqual([]);
  });
});
