/** `touchstone score`: how likely given texts are under a model, token by token. */
import type { Command } from "commander";
import { ConfigError, DataError } from "../core/errors.js";
import { plainContext } from "../core/problem.js";
import { readText, refuseData } from "../core/text-file.js";
import type { Tokenizer } from "../core/tokenizer.js";
import type { Engine } from "../engine/contract.js";
import { needCapability } from "../engine/refuse.js";
import { loadRequestOf } from "../train/find-model.js";
import { modelHelp } from "../train/model-name.js";
import { someTexts, wholeNumber } from "./flags.js";
import { print, table } from "./output.js";
import { Progress } from "./progress.js";
import { type BaseFlag, baseOption, readModel, startFor } from "./read-model.js";
import { isRemote, openRemote, type RemoteFlags, remoteOptions } from "./remote-flags.js";

interface ScoreFlags extends BaseFlag, RemoteFlags {
  readonly text?: readonly string[];
  readonly file?: readonly string[];
  readonly threads?: number;
  readonly json?: true;
}

/** A text longer than this fits no model. */
const mostBytes = 2 ** 24;

export function define(command: Command): void {
  remoteOptions(baseOption(command))
    .usage("MODEL [options]")
    .argument("<model>", modelHelp)
    .option("--text <text>", "a text just as the model sees it; may be repeated", someTexts("--text"))
    .option("--file <file>", "a file that is such a text; may be repeated", someTexts("--file"))
    .option("--threads <count>", "threads of one engine process (default: what suits the model's size)", wholeNumber("--threads", 1))
    .option("--json", "print one JSON object a text")
    .addHelpText(
      "after",
      `
The chat template is left out; names of special tokens in a text are these tokens, and a beginning token is put before it
where the model's texts have one. An object has the token ids (ids), the log-prob of each token but the first, in nats at
temperature 1 (logprobs; the first is predicted from nothing), their mean without its sign (nll), and exp(nll) (perplexity).

Examples:
  $ touchstone score my-model --text "The capital of France is Paris."
  $ touchstone score HuggingFaceTB/SmolLM2-135M-Instruct --file story.txt --json`,
    )
    .action(score);
}

interface Scored {
  readonly ids: readonly number[];
  readonly logprobs: readonly number[];
  /** Mean negative log-prob of a token, in nats. */
  readonly nll: number;
  readonly perplexity: number;
}

async function score(name: string, flags: ScoreFlags): Promise<void> {
  const { threads, json } = flags;
  const texts = textsOf(flags);
  const remote = isRemote(flags) ? await openRemote(name, flags, {}, json === true) : undefined;
  const read = remote ?? (await readModel(name, flags, {}, json === true));
  const { model, tokenizer } = read;
  const progress = new Progress({ label: "scoring", total: texts.length, silent: json === true });
  let all: Int32Array[];
  let engine: Engine;
  try {
    const { maxPositions } = "config" in read ? read.config : read.limits;
    all = texts.map(({ place, text }) => tokensOf(tokenizer, text, place, maxPositions));
    if (remote) needCapability(remote.engine.info, "score", remote.title);
    progress.waitFor("the engine");
    engine = "config" in read ? await startFor(read.config, threads) : read.engine;
  } catch (error) {
    progress.end();
    await remote?.engine.close();
    throw error;
  }
  const rows = [["text", "tokens", "nll", "perplexity"]];
  try {
    progress.waitFor("the model");
    if (remote === undefined) await engine.weights.load(loadRequestOf(model, "policy"));
    progress.waitFor("");
    // One at a time: texts may be long, and a batch of them would be as wide as the longest.
    for (const [i, ids] of all.entries()) {
      const sequence = { context: plainContext(ids.slice(0, 1)), response: ids.slice(1), weights: { role: "policy" }, temperature: 1 };
      const [scores] = await engine.score([sequence]);
      const scored = scoredOf(ids, (scores as NonNullable<typeof scores>).logp);
      progress.at(i + 1);
      if (json) print(JSON.stringify(scored));
      rows.push([(texts[i] as Given).place, String(ids.length), scored.nll.toFixed(4), scored.perplexity.toPrecision(6)]);
    }
  } finally {
    progress.end();
    await engine.close();
  }
  if (!json) print(table(rows, [1, 2, 3]).join("\n"));
}

function scoredOf(ids: Int32Array, logp: Float64Array): Scored {
  const nll = -logp.reduce((a, b) => a + b, 0) / logp.length;
  return { ids: [...ids], logprobs: [...logp], nll, perplexity: Math.exp(nll) };
}

interface Given {
  readonly place: string;
  readonly text: string;
}

function textsOf({ text = [], file = [] }: ScoreFlags): Given[] {
  if (text.length > 0 === file.length > 0) {
    const cause = text.length > 0 ? "--text and --file are given together" : "there is no text";
    throw new ConfigError({ place: "touchstone score", cause, mend: "give one of --text TEXT and --file FILE" });
  }
  return [
    ...text.map((each, i) => ({ place: text.length > 1 ? `--text ${i + 1}` : "--text", text: each })),
    ...file.map((path) => ({ place: path, text: readText(path, mostBytes, refuseData("give a text file")) })),
  ];
}

function tokensOf(tokenizer: Tokenizer, text: string, place: string, most: number): Int32Array {
  const ids = tokenizer.raw(text);
  if (ids.length < 2) {
    const cause = ids.length === 0 ? "it has no token" : "it has one token, which is predicted from nothing";
    throw new DataError({ place, cause, mend: "give a text of at least two tokens" });
  }
  if (ids.length > most) throw new DataError({ place, cause: `it has ${ids.length} tokens, and the model takes ${most}`, mend: "score parts of it" });
  return ids;
}
