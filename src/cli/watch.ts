import type { TrainProgress } from "../train/progress.js";
import type { TrainHooks } from "../train/train.js";
import { curve } from "./curve.js";
import { leave } from "./ending.js";
import { Progress } from "./progress.js";

/** What asks a run to end: Ctrl-C, a service manager, and a terminal that is closed. */
export const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
/** The exit code of a run that was interrupted, whether it was saved or ended at once. */
export const interruptedCode = 130;

/** Follows a run on the progress line, with its curve of rewards on a terminal, and passes Ctrl-C on to it. */
export class Watch {
  /** One entry a step; null where no answer had a score. */
  readonly rewards: (number | null)[] = [];
  readonly messages: string[] = [];
  readonly scores: { readonly step: number; readonly score: number }[] = [];
  readonly hooks: TrainHooks;
  private progress: Progress;
  private readonly stop = new AbortController();
  private ended = false;
  private listening = false;

  constructor(private readonly silent: boolean) {
    this.progress = new Progress({ label: "training", silent });
    this.hooks = { signal: this.stop.signal, onProgress: (progress) => this.on(progress) };
  }

  /** Until something is there to be saved a signal ends the process at once, even while a task's own code loops for ever. */
  private listen(): void {
    if (this.listening || this.ended) return;
    this.listening = true;
    for (const signal of signals) process.on(signal, this.interrupt);
  }

  private readonly interrupt = (): void => {
    if (this.stop.signal.aborted) leave(interruptedCode);
    this.stop.abort();
    this.progress.say("Finishing this step and saving; once more ends at once.");
  };

  private steps = 0;
  private first = 1;

  /** The curve of rewards from the first step that was followed, at least from 0 to 1; none of a single step. */
  picture(): string[] {
    const known = this.rewards.filter((reward) => reward !== null);
    if (this.rewards.length < 2) return [];
    const values = this.rewards.map((reward) => reward ?? undefined);
    return curve(values, { low: Math.min(0, ...known), high: Math.max(1, ...known), first: this.first });
  }

  private on(progress: TrainProgress): void {
    if (progress.kind !== "pose") this.listen();
    switch (progress.kind) {
      case "pose":
        this.progress.waitFor(`problems ${progress.done}/${progress.total}`);
        break;
      case "await":
        this.progress.waitFor(progress.total === undefined ? progress.what : `${progress.what} ${progress.done}/${progress.total}`);
        break;
      case "message":
        this.messages.push(progress.text);
        this.progress.say(progress.text);
        break;
      case "step":
        if (this.steps === 0) {
          this.steps = progress.steps;
          this.first = progress.step;
          this.progress.end();
          this.progress = new Progress({
            label: "training",
            total: progress.steps,
            first: progress.step - 1,
            since: performance.now() - (progress.clock.ms ?? 0),
            silent: this.silent,
          });
        }
        this.rewards.push(progress.metrics.reward ?? null);
        this.progress.picture(this.picture());
        this.progress.at(progress.step, this.note(progress.metrics));
        break;
      case "evaluation":
        if (progress.score !== undefined) {
          this.scores.push({ step: progress.step, score: progress.score });
          this.progress.say(`step ${progress.step}: ${percent(progress.score)} of ${progress.data.problems} held-out problems`);
        }
        break;
      case "checkpoint":
        break;
    }
  }

  private note({ reward, groups_silent, entropy }: { readonly [name: string]: number }): string {
    const parts = [`reward ${reward === undefined ? "-" : reward.toFixed(3)}`];
    if (groups_silent !== undefined) parts.push(`silent ${percent(groups_silent)}`);
    if (entropy !== undefined) parts.push(`entropy ${entropy.toFixed(2)}`);
    return parts.join(", ");
  }

  end(): void {
    if (this.ended) return;
    this.ended = true;
    this.progress.end();
    for (const signal of signals) process.off(signal, this.interrupt);
  }
}

export const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;
