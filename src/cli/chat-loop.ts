/** The lines of a chat: messages that are answered as they are drawn, and commands. */
import { createInterface, type Interface } from "node:readline";
import { ArgumentError, ConfigError, DataError, EngineError, ModelError } from "../core/errors.js";
import { nearestName } from "../core/options.js";
import { type Message, type Problem, plainContext } from "../core/problem.js";
import { randomKey } from "../core/random.js";
import type { Tokenizer } from "../core/tokenizer.js";
import type { Truncation } from "../core/trajectory.js";
import type { Engine, Sample, SampleRequest } from "../engine/contract.js";
import type { Conversation } from "../rollout/conversation.js";
import { withStopStrings } from "../rollout/stop-strings.js";
import type { ChatJudge } from "./chat-judge.js";
import { Columns } from "./columns.js";
import { failureText } from "./failure.js";
import { type Colours, colours, print } from "./output.js";
import { verdictText } from "./verdict-text.js";

/** One who answers. */
export interface Speaker {
  readonly label: string;
  readonly role: string;
  readonly tokenizer: Tokenizer;
  readonly maxPositions: number;
  readonly stop: readonly string[];
  readonly conversation: Conversation;
}

export interface ChatParts {
  readonly engine: Engine;
  /** One, or two that answer beside each other. */
  readonly speakers: readonly Speaker[];
  readonly judge: ChatJudge;
  readonly decoder: {
    readonly temperature: number;
    readonly greedy: boolean;
    readonly truncation: Truncation | undefined;
    readonly maxTokens: number;
    readonly seed: number;
  };
  readonly json: boolean;
}

const commands = ["verdict", "problem", "reset", "help", "quit"] as const;
const help = "/verdict [REFERENCE], /problem, /reset, /quit; a line that begins with // is a message that begins with /";
const lineFaults = [ConfigError, DataError, ModelError, ArgumentError];
/** Of a terminal that does not say. */
const usualWidth = 80;

/** Reads standard input to its end, /quit, or Ctrl-C between answers. A line that cannot be followed is told, and without a terminal fails the command. */
export async function runChat(parts: ChatParts): Promise<void> {
  const terminal = Boolean(process.stdin.isTTY && process.stdout.isTTY);
  const reader = createInterface({ input: process.stdin, ...(terminal ? { output: process.stdout, prompt: "> " } : {}), terminal });
  const chat = new Chat(parts);
  const onInterrupt = (): void => {
    if (!chat.interrupt()) reader.close();
  };
  reader.on("SIGINT", onInterrupt);
  process.on("SIGINT", onInterrupt);
  try {
    if (terminal) process.stderr.write(`${help}\n`);
    await follow(reader, chat, terminal);
  } finally {
    process.off("SIGINT", onInterrupt);
    reader.close();
  }
}

async function follow(reader: Interface, chat: Chat, terminal: boolean): Promise<void> {
  if (terminal) reader.prompt();
  for await (const line of reader) {
    try {
      if (!(await chat.line(line))) return;
    } catch (error) {
      // What the line asks for cannot be; any other fault is the end of the chat.
      if (!lineFaults.some((kind) => error instanceof kind)) throw error;
      process.stderr.write(`${failureText(error)}\n`);
      if (!terminal) process.exitCode = 1;
    }
    if (terminal) reader.prompt();
  }
}

interface Answer {
  readonly text: string;
  readonly sample: Sample;
}

/** The last question and its answers, one a speaker. */
interface Last {
  readonly asked: Problem | readonly Message[];
  readonly answers: readonly Answer[];
}

/** Who is asked what, and what was answered last. */
export class Chat {
  private readonly paint: Colours = colours(process.stdout);
  private answering: AbortController | undefined;
  private last: Last | undefined;
  private count = 0;

  constructor(private readonly parts: ChatParts) {}

  /** Stops the answer that is being drawn; false where there is none. */
  interrupt(): boolean {
    this.answering?.abort();
    return this.answering !== undefined;
  }

  /** Follows a line; false where the chat ends. Throws ConfigError or DataError for what cannot be followed. */
  async line(line: string): Promise<boolean> {
    if (line.trim() === "") return true;
    if (!line.startsWith("/") || line.startsWith("//")) {
      const content = line.startsWith("//") ? line.slice(1) : line;
      await this.ask([{ role: "user", content }], undefined);
      return true;
    }
    const [, name = "", rest = ""] = /^\/(\S*)\s*(.*)$/s.exec(line) ?? [];
    switch (name) {
      case "quit":
        return false;
      case "help":
        process.stderr.write(`${help}\n`);
        return true;
      case "reset":
        this.reset();
        return true;
      case "problem":
        await this.pose();
        return true;
      case "verdict":
        await this.verdict(rest.trim() === "" ? undefined : rest.trim());
        return true;
      default: {
        const near = nearestName(name, commands);
        throw new ConfigError({ place: `/${name}`, cause: "there is no such command", mend: near === undefined ? help : `did you mean /${near}?` });
      }
    }
  }

  private reset(): void {
    for (const { conversation } of this.parts.speakers) conversation.reset();
    this.last = undefined;
  }

  private async pose(): Promise<void> {
    const problem = await this.parts.judge.problem();
    this.reset();
    if (!this.parts.json) for (const { role, content } of problem.prompt) print(this.paint.dim(`${role}: ${content}`));
    await this.ask(problem.prompt, problem);
  }

  private async ask(messages: readonly Message[], problem: Problem | undefined): Promise<void> {
    const { speakers, json } = this.parts;
    const contexts = speakers.map(({ conversation }) => conversation.asked(messages));
    const requests = speakers.map((speaker, i) => this.request(speaker, contexts[i] as Int32Array));
    const answers = await this.drawn(requests);
    // Kept once all are there: what could not be drawn leaves the conversations as they were.
    answers.forEach(({ sample }, i) => (speakers[i] as Speaker).conversation.answered(contexts[i] as Int32Array, sample.ids));
    this.count++;
    this.last = { asked: problem ?? messages, answers };
    const [only] = answers as [Answer];
    if (json)
      print(
        JSON.stringify({
          prompt_ids: [...(contexts[0] as Int32Array)],
          ids: [...only.sample.ids],
          logprobs: [...only.sample.logp],
          text: only.text,
          stop: only.sample.stop,
        }),
      );
  }

  private request({ role, maxPositions, stop, tokenizer, label }: Speaker, context: Int32Array): SampleRequest {
    const { temperature, greedy, truncation, maxTokens, seed } = this.parts.decoder;
    const room = maxPositions - context.length;
    if (room < 1) {
      throw new DataError({
        place: label,
        cause: `the conversation has ${context.length} tokens, and the model takes ${maxPositions}`,
        mend: "begin a new one with /reset",
      });
    }
    return {
      context: plainContext(context),
      weights: { role },
      temperature,
      greedy,
      ...(truncation && { truncation }),
      maxTokens: Math.min(maxTokens, room),
      stop: { ids: tokenizer.eosIds, strings: stop },
      key: randomKey({ seed, purpose: "chat", turn: this.count }),
    };
  }

  /** One answer a speaker, shown as they are drawn. */
  private async drawn(requests: readonly SampleRequest[]): Promise<Answer[]> {
    const { speakers } = this.parts;
    const show = this.shower();
    const stop = new AbortController();
    this.answering = stop;
    try {
      const answers = await Promise.all(
        speakers.map(async ({ tokenizer }, i): Promise<Answer> => {
          const stream = tokenizer.stream();
          const onToken = (_: number, id: number): boolean => {
            show.push(i, stream.push(id));
            return false;
          };
          let sample: Sample | undefined;
          const draw = withStopStrings((...call) => this.parts.engine.sample(...call), tokenizer);
          for await (const answer of draw([requests[i] as SampleRequest], { signal: stop.signal, onToken })) sample = answer;
          if (sample === undefined) throw new EngineError({ place: "chat", cause: "the engine gave no answer", mend: "start the chat again" });
          show.push(i, stream.end());
          show.end(i);
          return { text: tokenizer.decode(sample.ids), sample };
        }),
      );
      answers.forEach(({ sample }, i) => {
        const note = sample.stop === "length" ? "cut off by --max-tokens, or by the model's length" : sample.stop === "cancelled" ? "stopped" : undefined;
        if (note !== undefined && !this.parts.json) process.stderr.write(`${this.paint.dim(`(${this.named(i)}${note})`)}\n`);
      });
      return answers;
    } finally {
      this.answering = undefined;
    }
  }

  private shower(): { push(speaker: number, text: string): void; end(speaker: number): void } {
    const { speakers, json } = this.parts;
    if (json) return { push: () => undefined, end: () => undefined };
    if (speakers.length === 1) return { push: (_, text) => void process.stdout.write(text), end: () => print("") };
    const columns = new Columns(process.stdout.columns || usualWidth, print);
    speakers.forEach(({ label }, i) => {
      columns.push(i as 0 | 1, `${label}\n\n`);
    });
    return { push: (i, text) => columns.push(i as 0 | 1, text), end: (i) => columns.end(i as 0 | 1) };
  }

  private named(i: number): string {
    return this.parts.speakers.length === 1 ? "" : `${(this.parts.speakers[i] as Speaker).label}: `;
  }

  private async verdict(reference: string | undefined): Promise<void> {
    const { judge, json } = this.parts;
    if (this.last === undefined) throw new ConfigError({ place: "/verdict", cause: "there is no answer yet", mend: "ask something first" });
    const { asked, answers } = this.last;
    for (const [i, { text, sample }] of answers.entries()) {
      const { verdict, answer } = await judge.verdict(asked, text, sample.stop === "length", reference);
      const { elapsedMs: _, ...lasting } = verdict;
      print(json ? JSON.stringify({ verdict: lasting, answer }) : `${this.named(i)}${verdictText(verdict, answer, this.paint)}`);
    }
  }
}
