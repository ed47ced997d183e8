/** `touchstone serve`: verdicts for trainers that people run already, and a policy under OpenAI's interface. */
import { basename } from "node:path";
import { type Command, Option } from "commander";
import { isLoopback, newToken, refuseOpen } from "../core/access.js";
import { ConfigError } from "../core/errors.js";
import { Grader } from "../serve/grader.js";
import { policyRoutes } from "../serve/openai.js";
import { Policy, role } from "../serve/policy.js";
import { rewardRoutes } from "../serve/rewards.js";
import { type Route, type ServeOptions, serve } from "../serve/server.js";
import { loadRequestOf } from "../train/find-model.js";
import { modelHelp } from "../train/model-name.js";
import { verifierId } from "../verify/contract.js";
import { telling } from "../verify/faults.js";
import { startPool } from "../verify/pool.js";
import { refuseUnlessTotal } from "../verify/probe.js";
import { type ChatFlags, chatOf, chatOptions, type StopFlags, stopOption, withChatOfRun } from "./chat-flags.js";
import { positiveNumber, someText, wholeNumber } from "./flags.js";
import { print } from "./output.js";
import { chosenVerifier, type Posed, type ProblemFlags, posedProblems, problemOptions } from "./problems.js";
import { Progress } from "./progress.js";
import { type BaseFlag, baseOption, readModel, startFor } from "./read-model.js";
import { signals } from "./watch.js";

interface ServeFlags extends ProblemFlags, ChatFlags, StopFlags, BaseFlag {
  readonly port: number;
  readonly host?: string;
  readonly token?: string | true;
  readonly name?: string;
  readonly seed: number;
  readonly threads?: number;
  readonly verifierWorkers: number;
  readonly deadline: number;
  readonly maxBody: number;
}

const usualPort = 7400;
/** Problems of a task unless --n-problems says otherwise. */
const ofTask = 1000;

export function define(command: Command): void {
  command.usage("[MODEL] [options]").argument("[model]", `policy to be served: ${modelHelp}`);
  baseOption(stopOption(chatOptions(problemOptions(command))))
    .option("--name <text>", "what requests call the model (default: the folder's or run's name)", someText("--name"))
    .option("--port <number>", "port; 0 takes any that is free", wholeNumber("--port", 0), usualPort)
    .option("--host <address>", "address to listen at; another than 127.0.0.1 lets others in, who need the token", someText("--host"))
    .addOption(new Option("--token [text]", "ask for a token; without a text one is made (default with --host)").env("TOUCHSTONE_SERVE_TOKEN"))
    .option("--seed <number>", "chooses the problems of a task", wholeNumber("--seed", 0), 0)
    .option("--threads <count>", "threads of one engine process (default: what suits the model's size)", wholeNumber("--threads", 1))
    .option("--verifier-workers <count>", "threads that judge", wholeNumber("--verifier-workers", 0), 1)
    .option("--deadline <seconds>", "until a request is answered; verdicts that are not there then are unscored", positiveNumber("--deadline"), 300)
    .option("--max-body <MB>", "largest request", positiveNumber("--max-body"), 8)
    .addHelpText(
      "after",
      `
With a task, a data file or a verifier it judges: POST /reward (plain JSON), /openrlhf and /verl; GET /problems lists the
problems. With MODEL it answers: /v1/chat/completions and /v1/completions, streamed or whole; GET /v1/models. An answer
without a score is null, and where a trainer knows numbers alone the request fails with status 503; it never is 0.
Ctrl-C takes nothing new and finishes what is under way; once more ends at once. docs/serve.md has clients and formats.

Examples:
  $ touchstone serve --verifier math
  $ touchstone serve --task chain --port 0
  $ touchstone serve runs/first@best --name first
  $ touchstone serve --data train.jsonl --split train --verifier number --host 0.0.0.0 --token`,
    )
    .action(serveAll);
}

type End = () => Promise<void>;

async function serveAll(model: string | undefined, flags: ServeFlags): Promise<void> {
  const judges = flags.task !== undefined || flags.data !== undefined || flags.verifier !== undefined;
  if (model === undefined && !judges) {
    throw new ConfigError({
      place: "touchstone serve",
      cause: "there is nothing to be served",
      mend: "name a MODEL, or a verifier by --task, --data or --verifier",
    });
  }
  const { host = "127.0.0.1", port, token } = flags;
  const secret = token === true || (token === undefined && !isLoopback(host)) ? newToken() : token || undefined;
  if (secret !== undefined && !/^[!-~]+$/.test(secret)) {
    throw new ConfigError({
      place: "option --token",
      cause: "it has blanks or characters that no header carries",
      mend: "give letters, digits and signs, or --token alone, which makes one",
    });
  }
  refuseOpen(host, secret);
  const progress = new Progress({ label: "serve", silent: false });
  const ends: End[] = [];
  const lost = new Lost();
  const closeAll = async (): Promise<void> => void (await Promise.all(ends.splice(0).map((end) => end())));
  try {
    const routes: Route[] = [];
    const lines: string[] = [];
    if (judges) await addVerifier(flags, { routes, lines, ends, progress });
    if (model !== undefined) await addPolicy(model, withChatOfRun(model, flags), { routes, lines, ends, progress }, lost);
    const options: ServeOptions = {
      routes: [health(routes), ...routes],
      host,
      port,
      ...(secret !== undefined && { token: secret }),
      mostBytes: Math.round(flags.maxBody * 2 ** 20),
    };
    const served = await serve(options);
    progress.end();
    for (const line of lines) process.stderr.write(`${line}\n`);
    if (secret !== undefined) process.stderr.write(`Token: ${secret}\n`);
    print(served.address);
    await Promise.race([interrupted(), lost.told]);
    if (served.open > 0) process.stderr.write(`Finishing ${served.open} ${served.open === 1 ? "request" : "requests"}; once more ends at once.\n`);
    await served.close();
    lost.throwIfTold();
  } finally {
    progress.end();
    await closeAll();
  }
}

interface Parts {
  readonly routes: Route[];
  readonly lines: string[];
  readonly ends: End[];
  readonly progress: Progress;
}

async function addVerifier(flags: ServeFlags, { routes, lines, ends, progress }: Parts): Promise<void> {
  const posed = await posedFor(flags);
  for (const note of posed.notes ?? []) lines.push(`note: ${note}`);
  if (posed.environment !== undefined) {
    throw new ConfigError({
      place: `task ${flags.task}`,
      cause: "its answers take several turns, which a reward over HTTP does not see",
      mend: "serve a task of one turn, or a verifier",
    });
  }
  const { verifier, source, problems = [] } = posed;
  progress.waitFor("the verifiers");
  const pool = await startPool({
    verifier,
    workers: source === undefined ? 0 : flags.verifierWorkers,
    ...(source && { source }),
    deadlineMs: flags.deadline * 1000,
  });
  ends.push(() => pool.close());
  if (problems[0] !== undefined) await refuseUnlessTotal(problems[0], verifier, (...asked) => pool.judge(...asked));
  const told = telling(pool, verifier.name, (text) => process.stderr.write(`${text}\n`));
  const grader = new Grader({ verifier, pool: told, problems });
  routes.push(...rewardRoutes(grader, flags.deadline * 1000));
  lines.push(`Judging by ${verifierId(verifier)}${problems.length > 0 ? `, with ${problems.length} problems` : ""}.`);
}

/** A verifier alone has no problems: references come with the answers. */
async function posedFor(flags: ServeFlags): Promise<Pick<Posed, "verifier" | "source" | "environment"> & Partial<Pick<Posed, "problems" | "notes">>> {
  if (flags.task !== undefined || flags.data !== undefined)
    return posedProblems(flags, flags.seed, flags.task === undefined ? Number.MAX_SAFE_INTEGER : ofTask);
  const chosen = await chosenVerifier(flags);
  if (chosen !== undefined) return chosen;
  throw new ConfigError({ place: "touchstone serve", cause: "no verifier is named", mend: "give --verifier" });
}

/** An engine that is gone: the server ends then, so that whoever watches over it can start it again. */
class Lost {
  private error: unknown;
  private tell: () => void = () => undefined;
  readonly told = new Promise<void>((resolve) => {
    this.tell = resolve;
  });

  readonly by = (error: unknown): void => {
    this.error ??= error;
    this.tell();
  };

  throwIfTold(): void {
    if (this.error !== undefined) throw this.error;
  }
}

async function addPolicy(text: string, flags: ServeFlags, { routes, lines, ends, progress }: Parts, lost: Lost): Promise<void> {
  const { model, tokenizer, config } = await readModel(text, flags, chatOf(flags), false);
  progress.waitFor("the engine");
  const engine = await startFor(config, flags.threads);
  ends.push(() => engine.close());
  progress.waitFor("the model");
  await engine.weights.load(loadRequestOf(model, role));
  const name = flags.name ?? (model.run ? `${basename(model.run.reader.folder)}@${model.run.step}` : basename(model.adapter ?? model.folder));
  const policy = new Policy({ engine, tokenizer, name, maxTokens: config.maxPositions, onLost: lost.by, ...(flags.stop && { stops: flags.stop }) });
  routes.push(...policyRoutes(policy, flags.deadline * 1000));
  lines.push(`Serving ${text} as ${JSON.stringify(name)} under /v1.`);
}

/** For whoever wants to know whether it is there. */
const health = (routes: readonly Route[]): Route => ({
  method: "GET",
  path: "/health",
  deadlineMs: 1000,
  answer: async () => ({ status: "ok", routes: routes.map(({ method, path }) => `${method} ${path}`) }),
});

/** Resolves at the first signal to end; from then on signals do what they do by themselves. */
const interrupted = (): Promise<void> =>
  new Promise((stop) => {
    for (const signal of signals) process.once(signal, () => stop());
  });
