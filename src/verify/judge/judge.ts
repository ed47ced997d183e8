/**
 * The verifier `judge`: a model behind any OpenAI-compatible server says what an answer is worth, as a word or a number that
 * was declared. A judge that cannot be reached, is late, refuses or says anything else leaves the answer unscored, never 0.
 */
import { z } from "zod";
import { ConfigError } from "../../core/errors.js";
import { Http } from "../../core/http.js";
import type { Json } from "../../core/json.js";
import { canonicalJson } from "../../core/json.js";
import { readJson } from "../../core/json-text.js";
import { parseOptions } from "../../core/options.js";
import { CallFault, Patient } from "../../core/patient.js";
import { accept, partial, unscored, type Verdict } from "../../core/verdict.js";
import { rejectFor, type Verifier, type VerifierInput } from "../contract.js";
import { afterThinking, thinkingSchema } from "../extract.js";
import { askedFor, type Judged, plain, type ReplyForm, readReply } from "./reply.js";
import { defaultPrompt, filled, placeholdersOf, problemText } from "./template.js";

export const judgeOptions = z.strictObject({
  base_url: z.string().min(1).describe("Below which the server's interface lies, with its version: `http://127.0.0.1:8000/v1`."),
  model: z.string().min(1).describe("How the server calls the judge."),
  key_env: z.string().min(1).optional().describe("Environment variable with the server's key."),
  prompt: z
    .string()
    .min(1)
    .default(defaultPrompt)
    .describe("What the judge is asked, with {{problem}}, {{reference}}, {{response}}, {{answers}} and {{fence}}."),
  system: z.string().min(1).optional().describe("A system message before it."),
  words: z
    .record(z.string().min(1), z.number().min(0).max(1))
    .optional()
    .describe("The words that it may answer with, and their scores; without it and range: correct 1, incorrect 0."),
  range: z
    .tuple([z.number(), z.number()])
    .refine(([low, high]) => low < high, "the first number must be below the second")
    .optional()
    .describe("It answers with a number: what is worth 0, and what is worth 1."),
  field: z.string().min(1).optional().describe("It replies with a JSON object, and this entry is its answer; absent: the reply is the answer."),
  thinking: thinkingSchema.default("tags").describe("How thinking parts of responses are known; the judge is shown what comes behind them."),
  judge_thinking: thinkingSchema.default("tags").describe("The same of its own replies."),
  longest: z.int().min(1).default(100_000).describe("Characters of a response; a longer one is rejected without asking."),
  temperature: z.number().min(0).max(2).nullable().default(0).describe("null: it is not sent."),
  max_tokens: z.int().min(1).nullable().default(1024).describe("Of a reply, its thinking included; null: it is not sent."),
  body: z.record(z.string(), z.json()).default({}).describe("Further fields of the request, such as response_format."),
  deadline_ms: z.int().min(1).default(60_000).describe("Of one try."),
  retries: z.int().min(0).max(100).default(3).describe("Further tries where a fault may pass (no connection, time-out, 408, 429, 5xx)."),
  concurrency: z.int().min(1).max(256).default(16).describe("Requests under way at once."),
});
export type JudgeOptions = z.output<typeof judgeOptions>;

const place = "judge()";
/** Fields of the request that are said elsewhere. */
const own = ["model", "messages", "temperature", "max_tokens", "n", "stream"];
/** Longest text that a verdict carries of a reply. */
const longestEvidence = 500;

/** The verifier `judge`, with its options; nothing is asked yet. Throws ConfigError for options that cannot be meant. */
export function judge(options: z.input<typeof judgeOptions>): Verifier {
  const resolved = parseOptions(judgeOptions, options, place);
  const { base_url, key_env, deadline_ms, retries, concurrency, ...meant } = resolved;
  const form = formOf(resolved);
  const shown = placeholdersOf(resolved.prompt, `${place}, option prompt`);
  const doubled = Object.keys(resolved.body).find((name) => own.includes(name));
  if (doubled !== undefined)
    throw new ConfigError({
      place: `${place}, option body.${doubled}`,
      cause: "it is sent already",
      mend: ["n", "stream"].includes(doubled) ? "leave it out" : `use the option ${doubled === "messages" ? "prompt" : doubled}`,
    });
  const key = key_env === undefined ? undefined : process.env[key_env]?.trim();
  if (key_env !== undefined && !key)
    throw new ConfigError({
      place: `${place}, option key_env`,
      cause: `there is no environment variable ${key_env}`,
      mend: "set it to the server's key, or leave the option out",
    });
  const http = new Http(base_url, { place: `${place}, option base_url`, ...(key !== undefined && { headers: { authorization: `Bearer ${key}` } }) });
  const calls = new Patient(http, { concurrency, deadlineMs: deadline_ms, retries }, `judge ${resolved.model} at ${http.base.origin}`);
  let faults = 0;
  return {
    name: "judge",
    version: "1",
    // What decides a verdict: the server too, since another one may call another model by the same name.
    options: { base_url, ...meant } as unknown as { readonly [name: string]: Json },
    deterministic: "judge",
    needsReference: shown.has("reference"),
    checkReference: (reference) => (reference === null || reference === "" ? "it is empty" : undefined),
    external: {
      get faults() {
        return faults;
      },
      close: async () => http.close(),
    },
    async verify(input): Promise<Verdict> {
      if (input.response.length > resolved.longest) return rejectFor("over-budget", { evidence: { characters: input.response.length } });
      const response = afterThinking(input.response, resolved.thinking);
      if (response === undefined) return rejectFor(input.truncated ? "truncated" : "unfinished-thinking");
      try {
        return verdictOf(await asked(calls, resolved, form, { ...input, response }));
      } catch (error) {
        if (!(error instanceof CallFault)) throw error;
        faults++;
        return unscored(error.reason === "refused" || error.reason === "limited" ? "failed" : error.reason, { evidence: { message: error.message } });
      }
    },
  };
}

function formOf({ words, range, field, judge_thinking: thinking }: JudgeOptions): ReplyForm {
  const refuse = (option: string, cause: string, mend: string): never => {
    throw new ConfigError({ place: `${place}, option ${option}`, cause, mend });
  };
  if (words && range) refuse("range", "words and range are given together", "give one of the two");
  const names = Object.keys(words ?? {}).map(plain);
  if (words && names.length < 2)
    refuse("words", `it has ${names.length} ${names.length === 1 ? "word" : "words"}`, "give two at least, such as correct and incorrect");
  const twice = names.find((name, i) => name === "" || names.indexOf(name) < i);
  if (twice !== undefined)
    refuse("words", `${JSON.stringify(twice)} is empty, or there twice: case and quotation marks tell no words apart`, "give words that differ");
  return { thinking, ...(range ? { range } : { words: words ?? { correct: 1, incorrect: 0 } }), ...(field !== undefined && { field }) };
}

type Said = Judged & { readonly reply: string };

/** Asks the judge until it says something that was declared, as far as its tries go. Throws CallFault. */
function asked(calls: Patient, options: JudgeOptions, form: ReplyForm, { problem, reference, response }: VerifierInput): Promise<Said> {
  const { model, prompt, system, temperature, max_tokens, body } = options;
  const content = filled(prompt, {
    problem: problemText(problem.prompt),
    reference: typeof reference === "string" ? reference : canonicalJson(reference),
    response,
    answers: askedFor(form),
  });
  const request = {
    ...body,
    model,
    messages: [...(system === undefined ? [] : [{ role: "system", content: system }]), { role: "user", content }],
    ...(temperature !== null && { temperature }),
    ...(max_tokens !== null && { max_tokens }),
  };
  // At temperature 0 the same question has the same reply.
  const again = temperature !== 0;
  return calls.call({ method: "POST", path: "/chat/completions", body: JSON.stringify(request) }, (answer) => {
    const reply = replyOf(answer.body.toString("utf8"));
    try {
      return { ...readReply(reply, form), reply: reply.slice(0, longestEvidence) };
    } catch (error) {
      throw new CallFault("malformed", (error as Error).message, again);
    }
  });
}

/** The text of the first choice, which must have ended by itself. Throws CallFault. */
function replyOf(text: string): string {
  const { value, fault } = readJson(text);
  // Half a body is one that was cut on its way.
  if (fault !== undefined) throw new CallFault("malformed", `the judge's server answers with no JSON (${fault.cause})`, true);
  const { choices, error } = (value ?? {}) as { readonly choices?: Json; readonly error?: { readonly message?: Json } | null };
  if (error !== undefined && error !== null)
    throw new CallFault("refused", `the judge's server answers with an error: ${String(error.message ?? JSON.stringify(error)).slice(0, 300)}`, false);
  const [choice] = (Array.isArray(choices) ? choices : []) as readonly { readonly message?: { readonly content?: Json }; readonly finish_reason?: Json }[];
  const content = choice?.message?.content;
  const finish = choice?.finish_reason ?? "stop";
  if (finish !== "stop")
    throw new CallFault(
      "malformed",
      finish === "length" ? "the judge was cut off by max_tokens" : `the judge ended for the reason ${JSON.stringify(finish)}`,
      false,
    );
  if (typeof content !== "string") throw new CallFault("malformed", "the judge's server answers without a text", false);
  return content;
}

function verdictOf({ score, answer, more, reply }: Said): Verdict {
  const evidence = { ...more, judged: answer, reply };
  return score >= 1 ? accept({ evidence }) : score <= 0 ? rejectFor("wrong", { evidence }) : partial(score, { evidence });
}
