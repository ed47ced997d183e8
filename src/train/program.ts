/** What decides prompts and rewards, as a resume compares it: identities of the verifiers, and the files of programs that a user wrote. */
import { isModulePath } from "../core/load.js";
import { programFiles } from "../core/program.js";
import { type Verifier, verifierId } from "../verify/contract.js";
import { isOutside } from "../verify/reward/outside.js";
import { type Part, partOf, type TrainConfig } from "./config.js";
import type { RunMeta } from "./store/schema.js";

type Files = { readonly [path: string]: string };

/** The files of the program that a name of a task or verifier means, if it means one. */
export function fileOf(part: Part | undefined): Files {
  const name = part === undefined ? "" : partOf(part).name;
  const [, python] = /^python:(.+\.py):\w+$/s.exec(name) ?? [];
  if (python !== undefined) return programFiles(python);
  return isModulePath(name) && !isOutside(name) ? programFiles(name) : {};
}

/** By what it is; `own`: the task was made in the calling program, whose files are not known. */
export function programOf(
  { task, verifier, eval: evaluation, chat_template, tools }: Pick<TrainConfig, "task" | "verifier" | "eval" | "chat_template" | "tools">,
  judges: { readonly training: Verifier; readonly evaluation: Verifier | undefined },
  own: boolean,
): NonNullable<RunMeta["program"]> {
  const identity = (judge: Verifier, part: Part | undefined): Files => ({ ...fileOf(part), "its name, version or options": verifierId(judge) });
  const ofTask = own ? {} : fileOf(task);
  const templates = { ...(chat_template !== undefined && programFiles(chat_template)), ...(tools !== undefined && programFiles(tools)) };
  return {
    ...(Object.keys(templates).length > 0 && { prompts: templates }),
    ...(Object.keys(ofTask).length > 0 && { task: ofTask }),
    verifier: identity(judges.training, verifier),
    ...(judges.evaluation && judges.evaluation !== judges.training && { "verifier of evaluation": identity(judges.evaluation, evaluation.verifier) }),
  };
}
