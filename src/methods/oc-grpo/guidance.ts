/** Guidance: how much of which solution a problem's prompt is given. */
import { DataError } from "../../core/errors.js";
import { type Context, type Problem, placeOfProblem } from "../../core/problem.js";
import type { Lab } from "../contract.js";
import { rewritten } from "../prompts.js";

export interface GuidanceOptions {
  readonly guidance: "solution" | "random" | "none";
  readonly levels: readonly number[];
  readonly continue_prompt: string;
  readonly verify_prompt: string;
}

/** The first share of a text by characters, cut back to where a word ends; all of it for 1. */
export function prefixOf(text: string, share: number): string {
  if (share >= 1) return text;
  const cut = Math.floor(share * text.length);
  const head = text.slice(0, cut);
  const whole = /\s/.test(text[cut] ?? " ") ? head : head.replace(/\S+$/, "");
  return whole.trimEnd();
}

/** Guidance by problem and level. Level 0 is none; level n is the share `levels[n - 1]`. */
export class Guidance {
  /** Of `random`: the solution of the next problem, by key. */
  private others: Map<string, string> | undefined;

  constructor(private readonly options: GuidanceOptions) {}

  /** The text that a problem is given at a level; empty for none. */
  text(problem: Problem, level: number, lab: Lab): string {
    const { guidance, levels } = this.options;
    const share = level === 0 || guidance === "none" ? 0 : (levels[level - 1] ?? 1);
    return share === 0 ? "" : prefixOf(guidance === "random" ? this.other(problem, lab) : solutionOf(problem), share);
  }

  /** The problem's prompt with guidance: a part is to be continued, a whole solution to be checked. */
  context(problem: Problem, level: number, text: string, lab: Lab): Context {
    const { levels, continue_prompt, verify_prompt } = this.options;
    return lab.render(rewritten(problem, (levels[level - 1] ?? 1) >= 1 ? verify_prompt : continue_prompt, { guidance: text }), "guided");
  }

  private other(problem: Problem, { problems }: Lab): string {
    this.others ??= new Map(Array.from({ length: problems.size }, (_, i) => [problems.get(i).key, solutionOf(problems.get((i + 1) % problems.size))]));
    return this.others.get(problem.key) ?? "";
  }
}

/** A problem's worked solution. Throws DataError for one without. */
export function solutionOf(problem: Problem): string {
  const solution = problem.privileged?.solution;
  if (typeof solution === "string" && solution.trim() !== "") return solution;
  throw new DataError({
    place: placeOfProblem(problem),
    cause: "it has no solution, and oc-grpo guides by parts of one",
    mend: "give each problem a `solution` (docs/data.md), or set the method's option guidance to none",
  });
}
