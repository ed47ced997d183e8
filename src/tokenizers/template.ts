/**
 * Chat templates as model folders carry them (Jinja), rendered to text. What a user, a tool or a data set writes never
 * becomes a special token: such strings are replaced by markers before the template sees them.
 */
import { Environment, Interpreter, parse, tokenize } from "@huggingface/jinja";
import { ModelError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import type { Message } from "../core/problem.js";

/** What a run gives to the template beside the messages. */
export interface TemplateOptions {
  /** `chat_template_kwargs`: variables of the template, such as `enable_thinking: false`. */
  readonly kwargs?: { readonly [name: string]: Json };
  /** Functions that the policy may call, as JSON schemas. */
  readonly tools?: readonly Json[];
  /** A system message before conversations that begin without one. */
  readonly system?: string;
}

/** A rendered conversation, in pieces: text of the template and of messages, where strings that look like special tokens stand as `typed`. */
export type Piece = { readonly text: string } | { readonly typed: string };

/** Brackets a marker; private-use characters that no text in practice has, and that a text is searched for. */
const open = "\uf8f1";
const close = "\uf8f2";
const marker = new RegExp(`${open}(\\d+)${close}`);

/**
 * What every template may use. `strftime_now` is left out on purpose: a date in the prompt would make two runs of one
 * configuration differ, and templates that look for it have a fixed date for when it is not there.
 */
const globals: { readonly [name: string]: unknown } = {
  false: false,
  true: true,
  none: null,
  False: false,
  True: true,
  None: null,
  raise_exception: (message: unknown): never => {
    throw new Error(String(message));
  },
  range: (...bounds: readonly number[]): number[] => {
    const [start, end, step] = bounds.length === 1 ? [0, bounds[0] as number, 1] : [bounds[0] as number, bounds[1] as number, bounds[2] ?? 1];
    return Array.from({ length: Math.max(0, Math.ceil((end - start) / step)) }, (_, i) => start + i * step);
  },
};

export class ChatTemplate {
  private readonly program: ReturnType<typeof parse>;
  private checked = false;

  /** Throws ModelError, naming `place`, for a template that cannot be parsed. `tokens` are bos_token, eos_token and their like. */
  constructor(
    source: string,
    private readonly place: string,
    private readonly specials: readonly string[],
    private readonly tokens: { readonly [name: string]: string },
    private readonly options: TemplateOptions = {},
  ) {
    try {
      this.program = parse(tokenize(source, { lstrip_blocks: true, trim_blocks: true }));
    } catch (error) {
      throw new ModelError(
        { place, cause: `the chat template cannot be parsed (${said(error)})`, mend: "take the template that belongs to the model, or give another one" },
        { cause: error },
      );
    }
  }

  /** The conversation in pieces. Throws ModelError where the template refuses it, or does not keep what it rendered before (once). */
  render(messages: readonly Message[], addGenerationPrompt: boolean): Piece[] {
    if (!this.checked) this.check();
    return this.pieces(messages, addGenerationPrompt);
  }

  private pieces(messages: readonly Message[], addGenerationPrompt: boolean): Piece[] {
    const typed: string[] = [];
    const { system } = this.options;
    const all = system !== undefined && messages[0]?.role !== "system" ? [{ role: "system" as const, content: system }, ...messages] : messages;
    const marked = all.map((message) => ({ ...message, content: this.marked(message.content, typed) }));
    const text = this.run(marked, addGenerationPrompt);
    if (typed.length === 0) return [{ text }];
    return text.split(marker).map((piece, i) => (i % 2 === 0 ? { text: piece } : { typed: typed[Number(piece)] as string }));
  }

  /** The text with each string that looks like a special token, or like a marker, as a marker. */
  private marked(text: string, typed: string[]): string {
    const searched = [...this.specials, open, close];
    let out = "";
    for (let at = 0; at < text.length; ) {
      const found = searched.find((special) => text.startsWith(special, at));
      if (found === undefined) {
        out += text[at++];
        continue;
      }
      out += `${open}${typed.length}${close}`;
      typed.push(found);
      at += found.length;
    }
    return out;
  }

  private run(messages: readonly Message[], addGenerationPrompt: boolean): string {
    const { kwargs, tools } = this.options;
    try {
      const environment = new Environment();
      const variables = {
        ...globals,
        ...this.tokens,
        ...(tools === undefined ? {} : { tools }),
        ...kwargs,
        messages,
        add_generation_prompt: addGenerationPrompt,
      };
      for (const [name, value] of Object.entries(variables)) environment.set(name, value);
      return String(new Interpreter(environment).run(this.program).value);
    } catch (error) {
      const roles = messages.map(({ role }) => role).join(", ");
      throw new ModelError(
        {
          place: this.place,
          cause: `the chat template refuses a conversation of ${roles || "no messages"} (${said(error)})`,
          mend: "change the messages, or give another template",
        },
        { cause: error },
      );
    }
  }

  /** An answer must follow the prompt that was rendered for it, or what is trained is not what was sampled. */
  private check(): void {
    const asked: readonly Message[] = [{ role: "user", content: "question" }];
    const prompt = textOf(this.pieces(asked, true));
    const whole = textOf(this.pieces([...asked, { role: "assistant", content: "reply" }], false));
    if (!whole.startsWith(prompt) || !whole.slice(prompt.length).includes("reply")) {
      throw new ModelError({
        place: this.place,
        cause: `the chat template's round trip breaks: the prompt for an answer is ${excerpt(prompt)}, and with the answer it renders ${excerpt(whole)}`,
        mend: "give a template in which the answer follows its prompt unchanged",
        data: { prompt, whole },
      });
    }
    this.checked = true;
  }
}

const textOf = (pieces: readonly Piece[]): string => pieces.map((piece) => ("text" in piece ? piece.text : piece.typed)).join("");
const excerpt = (text: string): string => JSON.stringify(text.length <= 60 ? text : `… ${text.slice(-60)}`);
const said = (error: unknown): string => (error instanceof Error ? error.message : String(error)).replaceAll("\n", " ");
