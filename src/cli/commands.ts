/** The commands of `touchstone`: one line here and one file each, loaded only when it is asked for. */
import type { Command } from "commander";

export interface CommandEntry {
  readonly name: string;
  readonly summary: string;
  /** `define` adds options, help and action to the command. */
  readonly load: () => Promise<{ readonly define: (command: Command) => void }>;
}

export const commands: readonly CommandEntry[] = [
  { name: "start", summary: "the main job: a small policy unlearns a misconception by GRPO", load: () => import("./start.js") },
  { name: "init", summary: "a folder with a task of your own, which trains at once", load: () => import("./init.js") },
  { name: "train", summary: "reinforcement on verified answers, by GRPO and its kin", load: () => import("./train.js") },
  { name: "sft", summary: "supervised training, on pairs, worked solutions or accepted rollouts", load: () => import("./sft.js") },
  { name: "doctor", summary: "what this machine can do, and whether it computes right", load: () => import("./doctor.js") },
  { name: "show", summary: "a run in the terminal: curve, evaluations, last step", load: () => import("./show.js") },
  { name: "view", summary: "runs as a page in the browser: curves, rollouts, comparisons", load: () => import("./view.js") },
  { name: "compare", summary: "runs, or methods over seeds, with paired differences and intervals", load: () => import("./compare.js") },
  { name: "eval", summary: "how often a policy is right: pass@k and maj@k with intervals", load: () => import("./eval.js") },
  { name: "sample", summary: "responses of a policy with their verdicts, or what follows a text", load: () => import("./sample.js") },
  { name: "score", summary: "log-probs of given texts, their mean and perplexity", load: () => import("./score.js") },
  { name: "chat", summary: "talk with a policy in the terminal, with verdicts, or with two side by side", load: () => import("./chat.js") },
  { name: "export", summary: "a model as a GGUF file, or as a folder that transformers.js runs", load: () => import("./export.js") },
  { name: "verify", summary: "what a verifier says of an answer, or of a file of them, and why", load: () => import("./verify.js") },
  { name: "audit", summary: "how often a verifier is wrong on answers known to be right, or wrong", load: () => import("./audit.js") },
  { name: "profile", summary: "how often a policy solves each problem, to filter and weight them by", load: () => import("./profile.js") },
  { name: "methods", summary: "the methods and papers: slots, options, needs, what was shown", load: () => import("./methods.js") },
  { name: "reproduce", summary: "what a paper claims, over paired seeds: shown, not shown or reversed", load: () => import("./reproduce.js") },
  { name: "serve", summary: "verdicts for other trainers over HTTP, and a policy under OpenAI's interface", load: () => import("./serve.js") },
  { name: "engine", summary: "serve an engine to other processes or machines", load: () => import("./engine.js") },
];
