/**
 * The weights of one role on a server, as this side knows them: a checkpoint of the server and the steps made since. A
 * model that is lost, or whose state nobody knows any more, is replaced by a new one that is loaded from that checkpoint
 * and makes the same steps again: so no step is lost, and none is made twice.
 */
import { allFinite } from "./datum.js";
import { isFault } from "./faults.js";
import { Lock } from "./lock.js";
import type { Adam, Pass, ServerModel, Stepped } from "./model.js";

/** Makes models; the engine's. */
export interface Maker {
  create(): Promise<ServerModel>;
  /** A model holds a slot of the server, or no more. */
  holds(model: string, held: boolean): void;
  notice(text: string): void;
}

interface Transaction {
  readonly passes: readonly Pass[];
  readonly adam: Adam;
}

/** A checkpoint of a server that a model is loaded from. */
export interface State {
  readonly path: string;
  /** Whether the optimizer comes with it. */
  readonly optimizer: boolean;
}

/** A step that a server made, or that was left out because its numbers were not finite. */
export type Outcome = Stepped | "not finite";

/** How often a step is tried again on a new model. */
const tries = 3;

export class Trainee {
  private model: ServerModel | undefined;
  private reviving: Promise<ServerModel> | undefined;
  private journal: Transaction[] = [];
  /** A checkpoint of ours that is removed once there is a later one. */
  private own: { readonly model: ServerModel; readonly name: string } | undefined;
  private sampler: { readonly model: ServerModel; readonly path: string; readonly name: string } | undefined;
  private readonly lock = new Lock();
  private lived = false;

  constructor(
    private readonly name: string,
    private readonly maker: Maker,
    /** Where the journal begins; undefined: at a new adapter. */
    private state: State | undefined,
    /** After so many steps without a checkpoint one is written. */
    private readonly saveEvery: number,
  ) {}

  /** Makes the model: what is wrong with it shows here. */
  async start(): Promise<void> {
    await this.reading(async () => undefined);
  }

  /** Uses the model without changing it. */
  reading<T>(act: (model: ServerModel) => Promise<T>): Promise<T> {
    return this.retried(() => this.lock.shared(() => this.on(act)));
  }

  /** The model's weights as a checkpoint that samplers load, written once a step. */
  sampling<T>(act: (path: string) => Promise<T>): Promise<T> {
    return this.retried<T>(async () => {
      if (this.sampler === undefined) await this.lock.exclusive(() => this.on((model) => this.writeSampler(model)));
      return this.lock.shared(() => this.on<T | typeof again>(async () => (this.sampler === undefined ? again : act(this.sampler.path))));
    });
  }

  /** Backward passes and a step on their sum. Whatever happens on the way, it is made once, or an error is thrown and it is not made. */
  step(passes: readonly Pass[], adam: Adam): Promise<Outcome> {
    return this.lock.exclusive(async () => {
      for (let attempt = 1; ; attempt++) {
        const model = await this.live();
        let stepped: Stepped;
        try {
          stepped = await model.step(passes, adam);
        } catch (error) {
          await this.abandon(model);
          // A server that cannot write its result down has met a number that is none.
          if (isFault(error, "unreadable")) return "not finite";
          if (attempt === tries || !isFault(error, "ambiguous", "model-lost", "gone", "failed", "taken")) throw error;
          this.maker.notice(`${error.message.slice(0, -`; ${error.mend}`.length)}: the step of ${this.name} is made again on a model loaded anew`);
          continue;
        }
        if (!finite(stepped)) {
          await this.abandon(model);
          return "not finite";
        }
        this.journal.push({ passes, adam });
        await this.forgetSampler();
        if (this.journal.length >= this.saveEvery) await this.saveOwn(model);
        return stepped;
      }
    });
  }

  /** A checkpoint of the present weights and optimizer that stays on the server. */
  save(): Promise<State> {
    return this.retried(() =>
      this.lock.exclusive(() =>
        this.on(async (model) => {
          if (this.state?.optimizer && this.journal.length === 0 && this.own === undefined) return this.state;
          const state = { path: await model.save(), optimizer: true };
          await this.stand(state, undefined);
          return state;
        }),
      ),
    );
  }

  /** The same weights with a new optimizer, in a new model. */
  async forgetOptimizer(): Promise<void> {
    const { path } = await this.save();
    await this.lock.exclusive(async () => {
      this.state = { path, optimizer: false };
      if (this.model) await this.abandon(this.model);
    });
  }

  /** Gives the slot back. */
  close(deadlineMs: number): Promise<void> {
    return this.lock.exclusive(async () => {
      const { model } = this;
      if (model) await this.abandon(model, deadlineMs);
    });
  }

  private async retried<T>(act: () => Promise<T | typeof again>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        const result = await act();
        if (result !== again) return result;
      } catch (error) {
        if (attempt === tries || !isFault(error, "model-lost")) throw error;
      }
    }
  }

  /** Runs on the live model; one that the server has lost is not used again. */
  private async on<T>(act: (model: ServerModel) => Promise<T>): Promise<T> {
    const model = await this.live();
    try {
      return await act(model);
    } catch (error) {
      if (isFault(error, "model-lost")) this.lose(model);
      throw error;
    }
  }

  private live(): Promise<ServerModel> {
    if (this.model) return Promise.resolve(this.model);
    this.reviving ??= this.revive().finally(() => (this.reviving = undefined));
    return this.reviving;
  }

  private async revive(): Promise<ServerModel> {
    for (let attempt = 1; ; attempt++) {
      const model = await this.maker.create();
      this.maker.holds(model.id, true);
      try {
        if (this.state) await model.load(this.state.path, this.state.optimizer);
        for (const { passes, adam } of this.journal) await model.step(passes, adam);
      } catch (error) {
        await this.abandon(model);
        if (attempt === tries || !isFault(error, "ambiguous", "model-lost", "gone")) throw error;
        continue;
      }
      if (this.lived) {
        const steps = this.journal.length;
        this.maker.notice(
          `the model of ${this.name} was loaded anew from ${this.state?.path ?? "its seed"}${steps > 0 ? `, and ${steps} of its steps were made again` : ""}`,
        );
      }
      this.lived = true;
      this.model = model;
      return model;
    }
  }

  private async writeSampler(model: ServerModel): Promise<void> {
    if (this.sampler?.model === model) return;
    this.sampler = { model, ...(await model.saveSampler()) };
  }

  private async forgetSampler(): Promise<void> {
    const { sampler } = this;
    this.sampler = undefined;
    if (sampler) await sampler.model.drop("sampler_weights", sampler.name);
  }

  /** A checkpoint of our own, so that few steps must be made again. One that cannot be written is written after the next step. */
  private async saveOwn(model: ServerModel): Promise<void> {
    try {
      const path = await model.save();
      await this.stand({ path, optimizer: true }, { model, name: path.slice(path.lastIndexOf("/") + 1) });
    } catch (error) {
      if (!isFault(error, "model-lost", "failed", "gone", "taken")) throw error;
      if (error.kind === "model-lost") this.lose(model);
    }
  }

  /** The journal begins anew at a checkpoint. */
  private async stand(state: State, own: Trainee["own"]): Promise<void> {
    const before = this.own;
    this.state = state;
    this.own = own;
    this.journal = [];
    if (before) await before.model.drop("weights", before.name);
  }

  private lose(model: ServerModel): void {
    this.maker.holds(model.id, false);
    if (this.model !== model) return;
    this.model = undefined;
    this.sampler = undefined;
  }

  /** A model whose state is not known, or not wanted any more. */
  private async abandon(model: ServerModel, deadlineMs = 10_000): Promise<void> {
    if (this.model === model) {
      await this.forgetSampler();
      this.model = undefined;
    }
    await model.unload(deadlineMs).catch(() => undefined);
    this.maker.holds(model.id, false);
  }
}

/** Stands for a state that changed meanwhile. */
const again = Symbol("again");

const finite = ({ logprobs, gradNorm }: Stepped): boolean => (gradNorm === undefined || Number.isFinite(gradNorm)) && logprobs.every(allFinite);
