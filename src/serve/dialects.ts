/**
 * How trainers ask for rewards, each in its own words. In every one of them an answer without a score stays apart from one
 * that is worth 0: as null where the trainer knows null, and where it knows numbers alone the whole request fails, which it
 * tries again.
 */
import { z } from "zod";
import { hashJson, type Json } from "../core/json.js";
import { parseOptions } from "../core/options.js";
import type { Message, Problem } from "../core/problem.js";
import { rewardOf, scoreOf, type Verdict } from "../core/verdict.js";
import type { Given, Grader } from "./grader.js";
import { Refusal } from "./refusal.js";

const json = z.json() as z.ZodType<Json>;
const message = z.strictObject({ role: z.enum(["system", "user", "assistant", "tool"]), content: z.string() });
const prompt = z.union([z.string(), z.array(message)]);
const tags = z.record(z.string(), z.union([z.string(), z.number(), z.boolean()]));
const info = z.record(z.string(), json);

const item = z.strictObject({
  response: z.string(),
  /** Absent: that of the problem whose key is named. */
  reference: json.optional(),
  key: z.string().optional(),
  prompt: prompt.optional(),
  tags: tags.optional(),
  info: info.optional(),
  truncated: z.boolean().optional(),
  /** As our own rewards over HTTP send it. */
  problem: z
    .strictObject({ key: z.string().optional(), prompt: prompt.optional(), reference: json.optional(), tags: tags.optional(), info: info.optional() })
    .optional(),
});
const plain = z.strictObject({ items: z.array(item) });

interface Told {
  readonly key?: string | undefined;
  readonly prompt?: string | readonly Message[] | undefined;
  readonly reference?: Json | undefined;
  readonly tags?: Problem["tags"] | undefined;
  readonly info?: Problem["privileged"] | undefined;
}

/** The problem that a request tells of. A null reference is none; without any, and with a key, it is the served problem of that key. */
function problemOf(grader: Grader, { key, prompt: asked, reference, tags: named, info: known }: Told, param: string): Problem {
  if (reference === undefined && key !== undefined && (grader.needsReference || grader.problems.length > 0)) return grader.problem(key, param);
  if (reference === undefined && grader.needsReference) {
    const mend = grader.problems.length > 0 ? "send reference, or the key of a served problem" : "send reference";
    throw new Refusal(400, `${param}: it has no reference to be judged against: ${mend}`, { param });
  }
  const messages: readonly Message[] = typeof asked === "string" ? [{ role: "user", content: asked }] : (asked ?? []);
  const none = reference === undefined || reference === null;
  return {
    key: key ?? hashJson({ prompt: messages as unknown as Json, reference: reference ?? null }).slice(0, 20),
    prompt: messages,
    reference: none ? { state: "none", version: 0 } : { state: "gold", answer: reference, version: 0 },
    ...(named && { tags: named }),
    ...(known && { privileged: known }),
  };
}

/** The body as a schema has it. Throws ConfigError, which names what is wrong. */
const read = <S extends z.ZodType>(schema: S, body: Json): z.output<S> => parseOptions(schema, body, "the request");

/** A verdict as all but OpenRLHF are told it: `reward` (what training takes) and `score` (0 to 1) are null where there is none. */
function told(verdict: Verdict): { readonly [name: string]: unknown } {
  const { elapsedMs: _, ...rest } = verdict;
  return { ...rest, score: scoreOf(verdict) ?? null, reward: rewardOf(verdict) ?? null };
}

/** `{items: [{response, reference}]}` to `{results: [{kind, score, reward, reason}]}`, in their order. */
export async function plainDialect(grader: Grader, body: Json, signal: AbortSignal): Promise<object> {
  const { items } = read(plain, body);
  const answers = items.map(
    ({ problem, response, truncated = false, ...own }, i): Given => ({
      problem: problemOf(grader, { ...own, ...problem }, `items[${i}]`),
      response,
      truncated,
    }),
  );
  return { results: (await grader.grade(answers, signal)).map(told), verifier: grader.id };
}

const oneOrMore = <S extends z.ZodType>(schema: S) => z.union([z.array(schema), schema]);
const openRlhf = z.strictObject({ query: oneOrMore(z.string()), prompts: oneOrMore(z.string()).optional(), labels: z.union([z.array(json), json]).optional() });
const listOf = <T>(value: T | readonly T[] | undefined): readonly T[] | undefined =>
  value === undefined ? undefined : Array.isArray(value) ? (value as readonly T[]) : [value as T];

/** Tokens that end an answer in the templates of published models: they come with the text there, and are none of the answer. */
const endTokens = ["<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end_of_text|>", "<|end|>", "<end_of_turn>", "</s>", "<eos>", "<pad>", "<|pad|>"];

function withoutEnd(text: string): string {
  for (let rest = text; ; ) {
    const end = endTokens.find((token) => rest.trimEnd().endsWith(token));
    if (end === undefined) return rest;
    rest = rest.trimEnd().slice(0, -end.length);
  }
}

/**
 * OpenRLHF's remote reward: `query` is prompt and response as one text, `prompts` and `labels` beside it; `rewards` and
 * `scores` are numbers. Where one answer has no score there is no number for it, and the status is 503.
 */
export async function openRlhfDialect(grader: Grader, body: Json, signal: AbortSignal): Promise<object> {
  const given = read(openRlhf, body);
  const queries = listOf(given.query) as readonly string[];
  const prompts = listOf(given.prompts);
  const labels = listOf<Json>(given.labels as Json | readonly Json[] | undefined);
  for (const [name, list] of Object.entries({ prompts, labels })) {
    if (list !== undefined && list.length !== queries.length)
      throw new Refusal(400, `${name} has ${list.length} entries, and query ${queries.length}`, { param: name });
  }
  const answers = queries.map((query, i): Given => {
    const asked = prompts?.[i] ?? "";
    if (!query.startsWith(asked))
      throw new Refusal(400, `query[${i}] does not begin with prompts[${i}], so what was answered cannot be told`, { param: "query" });
    const reference = labels?.[i];
    return {
      problem: problemOf(grader, { prompt: asked, ...(reference !== undefined && { reference }) }, `labels[${i}]`),
      response: withoutEnd(query.slice(asked.length)),
      truncated: false,
    };
  });
  const verdicts = await grader.grade(answers, signal);
  const missing = verdicts.flatMap((verdict, i) => (verdict.kind === "unscored" ? [`${i} (${verdict.reason})`] : []));
  if (missing.length > 0) {
    const listed = missing.slice(0, 5).join(", ");
    throw new Refusal(503, `${missing.length} of ${verdicts.length} answers have no score, which is not 0: ${listed}`, {
      code: "unscored",
      headers: { "Retry-After": "1" },
    });
  }
  return { rewards: verdicts.map(rewardOf), scores: verdicts.map(scoreOf), extra_logs: {} };
}

const verlItem = { data_source: z.string().optional(), solution_str: z.string(), ground_truth: json, extra_info: json.optional() };
const verlOne = z.strictObject(verlItem);
const verlMany = z.strictObject({
  data_sources: z.array(z.string()).optional(),
  solution_strs: z.array(z.string()),
  ground_truths: z.array(json),
  extra_infos: z.array(json).optional(),
});

/** verl's `compute_score`: its four arguments, or their lists, to an object with `score`, which is null where there is none. */
export async function verlDialect(grader: Grader, body: Json, signal: AbortSignal): Promise<object> {
  const many = typeof body === "object" && body !== null && "solution_strs" in body;
  const list = many ? read(verlMany, body) : undefined;
  const rows = list ? rowsOf(list) : [read(verlOne, body)];
  const answers = rows.map(({ data_source, solution_str, ground_truth, extra_info }, i): Given => {
    const known = typeof extra_info === "object" && extra_info !== null && !Array.isArray(extra_info) ? (extra_info as Problem["privileged"]) : undefined;
    const about = { reference: ground_truth, ...(data_source !== undefined && { tags: { data_source } }), ...(known && { info: known }) };
    return { problem: problemOf(grader, about, many ? `ground_truths[${i}]` : "ground_truth"), response: solution_str, truncated: false };
  });
  // The same keys in each: verl makes columns of them.
  const results = (await grader.grade(answers, signal)).map((verdict) => ({
    score: rewardOf(verdict) ?? null,
    acc: scoreOf(verdict) ?? null,
    kind: verdict.kind,
    reason: "reason" in verdict ? verdict.reason : "",
  }));
  return many ? { results } : (results[0] as object);
}

function rowsOf({ data_sources, solution_strs, ground_truths, extra_infos }: z.output<typeof verlMany>): z.output<typeof verlOne>[] {
  for (const [name, list] of Object.entries({ data_sources, ground_truths, extra_infos })) {
    if (list !== undefined && list.length !== solution_strs.length)
      throw new Refusal(400, `${name} has ${list.length} entries, and solution_strs ${solution_strs.length}`, { param: name });
  }
  return solution_strs.map((solution_str, i) => ({
    solution_str,
    ground_truth: ground_truths[i] as Json,
    data_source: data_sources?.[i],
    extra_info: extra_infos?.[i],
  }));
}
