/** Stop strings across the borders of tokens, in text of several bytes a character, in answers and in conversations. */
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { fixture } from "../../test/paths.js";
import { adder, tokenizer as symbols } from "../../test/support/adder-task.js";
import { type Problem, plainContext } from "../core/problem.js";
import { randomKey } from "../core/random.js";
import type { Tokenizer } from "../core/tokenizer.js";
import type { Sample, SampleRequest } from "../engine/contract.js";
import { cutSample } from "../engine/cut.js";
import { TableEngine } from "../engine/table/engine.js";
import { loadTokenizer } from "../tokenizers/load.js";
import { startHost } from "./environment.js";
import { episodeKeys, playEpisodes } from "./episodes.js";
import { Rounds } from "./rounds.js";
import { type EngineSample, StopWatch, withStopStrings } from "./stop-strings.js";

const texts: { readonly ids: number[] }[] = JSON.parse(readFileSync(fixture("tokenizer", "chatml", "expected.json"), "utf8")).texts;

/** The number of the first token with which the text so far holds one of the strings. */
function firstEnd(tokenizer: Tokenizer, ids: readonly number[], strings: readonly string[]): number {
  const stream = tokenizer.stream("show");
  let text = "";
  return ids.findIndex((id) => {
    text += stream.push(id);
    return strings.some((each) => text.includes(each));
  });
}

it("a response ends with the token that completes a string, wherever the borders of tokens and characters are", async () => {
  const tokenizer = await loadTokenizer(fixture("tokenizer", "chatml"));
  let crossing = 0;
  for (const { ids } of texts) {
    const text = tokenizer.decode(ids, "show");
    for (let from = 0; from < text.length; from += 3) {
      for (const length of [1, 2, 5]) {
        const strings = [text.slice(from, from + length), "never said"];
        if (/^[\uDC00-\uDFFF]|[\uD800-\uDBFF]$|\ufffd/.test(strings[0] as string)) continue;
        const watch = new StopWatch(strings, tokenizer);
        const got = ids.findIndex((id) => watch.push(id));
        expect(got, JSON.stringify([text, strings])).toBe(firstEnd(tokenizer, ids, strings));
        if (got > 0 && !tokenizer.decode([ids[got] as number], "show").includes(strings[0] as string)) crossing++;
      }
    }
  }
  expect(crossing).toBeGreaterThan(300);
});

it("forced tokens end nothing, and may begin what a drawn one completes", () => {
  const ids = [...symbols.encode("1+2+3")];
  const ends = (strings: string[], forced: number): number => {
    const watch = new StopWatch(strings, symbols, forced);
    return ids.findIndex((id) => watch.push(id));
  };
  expect(ends(["+2"], 0)).toBe(2);
  expect(ends(["+2"], 2)).toBe(2);
  expect(ends(["+2"], 3)).toBe(-1);
  expect(ends(["+"], 2)).toBe(3);
});

it("an answer has the bits that it has without, up to its end; others of the same call go on", async () => {
  const engine = new TableEngine();
  const config = { kind: "table", vocabulary: symbols.size, order: 1, maxTokens: 64 } as never;
  await engine.weights.load({ role: "policy", source: { from: "config", config, seed: 3 }, trainable: false });
  const requests = Array.from(
    { length: 12 },
    (_, i): SampleRequest => ({
      context: plainContext([5, 6]),
      weights: { role: "policy" },
      temperature: 1,
      maxTokens: 40,
      stop: { ids: symbols.eosIds, ...(i % 3 === 2 ? {} : { strings: ["add(1", "+", "99"] }) },
      key: randomKey({ seed: 1, purpose: "sample", member: i }),
    }),
  );
  const all = async (sample: EngineSample, asked: readonly SampleRequest[]): Promise<Sample[]> => {
    const answers: Sample[] = [];
    for await (const answer of sample(asked)) answers[answer.index] = answer;
    return answers;
  };
  const own: EngineSample = (...call) => engine.sample(...call);
  const whole = await all(
    own,
    requests.map((request) => ({ ...request, stop: { ids: symbols.eosIds } })),
  );
  const stopped = await all(withStopStrings(own, symbols), requests);
  let ended = 0;
  for (const [i, { stop }] of requests.entries()) {
    const at = firstEnd(symbols, [...(whole[i] as Sample).ids], stop.strings ?? []);
    if (at >= 0) ended++;
    expect(stopped[i]).toEqual(at < 0 ? whole[i] : cutSample(whole[i] as Sample, at + 1));
  }
  expect(ended).toBeGreaterThan(3);
  expect(ended).toBeLessThan(9);
  await engine.close();
});

it("a turn of a conversation ends with one, and what the environment says follows an end token that nobody drew", async () => {
  const task = adder();
  const problem: Problem = { key: "p", prompt: [{ role: "user", content: "3+4" }], reference: { state: "gold", answer: 7, version: 0 } };
  const host = await startHost({ environment: task.environment as NonNullable<typeof task.environment> });
  const turns = ["add(3+4)!!!!", "#7"];
  /** A policy that says what it is told until it is stopped. */
  async function* scripted(...[requests, options]: Parameters<EngineSample>): AsyncGenerator<Sample> {
    for (const index of requests.keys()) {
      const ids = [...symbols.encode(turns.shift() as string), symbols.eosIds[0] as number];
      const end = ids.findIndex((id) => options?.onToken?.(index, id) === true);
      const said = Int32Array.from(end < 0 ? ids : ids.slice(0, end + 1));
      const logp = new Float64Array(said.length).fill(-1);
      yield {
        index,
        ids: said,
        sampled: new Uint8Array(said.length).fill(1),
        logp,
        rawLogp: logp,
        entropy: logp,
        stop: end < 0 ? "eos" : "stop",
        weights: "policy",
      };
    }
  }
  const request = {
    context: plainContext(symbols.render(problem.prompt, { addGenerationPrompt: true })),
    weights: { role: "policy" },
    temperature: 1,
    maxTokens: 48,
    stop: { ids: symbols.eosIds, strings: [")"] },
    key: randomKey({ seed: 1, purpose: "sample" }),
  };
  const keys = episodeKeys("sample", { problem: "p", member: 0 }, (meaning) => randomKey({ seed: 1, ...meaning }));
  try {
    for await (const episode of playEpisodes([{ problem, request, ...keys }], {
      host,
      rounds: new Rounds(withStopStrings(scripted, symbols)),
      tokenizer: symbols,
    })) {
      expect(symbols.decode(episode.ids, "show")).toBe("add(3+4)<eos><tool>7<assistant>#7<eos>");
      expect([...episode.sampled].join("")).toBe("111110000111");
      expect(episode).toMatchObject({ stop: "eos", text: "#7" });
    }
  } finally {
    await host.close();
  }
});
