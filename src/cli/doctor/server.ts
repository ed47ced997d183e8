/** `touchstone doctor` on a server: what it can do, found by asking it. */
import { ConfigError } from "../../core/errors.js";
import { capabilities, type EngineInfo } from "../../engine/contract.js";
import { examineTinker } from "../../engine/tinker/examine.js";
import { serverOptions } from "../../train/engines.js";
import { print, table } from "../output.js";
import { Progress } from "../progress.js";
import { isRemote, openRemote, type RemoteFlags, tinkerServer } from "../remote-flags.js";

export interface ServerFlags extends RemoteFlags {
  readonly model?: string;
  readonly json?: true;
  readonly quick?: true;
}

interface Found {
  readonly facts: readonly (readonly [what: string, is: string])[];
  readonly json: object;
  readonly info: EngineInfo;
}

/** Whether a server is asked for; refuses flags that do not go together. */
export function asksServer(flags: ServerFlags): boolean {
  const remote = isRemote(flags);
  const stray = remote && flags.quick ? "--quick" : flags.model !== undefined && flags.engine !== "openai" ? "--model" : undefined;
  if (stray !== undefined)
    throw new ConfigError({
      place: `option ${stray}`,
      cause: stray === "--quick" ? "it belongs to this machine, and a server is asked" : "only a server of openai is asked with a tokenizer",
      mend: "leave it out",
    });
  return remote;
}

/** Asks a server and prints what it can do. Throws where it does not answer, or not as its interface says. */
export async function doctorServer(flags: ServerFlags): Promise<void> {
  const { json } = flags;
  const progress = new Progress({ label: "doctor", silent: json === true });
  progress.waitFor("the server");
  const found = await (flags.engine === "tinker" ? tinker(flags, progress) : openai(flags)).finally(() => progress.end());
  const { has, lacks } = found.info;
  const missing = capabilities.filter((each) => !has.has(each));
  if (json) {
    const reasons = Object.fromEntries(missing.map((each) => [each, lacks[each] ?? null]));
    print(JSON.stringify({ engine: flags.engine, ...found.json, can: [...has], cannot: reasons }, null, 2));
    return;
  }
  print(table(found.facts.map((each) => [...each])).join("\n"));
  print(`\nit can: ${[...has].join(", ")}\nit cannot:`);
  print(table(missing.map((each) => [`  ${each}`, lacks[each] ?? ""])).join("\n"));
}

async function tinker(flags: ServerFlags, progress: Progress): Promise<Found> {
  const examined = await examineTinker({ ...serverOptions(tinkerServer(flags)), onNotice: (text) => progress.say(text) });
  const { server, base, info, gap, logps, seeds, passMs, sampleMs } = examined;
  const { dialect, reduction, deduplicates, moments, resets } = info.fingerprint.server as {
    readonly [trait: string]: string | boolean;
  };
  const yes = (is: unknown): string => (is ? "yes" : "no");
  const facts = [
    ["server", server],
    ["base", base],
    ["speaks", String(dialect)],
    ["sums losses as", String(reduction)],
    ["applies a repeated request once", deduplicates ? "yes" : "no: after a lost answer the model is loaded anew from its last checkpoint"],
    ["goes by the betas, epsilon and decay of a step", yes(moments)],
    ["loads a checkpoint without its optimizer", yes(resets)],
    ["sampler against trainer", `${gap.toExponential(1)} nats at most`],
    ["log-probs of what it draws at temperature 0.5", logps === "raw" ? "those of temperature 1" : "those of temperature 0.5"],
    ["equal seeds draw equal tokens", yes(seeds)],
    ["a forward pass of 12 tokens", `${Math.round(passMs)} ms`],
    ["8 samples of 8 tokens", `${Math.round(sampleMs)} ms`],
  ] as const;
  const told = { server, base, ...(info.fingerprint.server as object), gap, logps, seeds, pass_ms: passMs, sample_ms: sampleMs };
  return { facts, json: told, info };
}

async function openai(flags: ServerFlags): Promise<Found> {
  if (flags.model === undefined) {
    throw new ConfigError({ place: "option --engine openai", cause: "--model is missing", mend: "give the model's folder or hub id: its tokenizer is needed" });
  }
  const { engine, title } = await openRemote(flags.model, flags, {}, true);
  try {
    const facts = Object.entries(engine.info.fingerprint).map(([name, value]) => [name.replaceAll("_", " "), String(value)] as const);
    return { facts: [["server", title], ...facts], json: { server: title, ...engine.info.fingerprint }, info: engine.info };
  } finally {
    await engine.close();
  }
}
