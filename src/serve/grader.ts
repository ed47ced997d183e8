/** Verdicts for whoever asks over HTTP: judged where the verifier is judged in a run, a few answers of each request at a time. */
import type { Problem } from "../core/problem.js";
import { unscored, type Verdict } from "../core/verdict.js";
import { type Verifier, verifierId } from "../verify/contract.js";
import type { JudgePool } from "../verify/pool.js";
import { Refusal } from "./refusal.js";

/** One answer to be judged. */
export interface Given {
  readonly problem: Problem;
  readonly response: string;
  readonly truncated: boolean;
}

export interface GraderOptions {
  readonly verifier: Verifier;
  readonly pool: JudgePool;
  /** Those that may be named by their keys. */
  readonly problems?: readonly Problem[];
}

/** Of one request: a large one then does not stand before the small ones of others. */
const atOnce = 8;
/** Answers in a request. */
const mostAnswers = 8192;

export class Grader {
  /** Name and hash of the verifier. */
  readonly id: string;
  readonly needsReference: boolean;
  readonly problems: readonly Problem[];
  private readonly byKey: ReadonlyMap<string, Problem>;
  /** Verdicts so far, by their kind. */
  readonly counts = { accept: 0, reject: 0, partial: 0, unscored: 0 };

  constructor(private readonly options: GraderOptions) {
    this.id = verifierId(options.verifier);
    this.needsReference = options.verifier.needsReference !== false;
    this.problems = options.problems ?? [];
    this.byKey = new Map(this.problems.map((problem) => [problem.key, problem]));
  }

  /** The problem of a key. Throws Refusal where none is served under it. */
  problem(key: string, param: string): Problem {
    const found = this.byKey.get(key);
    if (found !== undefined) return found;
    const served = this.problems.length === 0 ? "this server serves no problems" : `it is none of the ${this.problems.length} that GET /problems lists`;
    throw new Refusal(400, `there is no problem ${JSON.stringify(key.slice(0, 100))}: ${served}; send the reference with the answer`, { param });
  }

  /** One verdict an answer, in their order; what is not judged when the signal is aborted is unscored. */
  async grade(answers: readonly Given[], signal: AbortSignal): Promise<Verdict[]> {
    if (answers.length > mostAnswers) throw new Refusal(413, `${answers.length} answers are too many: send at most ${mostAnswers} at a time`);
    const verdicts: Verdict[] = answers.map(() => unscored("deadline", { evidence: { message: "the request's time was up before it was judged" } }));
    let next = 0;
    let ended = false;
    const lane = async (): Promise<void> => {
      while (next < answers.length && !ended) {
        const at = next++;
        const { problem, response, truncated } = answers[at] as Given;
        const verdict = await this.options.pool.judge(problem, response, truncated);
        if (!ended) verdicts[at] = verdict;
      }
    };
    const up = new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      else signal.addEventListener("abort", () => resolve(), { once: true });
    });
    await Promise.race([Promise.all(Array.from({ length: atOnce }, lane)), up]);
    ended = true;
    for (const { kind } of verdicts) this.counts[kind]++;
    return verdicts;
  }
}
