/** How the work of one call is divided over the workers: a function of the request alone, never of timing. */
import type { SampleRequest, Sequence } from "../contract.js";

/** A plan may load the busiest worker this much above the mean before prompts are cut apart. Our choice. */
const tolerance = 1.1;

/** For each worker the indices of its requests, ascending. Requests of one prompt stay together, for one shared prefill, unless that unbalances the load. */
export function splitRequests(requests: readonly SampleRequest[], workers: number): number[][] {
  const prompts = new Map<string, number[]>();
  requests.forEach((request, index) => {
    const prompt = JSON.stringify([request.weights, ...request.context.ids]);
    const members = prompts.get(prompt);
    if (members) members.push(index);
    else prompts.set(prompt, [index]);
  });
  const groups = [...prompts.values()];
  const costOf = (members: readonly number[]): number => members.reduce((sum, index) => sum + requests[index].maxTokens, 0);
  const whole = balance(groups.map(costOf), workers).map((places) => places.flatMap((place) => groups[place]));
  const total = costOf(requests.map((_, index) => index));
  if (Math.max(...whole.map(costOf)) <= (tolerance * total) / workers) return whole.map(ascending);

  const cut: number[][] = Array.from({ length: workers }, () => []);
  let before = 0;
  for (const index of groups.flat()) {
    const cost = requests[index].maxTokens;
    const middle = before + cost / 2;
    cut[Math.min(workers - 1, Math.floor((middle * workers) / total))].push(index);
    before += cost;
  }
  return cut.map(ascending);
}

/** For each worker the indices of its sequences, ascending, with nearly equal token counts. */
export function splitSequences(sequences: readonly Sequence[], workers: number): number[][] {
  return balance(
    sequences.map(({ context, response }) => context.ids.length + response.length),
    workers,
  ).map(ascending);
}

/** Longest first, each to the worker with the least so far; ties go to the earlier item and the earlier worker. */
function balance(costs: readonly number[], workers: number): number[][] {
  const bins: number[][] = Array.from({ length: workers }, () => []);
  const loads = new Float64Array(workers);
  const order = costs.map((_, index) => index).sort((a, b) => costs[b] - costs[a] || a - b);
  for (const index of order) {
    const least = loads.indexOf(Math.min(...loads));
    bins[least].push(index);
    loads[least] = loads[least] + costs[index];
  }
  return bins;
}

const ascending = (indices: number[]): number[] => indices.sort((a, b) => a - b);
