/**
 * Whether a run learns, and if not why, in plain words. The thresholds are our choice: where a number that a run logs
 * is beyond what lets a policy gradient work, or where it makes other numbers mean something else than they seem to.
 */
import type { Json } from "../core/json.js";
import type { Series } from "./series.js";
import type { EvaluationPoint, Insight, Remark } from "./shapes.js";

export interface InsightParts {
  readonly series: Series;
  readonly evaluations: readonly EvaluationPoint[];
  /** The run's configuration as resolved. */
  readonly config: { readonly [name: string]: Json };
  readonly end?: { readonly reason: string; readonly message: string };
  readonly going: boolean;
}

/** Steps that "now" means. */
const recent = 10;
/** Standard errors from which on a change of the reward is one. */
const sure = 3;
/** Steps before which a curve says nothing. */
const early = 6;

/** Reads the numbers of a run. */
export function insightOf(parts: InsightParts): Insight {
  const { series, evaluations, end, going } = parts;
  const trend = trendOf(evaluations, series, going);
  const remarks = [
    ...trend.remarks,
    ...signal(series),
    ...entropy(series),
    ...lengths(series),
    ...verifier(series),
    ...gap(series, parts.config),
    ...updates(series),
    ...(end === undefined || ["done", "interrupted"].includes(end.reason) ? [] : [remark("bad", "end", `The run ended by itself: ${end.message}.`)]),
  ];
  const causes = remarks.filter(({ level, about }) => level === "bad" && about !== "learning");
  if (trend.verdict === "too early") {
    // What keeps it from learning is known before whether it does, and a run that has ended gets no later.
    if (causes.length > 0 && !going) return { verdict: "not learning", headline: "It did not learn, and this is why", remarks };
    const but = causes.length === 0 ? "" : `, but ${plural(causes.length, "thing needs", "things need")} a look`;
    return { verdict: "too early", headline: `${going ? "Too early to say" : "Too short to say"}${but}`, remarks };
  }
  if (trend.verdict === "learning") {
    return {
      verdict: "learning",
      headline: causes.length === 0 ? "It learns" : `It learns, but ${plural(causes.length, "thing needs", "things need")} a look`,
      remarks,
    };
  }
  return { verdict: "not learning", headline: causes.length === 0 ? "It does not learn so far" : "It does not learn, and this is why", remarks };
}

const plural = (count: number, one: string, many: string): string => (count === 1 ? `one ${one}` : `${count} ${many}`);
const remark = (level: Remark["level"], about: string, text: string, metric?: string): Remark => ({
  level,
  about,
  text,
  ...(metric !== undefined && { metric }),
});
const percent = (share: number): string => `${(100 * share).toFixed(share < 0.0995 && share > 0 ? 1 : 0)} %`;
const digits = (value: number): string => Number(value.toPrecision(3)).toString();
const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

/** Mean of the last steps; undefined where the run has no such number. */
function now(series: Series, name: string): number | undefined {
  const values = series.known(name).slice(-recent);
  return values.length === 0 ? undefined : mean(values);
}

const start = (series: Series, name: string): number => mean(series.known(name).slice(0, recent));

/** By held-out scores whose intervals lie apart; where they do not, by the reward of training's own answers. */
function trendOf(evaluations: readonly EvaluationPoint[], series: Series, going: boolean): { verdict: Insight["verdict"]; remarks: Remark[] } {
  const scored = evaluations.filter(({ score }) => score !== null);
  const [first, last] = [scored[0], scored.at(-1)];
  const remarks: Remark[] = [];
  const reward = rewardTrend(series);
  let heldout: number | undefined;
  if (first && last && first !== last) {
    const [before, after] = [spanOf(first), spanOf(last)];
    const numbers = `from ${percent(first.score as number)} at step ${first.step} to ${percent(last.score as number)} at step ${last.step}`;
    heldout = before && after ? (after.low > before.high ? 1 : after.high < before.low ? -1 : 0) : 0;
    if (heldout > 0) remarks.push(remark("good", "learning", `Held-out problems: right answers rose ${numbers}; the intervals lie apart.`, "eval.score"));
    else if (heldout < 0) remarks.push(remark("bad", "learning", `Held-out problems: right answers fell ${numbers}; the intervals lie apart.`, "eval.score"));
    else
      remarks.push(
        remark("note", "learning", `Held-out problems: ${numbers}, which chance alone may explain; more problems or more steps would tell.`, "eval.score"),
      );
  } else if (series.steps.length >= early) {
    const none = going
      ? "No two held-out evaluations yet"
      : `${scored.length === 0 ? "No held-out evaluation" : "A single held-out evaluation"} (--eval-every makes them)`;
    remarks.push(remark("note", "learning", `${none}: what is said here rests on the answers of training alone.`, "reward"));
  }
  if (reward) {
    const numbers = `from ${digits(reward.from)} in the first steps to ${digits(reward.to)} in the last`;
    if (reward.direction > 0) remarks.push(remark("good", "learning", `The reward rose ${numbers}.`, "reward"));
    else if (reward.direction < 0) remarks.push(remark("bad", "learning", `The reward fell ${numbers}.`, "reward"));
    else remarks.push(remark("note", "learning", `The reward went ${numbers}, no more than it varies from step to step.`, "reward"));
    if (heldout !== undefined && heldout <= 0 && reward.direction > 0)
      remarks.push(remark("note", "learning", "Reward without held-out gain: look whether the verifier can be talked into accepting wrong answers.", "reward"));
  }
  if (heldout === undefined && !reward) return { verdict: "too early", remarks };
  const learns = heldout === 1 || (heldout !== -1 && (reward?.direction ?? 0) > 0);
  return { verdict: learns ? "learning" : "not learning", remarks };
}

function spanOf({ estimates }: EvaluationPoint): { readonly low: number; readonly high: number } | null {
  return (estimates.find(({ name }) => name === "avg") ?? estimates[0])?.interval ?? null;
}

function rewardTrend(series: Series): { from: number; to: number; direction: number } | undefined {
  const values = series.known("reward");
  if (values.length < early) return undefined;
  const part = Math.max(3, Math.floor(values.length / 5));
  const [a, b] = [values.slice(0, part), values.slice(-part)];
  const [from, to] = [mean(a), mean(b)];
  const squares = (list: readonly number[], middle: number): number => list.reduce((sum, x) => sum + (x - middle) ** 2, 0) / (list.length - 1) / list.length;
  const error = Math.sqrt(squares(a, from) + squares(b, to));
  const change = to - from;
  return { from, to, direction: Math.abs(change) > sure * error && Math.abs(change) > 1e-9 ? Math.sign(change) : 0 };
}

function signal(series: Series): Remark[] {
  const silent = now(series, "groups_silent");
  if (silent === undefined) return [];
  if (silent < 0.5) return [remark("good", "signal", `${percent(1 - silent)} of the groups teach something.`, "groups_silent")];
  const reward = now(series, "reward");
  const unscored = now(series, "groups.unscored") ?? 0;
  const why =
    unscored > 0.5
      ? "most have no answer with a score"
      : reward === undefined
        ? "their answers all score alike"
        : reward > 0.85
          ? "nearly all answers are right: the problems have become too easy"
          : reward < 0.15
            ? "nearly all answers are wrong: the problems are too hard, or the verifier does not read what is written"
            : "the answers to one problem are all right or all wrong: larger groups, a higher temperature or other problems would vary them";
  const level = silent > 0.8 && !(reward !== undefined && reward > 0.85) ? "bad" : "note";
  return [remark(level, "signal", `${percent(silent)} of the groups teach nothing, because ${why}.`, "groups_silent")];
}

function entropy(series: Series): Remark[] {
  const last = now(series, "entropy");
  if (last === undefined || series.steps.length < early) return [];
  const first = start(series, "entropy");
  const reward = now(series, "reward") ?? 0;
  const numbers = `${digits(first)} to ${digits(last)} nats a token`;
  if (last < 0.15 * first && last < 0.1) {
    return reward > 0.85
      ? [remark("note", "entropy", `The policy has become sure of its answers (entropy ${numbers}), which are mostly right.`, "entropy")]
      : [
          remark(
            "bad",
            "entropy",
            `The entropy has collapsed (${numbers}): the policy no longer tries anything else. A lower learning rate, a higher clip bound or an entropy bonus helps.`,
            "entropy",
          ),
        ];
  }
  if (last > 2.5 * first && last > 0.5) {
    return [remark("bad", "entropy", `The entropy grows (${numbers}): answers become random. The learning rate may be too high.`, "entropy")];
  }
  return [remark("good", "entropy", `The entropy is in order (${numbers}).`, "entropy")];
}

function lengths(series: Series): Remark[] {
  const truncated = now(series, "truncated");
  if (truncated === undefined) return [];
  const text = `${percent(truncated)} of the answers are cut off by their token budget`;
  if (truncated > 0.4) return [remark("bad", "length", `${text}: what they would have said is never judged. Raise max_tokens.`, "truncated")];
  if (truncated > 0.1) return [remark("note", "length", `${text}.`, "truncated")];
  return [remark("good", "length", truncated === 0 ? "No answer is cut off." : `${text}.`, "truncated")];
}

function verifier(series: Series): Remark[] {
  const found: Remark[] = [];
  const reasons = series.names().filter((name) => name.startsWith("reason."));
  const top = reasons.map((name) => [name.slice("reason.".length), now(series, name) ?? 0] as const).sort(([, a], [, b]) => b - a)[0];
  const unscored = now(series, "unscored") ?? 0;
  if (unscored > 0.02) {
    const level = unscored > 0.2 ? "bad" : "note";
    const why = top === undefined ? "" : `, most often: ${top[0]}`;
    found.push(
      remark(
        level,
        "verifier",
        `${percent(unscored)} of the answers could not be judged, through a fault that is not theirs${why}. They count nowhere.`,
        "unscored",
      ),
    );
  }
  const reward = now(series, "verdict.accept");
  if (reward !== undefined && reward < 0.02 && top !== undefined && top[1] > 0.9 && unscored <= 0.2) {
    found.push(
      remark(
        "bad",
        "verifier",
        `${percent(top[1])} of the answers are rejected for one reason (${top[0]}): look at the rollouts whether the prompt asks for what the verifier reads.`,
        `reason.${top[0]}`,
      ),
    );
  }
  return found.length > 0 ? found : [remark("good", "verifier", "Every answer could be judged.", "unscored")].filter(() => series.steps.length > 0);
}

function gap(series: Series, config: InsightParts["config"]): Remark[] {
  const value = now(series, "gap_mean");
  if (value === undefined) return [];
  const limit = Number((config.limits as { readonly gap?: number } | undefined)?.gap ?? 0.1);
  const text = `Sampler and trainer differ by ${digits(value)} nats a token`;
  if (value > limit / 2) return [remark("bad", "gap", `${text}, near the limit of ${digits(limit)}: ratios mean less than they seem to.`, "gap_mean")];
  return [remark(value > limit / 10 ? "note" : "good", "gap", `${text} (limit ${digits(limit)}).`, "gap_mean")];
}

function updates(series: Series): Remark[] {
  const norm = now(series, "grad_norm");
  const clipped = (now(series, "clip_high") ?? 0) + (now(series, "clip_low") ?? 0);
  const found: Remark[] = [];
  if (norm === 0 || (norm === undefined && series.steps.length > 0))
    found.push(remark("bad", "update", "The gradient is zero: the weights do not move.", "grad_norm"));
  if (now(series, "lr") === 0) found.push(remark("bad", "update", "The learning rate is zero.", "lr"));
  if (clipped > 0.3)
    found.push(
      remark(
        "note",
        "update",
        `${percent(clipped)} of the tokens lie beyond the clip bounds and have no gradient: fewer epochs or a lower learning rate use the batch better.`,
        "clip_high",
      ),
    );
  if ((now(series, "grad_clipped") ?? 0) > 0.9)
    found.push(remark("note", "update", "Nearly every gradient is scaled down to max_norm, so the learning rate means less than it says.", "grad_clipped"));
  return found;
}
