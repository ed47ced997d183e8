/** Verdicts on answers of a chat: by the task's verifier on a problem that was posed, or on any question with a reference. */
import { ConfigError } from "../core/errors.js";
import { readJson } from "../core/json-text.js";
import type { Message, Problem } from "../core/problem.js";
import type { Verdict } from "../core/verdict.js";
import { type JudgePool, startPool } from "../verify/pool.js";
import { chosenVerifier, type Posed, type ProblemFlags, posedProblems } from "./problems.js";

/** Problems that are drawn of a task; then they come round again. */
const drawn = 200;

export interface Judged {
  readonly verdict: Verdict;
  /** What the verifier read as the answer; null: nothing. */
  readonly answer: string | null;
}

type Judges = Pick<Posed, "verifier" | "source">;

/** Loads nothing before it is asked for something. */
export class ChatJudge {
  private posed: Promise<Posed> | undefined;
  private pool: JudgePool | undefined;
  private next = 0;

  constructor(
    private readonly flags: ProblemFlags,
    private readonly seed: number,
  ) {}

  /** Whether there is a task or file to pose problems of. */
  get poses(): boolean {
    return this.flags.task !== undefined || this.flags.data !== undefined;
  }

  /** The next problem of the task or file. Throws ConfigError where there is none, or its answers are conversations. */
  async problem(): Promise<Problem> {
    if (!this.poses) throw new ConfigError({ place: "/problem", cause: "no task is known", mend: "name one with --task or --data, or chat with a run" });
    this.posed ??= posedProblems({ ...this.flags, json: true }, this.seed, drawn);
    const { problems, environment, task } = await this.posed;
    if (environment) {
      throw new ConfigError({
        place: `task ${task?.name}`,
        cause: "its answers are conversations with an environment",
        mend: "see them with touchstone sample",
      });
    }
    return problems[this.next++ % problems.length] as Problem;
  }

  /** Judges an answer. `reference`: as it was typed, for a question that has none of its own. Throws ConfigError where nothing can judge it. */
  async verdict(asked: Problem | readonly Message[], response: string, truncated: boolean, reference: string | undefined): Promise<Judged> {
    const { verifier, source } = await this.judges();
    const problem = "key" in asked && reference === undefined ? asked : questionOf("key" in asked ? asked.prompt : asked, reference, verifier);
    if (problem.reference.answer === undefined && verifier.needsReference !== false) {
      throw new ConfigError({ place: "/verdict", cause: "this question has no reference", mend: "write it behind: /verdict 42" });
    }
    this.pool ??= await startPool({ verifier, ...(source && { source }) });
    const verdict = await this.pool.judge(problem, response, truncated);
    return { verdict, answer: verifier.extract ? (verifier.extract(response) ?? null) : null };
  }

  private async judges(): Promise<Judges> {
    const chosen = await chosenVerifier(this.flags);
    if (chosen !== undefined) return chosen;
    if (!this.poses)
      throw new ConfigError({ place: "/verdict", cause: "no verifier is known", mend: "name one with --verifier (number, exact), or chat with a run" });
    this.posed ??= posedProblems({ ...this.flags, json: true }, this.seed, drawn);
    return this.posed;
  }

  async close(): Promise<void> {
    await this.pool?.close();
  }
}

/** A question of one's own as a problem. A reference is the text that was typed, or the JSON that it is where the verifier takes that alone. */
function questionOf(prompt: readonly Message[], reference: string | undefined, verifier: Judges["verifier"]): Problem {
  if (reference === undefined) return { key: "chat", prompt, reference: { state: "none", version: 0 } };
  const { value } = readJson(reference);
  const fault = verifier.checkReference(reference);
  const answer = fault === undefined ? reference : value;
  if (answer === undefined || (fault !== undefined && verifier.checkReference(answer) !== undefined)) {
    throw new ConfigError({ place: `/verdict ${reference}`, cause: fault ?? "it is no reference", mend: `give a reference that ${verifier.name} reads` });
  }
  return { key: "chat", prompt, reference: { state: "gold", answer, version: 0 } };
}
