import type { Sample } from "./contract.js";

/** The first tokens of a sample, as one that was ended there by its caller. */
export function cutSample(sample: Sample, count: number): Sample {
  const { top } = sample;
  const columns = ["ids", "sampled", "rawLogp", "logp", "entropy"] as const;
  return {
    ...sample,
    ...(Object.fromEntries(columns.map((name) => [name, sample[name].slice(0, count)])) as Pick<Sample, (typeof columns)[number]>),
    ...(top && { top: { k: top.k, ids: top.ids.slice(0, count * top.k), logp: top.logp.slice(0, count * top.k), tail: top.tail.slice(0, count) } }),
    stop: "stop",
  };
}
