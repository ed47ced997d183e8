/** `touchstone profile`: how often a policy solves each problem, and what asking costs, as a file that training can filter and weight by. */
import { appendFileSync, existsSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { Command } from "commander";
import { ConfigError, RunError } from "../core/errors.js";
import { canonicalJson, hashJson, type Json } from "../core/json.js";
import { refuseUnlessWritable } from "../core/writable.js";
import { evaluate } from "../evaluate/evaluate.js";
import { type ProfileHead, type ProfileLine, problemsHash, profileLines, profileText, profileVersion, readProfile } from "../evaluate/profile.js";
import { hashModel } from "../train/model-files.js";
import { modelHelp } from "../train/model-name.js";
import { fileOf } from "../train/program.js";
import { verifierId } from "../verify/contract.js";
import { type ChatFlags, chatOf, chatOptions, type StopFlags, stopOption, withChatOfRun } from "./chat-flags.js";
import { positiveNumber, wholeNumber } from "./flags.js";
import { type TruncationFlags, truncationOf, truncationOptions } from "./measure.js";
import { print, table } from "./output.js";
import { type Posed, type ProblemFlags, posedProblems, problemOptions } from "./problems.js";
import { type BaseFlag, baseOption } from "./read-model.js";
import { type RemoteFlags, remoteOptions } from "./remote-flags.js";
import { openSession, type Session } from "./session.js";

interface ProfileFlags extends ProblemFlags, TruncationFlags, ChatFlags, StopFlags, BaseFlag, RemoteFlags {
  readonly model: string;
  readonly k: number;
  readonly temperature: number;
  readonly maxTokens?: number;
  readonly seed: number;
  readonly threads?: number;
  readonly verifierWorkers: number;
  readonly out: string;
  readonly json?: true;
}

/** The purpose of its random keys: neither training nor evaluation draws these answers. */
const purpose = "profile";
/** Problems that are sampled together and written together. */
const problemsAtOnce = 64;
/** Problems of a task unless --n-problems says otherwise. */
const ofTask = 1000;

export function define(command: Command): void {
  command.usage("[DATA] --model MODEL [options]").argument("[data]", "JSONL or Parquet file, or data folder; the same as --data");
  const decoder = truncationOptions(
    problemOptions(command)
      .requiredOption("--model <model>", modelHelp)
      .option("--k <count>", "answers a problem", wholeNumber("--k", 1), 8)
      .option("--temperature <number>", "of the distribution drawn from", positiveNumber("--temperature"), 1),
  );
  remoteOptions(baseOption(stopOption(chatOptions(decoder))))
    .option("--max-tokens <count>", "budget of a response (default: the task's, else 256)", wholeNumber("--max-tokens", 1))
    .option("--seed <number>", "chooses problems and answers", wholeNumber("--seed", 0), 0)
    .option("--threads <count>", "threads of one engine process (default: what suits the model's size)", wholeNumber("--threads", 1))
    .option("--verifier-workers <count>", "threads that judge", wholeNumber("--verifier-workers", 0), 1)
    .option("--out <file>", "where the profile is written", "profile.jsonl")
    .option("--json", "print the result as a line of JSON")
    .addHelpText(
      "after",
      `
Of a file all problems are asked, of a task 1,000 that are trained on (or all), unless --split and --n-problems say
otherwise. The file begins with a line on what produced it; then each problem has a line: key, pass (mean score over the
scored answers), accepted, scored, unscored, mean tokens, truncated. What is interrupted goes on with the same command.
Training draws from the whole distribution at temperature 1, and its pass rates are those of a profile drawn alike.
Training takes it with --profile, and --set profile.min_pass, profile.max_pass and profile.weight.

Examples:
  $ touchstone profile problems.jsonl --model my-model --verifier number --k 8 --out profile.jsonl
  $ touchstone profile problems.jsonl --model my-model.gguf --prompt-column question --verifier number --system "Be brief."
  $ touchstone profile --model runs/first@best --task chain --k 4
  $ touchstone train --model my-model --data problems.jsonl --verifier number --profile profile.jsonl --set profile.max_pass=0.9 …`,
    )
    .action(profile);
}

async function profile(data: string | undefined, given: ProfileFlags): Promise<void> {
  if (data !== undefined && given.data !== undefined && data !== given.data) {
    throw new ConfigError({ place: "option --data", cause: `${data} is named too`, mend: "name one file" });
  }
  const flags = withChatOfRun(given.model, withSplit(data === undefined ? given : { ...given, data }));
  const { out, seed, k, json } = flags;
  refuseUnlessNew(out);
  const posed = await posedProblems(flags, seed, flags.task === undefined ? Number.MAX_SAFE_INTEGER : ofTask);
  const { problems } = posed;
  const line = { label: "profiling", total: problems.length * k, silent: json === true };
  const started = performance.now();
  const session = await openSession({ model: flags.model, posed, flags, line });
  let lines: readonly ProfileLine[];
  try {
    for (const note of posed.notes) session.progress.say(`note: ${note}`);
    lines = await profiled(session, posed, flags);
  } finally {
    await session.close();
  }
  renameSync(partOf(out), out);
  report(flags, lines, performance.now() - started);
}

/** Training's problems: those of a task's split, and all of a file unless a part of it is held out. */
function withSplit(flags: ProfileFlags): ProfileFlags {
  const { split, task, dataOptions = {} } = flags;
  const held = dataOptions.eval_split !== undefined || dataOptions.eval_share !== undefined;
  return split === undefined && (task !== undefined || held) ? { ...flags, split: "train" } : flags;
}

const partOf = (file: string): string => `${file}.part`;

function refuseUnlessNew(out: string): void {
  if (existsSync(out)) throw new ConfigError({ place: `option --out ${out}`, cause: "it exists", mend: "give a new name, or remove it" });
  refuseUnlessWritable(dirname(resolve(out)));
}

/** Asks the problems that are not in the file yet, some at a time; each answer depends on its problem and the seed alone. */
async function profiled(session: Session, posed: Posed, flags: ProfileFlags): Promise<readonly ProfileLine[]> {
  const { engine, pool, environment, tokenizer, maxTokens, model, remote, progress } = session;
  const { k, temperature, seed, out, stop } = flags;
  const { problems, verifier, task } = posed;
  const { place: _, ...chat } = chatOf(flags);
  const truncation = truncationOf(flags);
  const program = Object.fromEntries(
    Object.entries({ task: fileOf(flags.task), verifier: fileOf(flags.verifier) }).filter(([, files]) => Object.keys(files).length > 0),
  );
  const head: ProfileHead = {
    touchstone_profile: profileVersion,
    model: remote ?? flags.model,
    // Of a server's weights nothing is known but how they are called.
    model_sha256: remote === undefined ? await hashModel(model) : hashJson({ remote }),
    tokenizer: tokenizer.id,
    ...(task && { task }),
    verifier: verifierId(verifier),
    ...(Object.keys(program).length > 0 && { program }),
    k,
    temperature,
    ...(truncation && { truncation }),
    max_tokens: maxTokens,
    ...(stop && { stop: [...stop] }),
    ...(Object.keys(chat).length > 0 && { chat: hashJson(chat as Json) }),
    seed,
    problems: problems.length,
    problems_sha256: problemsHash(problems),
  };
  const lines = begun(partOf(out), head);
  const sums = { accepted: 0, scored: 0 };
  const add = (line: ProfileLine): void => {
    sums.accepted += line.accepted;
    sums.scored += line.scored;
  };
  lines.forEach(add);
  if (lines.length > 0) progress.say(`going on after ${lines.length} of ${problems.length} problems`);
  const note = (accepted: number, scored: number): string => (scored === 0 ? "" : `accepted ${((100 * accepted) / scored).toFixed(1)} %`);
  for (let first = lines.length; first < problems.length; first += problemsAtOnce) {
    const { samples } = await evaluate(engine, {
      weights: { role: "policy" },
      problems: problems.slice(first, first + problemsAtOnce),
      verifier,
      judge: (problem, response, truncated) => pool.judge(problem, response, truncated),
      ...(environment && { environment }),
      tokenizer,
      n: k,
      k: [1],
      temperature,
      ...(truncation && { truncation }),
      maxTokens,
      ...(stop && { stop }),
      seed,
      purpose,
      onProgress: ({ done, accepted, scored }) => progress.at(first * k + done, note(sums.accepted + accepted, sums.scored + scored)),
    });
    const fresh = profileLines(samples);
    appendFileSync(partOf(out), fresh.map(profileText).join(""));
    fresh.forEach(add);
    lines.push(...fresh);
  }
  return lines;
}

/** What an interrupted profile has of the same conditions; it is cut after its last whole line. */
function begun(part: string, head: ProfileHead): ProfileLine[] {
  if (!existsSync(part)) {
    mkdirSync(dirname(part), { recursive: true });
    writeFileSync(part, profileText(head));
    return [];
  }
  const earlier = readProfile(part, true);
  const differing = Object.keys({ ...head, ...earlier.head }).filter((name) =>
    differ(head[name as keyof ProfileHead], earlier.head[name as keyof ProfileHead]),
  );
  if (differing.length > 0) {
    throw new RunError({
      place: part,
      cause: `it was begun under other conditions (${differing.join(", ")})`,
      mend: "repeat the command that began it, remove it, or give another --out",
      data: { differing },
    });
  }
  writeFileSync(part, profileText(head) + earlier.lines.map(profileText).join(""));
  return [...earlier.lines];
}

const differ = (a: unknown, b: unknown): boolean => canonicalJson((a ?? null) as Json) !== canonicalJson((b ?? null) as Json);

function report({ out, json }: ProfileFlags, lines: readonly ProfileLine[], wallMs: number): void {
  const known = lines.flatMap(({ pass }) => pass ?? []);
  const sum = (of: (line: ProfileLine) => number): number => lines.reduce((total, line) => total + of(line), 0);
  const counts = {
    never: known.filter((pass) => pass === 0).length,
    sometimes: known.filter((pass) => pass > 0 && pass < 1).length,
    always: known.filter((pass) => pass === 1).length,
    unscored: lines.length - known.length,
  };
  const pass = known.length === 0 ? null : known.reduce((a, b) => a + b, 0) / known.length;
  const tokens = sum((line) => line.tokens) / lines.length;
  const unscored = sum((line) => line.unscored);
  if (json) {
    print(JSON.stringify({ out, problems: lines.length, pass, ...counts, unscored_answers: unscored, tokens, wall_s: wallMs / 1000 }));
    return;
  }
  const share = (n: number): string => `${((100 * n) / lines.length).toFixed(1)} %`;
  const rows = Object.entries(counts).filter(([name, n]) => name !== "unscored" || n > 0);
  print(table([["solved", "problems", "share"], ...rows.map(([name, n]) => [name, String(n), share(n)])], [1, 2]).join("\n"));
  print(
    `\n${lines.length} problems: pass ${pass === null ? "unknown" : `${(100 * pass).toFixed(1)} %`}, ${tokens.toFixed(1)} tokens an answer, ${unscored} answers unscored; ${(wallMs / 1000).toFixed(1)} s`,
  );
  print(`The profile is in ${out}: touchstone train … --profile ${out} --set profile.min_pass=0.05 --set profile.max_pass=0.95`);
}
