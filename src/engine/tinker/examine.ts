/** What a server of the Tinker protocol does, for whoever wants to know before a run: the probes of every start, and some more. */
import { plainContext } from "../../core/problem.js";
import type { EngineInfo } from "../contract.js";
import { ServerLink, type TinkerOptions } from "./link.js";
import { probeDatum } from "./probe.js";
import { encodeSample, encodeScore, promptLogp, readSample, type SampleGroup } from "./sample.js";
import type { SampleResult } from "./wire.js";

export interface Examined {
  readonly server: string;
  readonly base: string;
  readonly info: EngineInfo;
  /** Largest difference between the sampler's and the trainer's log-probs of one sequence, in nats. */
  readonly gap: number;
  /** Log-probs of what is drawn at temperature 0.5 are those of `raw`: temperature 1, or `processed`: 0.5. */
  readonly logps: "raw" | "processed";
  /** Equal seeds draw equal tokens. */
  readonly seeds: boolean;
  /** Of a forward pass over twelve tokens and of eight samples of eight tokens, after the first of each, in milliseconds. */
  readonly passMs: number;
  readonly sampleMs: number;
}

const drawn = 8;
/** As far as float32 and another program may go. */
const near = 1e-3;

/** Asks a server with adapters of rank 1, which are given back. Throws as `connectTinker` does. */
export async function examineTinker(options: TinkerOptions): Promise<Examined> {
  const link = await ServerLink.open({ rank: 1, ...options });
  try {
    const { connection, baseModel: base, maker, info, place } = link;
    const model = await maker.create();
    maker.holds(model.id, true);
    const datum = probeDatum(1);
    const { ids } = datum;
    const source = { base_model: base };
    const score = (some: Int32Array): Promise<Float64Array> =>
      connection.operate({
        ...encodeScore(some, source),
        what: "asample",
        repeatable: true,
        read: (answer) => {
          const read = readSample(answer);
          return read && promptLogp(read, some.length);
        },
      });
    const draw = (): Promise<SampleResult> => {
      const request = {
        context: plainContext(ids),
        weights: { role: "base" },
        temperature: 0.5,
        maxTokens: drawn,
        stop: { ids: [] },
        key: [7, 0, 0, 0],
      } as const;
      const group: SampleGroup = { request, indices: Array.from({ length: drawn }, (_, i) => [i]), seed: 7 };
      return connection.operate({ ...encodeSample(group, source), what: "asample", repeatable: true, read: readSample });
    };
    try {
      const [forward] = await model.forward([datum]);
      const passMs = await timed(() => model.forward([datum]));
      const told = await score(ids);
      const gap = told.reduce((most, x, i) => Math.max(most, Math.abs(x - (forward?.[i] as number))), 0);
      const first = await draw();
      let again = first;
      const sampleMs = await timed(async () => (again = await draw()));
      const [one] = first.sequences;
      const whole = Int32Array.from([...ids, ...(one?.ids ?? [])]);
      const raw = (await score(whole)).slice(ids.length - 1);
      const logps = raw.every((x, i) => Math.abs(x - (one?.logprobs[i] as number)) < near) ? "raw" : "processed";
      const tokens = ({ sequences }: SampleResult): string => sequences.map((each) => each.ids.join()).join(" ");
      return { server: place, base, info, gap, logps, seeds: tokens(first) === tokens(again), passMs, sampleMs };
    } finally {
      await model.unload(30_000).catch(() => undefined);
      maker.holds(model.id, false);
    }
  } finally {
    await link.close();
  }
}

async function timed(act: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await act();
  return performance.now() - start;
}
