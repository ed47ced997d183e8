/** Runs of a method that are left alone, and runs that are interrupted and resumed: which files differ. */
import { CapabilityError } from "../../src/core/errors.js";
import { resume, type TrainOptions, train } from "../../src/train/train.js";
import { lax } from "./lax-task.js";
import { onDigits } from "./on-digits.js";
import { snapshot } from "./run-writer.js";
import { options } from "./tabular.js";

export interface Replay {
  readonly method: string;
  /** Folder of the policy. */
  readonly model: string;
  /** The step after which the second run is interrupted, of four. */
  readonly after: number;
  /** Threads that judge the second run; of the first there are none. Absent: the program judges both. */
  readonly workers?: number;
  readonly more?: Partial<TrainOptions>;
}

export interface Replayed {
  /** Folder of the run that was left alone. */
  readonly out: string;
  /** Its files that the other has otherwise. */
  readonly differing: readonly string[];
  readonly reasons: readonly string[];
}

/** Four steps of two updates; three batches make an epoch, so that one ends between the interruption and the end. */
const settings = ({ method, model, workers, more }: Replay): TrainOptions =>
  options(model, {
    method: { name: method, options: onDigits[method] ?? {} },
    steps: 4,
    group: 3,
    minibatches: 2,
    checkpoint: { every: 3, keep_last: 100 },
    ...(workers === undefined ? { task: lax() } : { task: "test/support/lax-task.ts", verifier_workers: 0 }),
    ...more,
  });

export async function replay(asked: Replay): Promise<Replayed> {
  const { after, workers } = asked;
  const { out, roles } = await whole(asked);
  const controller = new AbortController();
  const cut: TrainOptions = {
    ...settings(asked),
    roles,
    ...(workers === undefined ? {} : { verifier_workers: workers }),
    signal: controller.signal,
    onProgress: (progress) => progress.kind === "step" && progress.step === after && controller.abort(),
  };
  const first = await train(cut);
  const second = await resume(cut.out, workers === undefined ? { task: lax() } : {});
  const [expected, is] = [snapshot(out), snapshot(cut.out)];
  return { out, differing: Object.keys(expected).filter((path) => is[path] !== expected[path]), reasons: [first.reason, second.reason] };
}

/** Trains to the end; a role that the method wants to be named is the policy as it starts. */
async function whole(asked: Replay, roles: NonNullable<TrainOptions["roles"]> = {}): Promise<{ out: string; roles: NonNullable<TrainOptions["roles"]> }> {
  const run: TrainOptions = { ...settings(asked), roles };
  try {
    await train(run);
    return { out: run.out, roles };
  } catch (error) {
    const role = error instanceof CapabilityError ? /a role named (\w+)/.exec(error.message)?.[1] : undefined;
    if (role === undefined || Object.hasOwn(roles, role)) throw error;
    return whole(asked, { ...roles, [role]: { model: asked.model } });
  }
}
