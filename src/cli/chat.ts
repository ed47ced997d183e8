/** `touchstone chat`: a conversation with a policy in the terminal, or with two side by side, with verdicts on request. */
import type { Command } from "commander";
import { ConfigError } from "../core/errors.js";
import { Conversation } from "../rollout/conversation.js";
import { loadRequestOf } from "../train/find-model.js";
import { modelHelp } from "../train/model-name.js";
import { type ChatFlags, chatOf, chatOptions, type StopFlags, stopOption, withChatOfRun } from "./chat-flags.js";
import { ChatJudge } from "./chat-judge.js";
import { runChat, type Speaker } from "./chat-loop.js";
import { positiveNumber, someText, wholeNumber } from "./flags.js";
import { type TruncationFlags, truncationOf, truncationOptions } from "./measure.js";
import { type ProblemFlags, problemOptions, withProblemsOfRun } from "./problems.js";
import { Progress } from "./progress.js";
import { type BaseFlag, baseOption, type ReadModel, readModel, refuseUnlessRoom, startFor } from "./read-model.js";

interface TalkFlags extends ProblemFlags, TruncationFlags, ChatFlags, StopFlags, BaseFlag {
  readonly against?: string;
  readonly temperature: number;
  readonly greedy?: true;
  readonly maxTokens: number;
  readonly seed: number;
  readonly threads?: number;
  readonly json?: true;
}

export function define(command: Command): void {
  command
    .usage("MODEL [options]")
    .argument("<model>", modelHelp)
    .option("--against <model>", "a second one, which answers the same messages beside it", someText("--against"))
    .option("--temperature <number>", "of the distribution drawn from", positiveNumber("--temperature"), 1)
    .option("--greedy", "the most likely token each time instead of a draw");
  baseOption(problemOptions(stopOption(chatOptions(truncationOptions(command)))))
    .option("--max-tokens <count>", "budget of an answer", wholeNumber("--max-tokens", 1), 512)
    .option("--seed <number>", "of the draws and the problems", wholeNumber("--seed", 0), 0)
    .option("--threads <count>", "threads of one engine process (default: what suits the model's size)", wholeNumber("--threads", 1))
    .option("--json", "print one JSON object an answer")
    .addHelpText(
      "after",
      `
A line is a message; Ctrl-C stops the answer, and between answers the chat. Without a terminal the lines of standard input
are answered one after another. What was sampled stays in the conversation token by token, a stopped answer too.

In the chat:
  /verdict [REFERENCE]  judge the last answer: of a posed problem, or with a reference of your own (--verifier, or the run's)
  /problem              pose the next problem of the task (--task, --data, or the run's) in a new conversation
  /reset                begin a new conversation
  /help, /quit          a line that begins with // is a message that begins with /

Examples:
  $ touchstone chat my-model --verifier number
  $ touchstone chat runs/first@best --against runs/first@first --temperature 0.7 --top-p 0.95
  $ printf 'What is 7 + 5?\\n/verdict 12\\n' | touchstone chat HuggingFaceTB/SmolLM2-135M-Instruct --verifier number --greedy`,
    )
    .action((model: string, flags: TalkFlags) => talk(model, withProblemsOfRun(model, flags)));
}

async function talk(name: string, flags: TalkFlags): Promise<void> {
  const { against, temperature, greedy = false, maxTokens, seed, threads, json = false } = flags;
  if (against !== undefined && json)
    throw new ConfigError({ place: "option --against", cause: "--json prints one answer a message", mend: "leave out one of the two" });
  const truncation = truncationOf(flags);
  const names = against === undefined ? [name] : [name, against];
  const all: ({ readonly name: string; readonly stop: readonly string[] } & ReadModel)[] = [];
  for (const each of names) {
    const own = withChatOfRun(each, flags);
    // --base belongs to the model that is named first.
    const read = await readModel(each, all.length === 0 ? flags : {}, chatOf(own), json);
    refuseWithoutTurns(each, read);
    refuseUnlessRoom(read.config, Math.min(read.config.maxPositions, 2 * maxTokens), each);
    all.push({ name: each, stop: own.stop ?? [], ...read });
  }
  const progress = new Progress({ label: "chat", silent: json });
  progress.waitFor("the engine");
  const engine = await startFor((all[0] as ReadModel).config, threads).catch((error: unknown) => {
    progress.end();
    throw error;
  });
  const judge = new ChatJudge(flags, seed);
  try {
    const speakers: Speaker[] = [];
    for (const [i, { name: label, model, tokenizer, config, stop }] of all.entries()) {
      progress.waitFor(`the model ${label}`);
      const role = i === 0 ? "policy" : "against";
      await engine.weights.load(loadRequestOf(model, role));
      speakers.push({ label, role, tokenizer, maxPositions: config.maxPositions, stop, conversation: new Conversation(tokenizer) });
    }
    progress.end();
    await runChat({ engine, speakers, judge, decoder: { temperature, greedy, truncation, maxTokens, seed }, json });
  } finally {
    progress.end();
    await judge.close();
    await engine.close();
  }
}

/** A second message must have a form, which is better told before the first. */
function refuseWithoutTurns(name: string, { tokenizer, model }: ReadModel): void {
  const turns = (["user", "assistant", "user"] as const).map((role) => ({ role, content: "" }));
  try {
    tokenizer.render(turns, { addGenerationPrompt: true });
  } catch (error) {
    throw new ConfigError(
      {
        place: `model ${name}`,
        cause: `a conversation has no form in it (${(error as Error).message})`,
        mend: `give --chat-template FILE, or use touchstone sample ${model.folder} --prompt …`,
      },
      { cause: error },
    );
  }
}
