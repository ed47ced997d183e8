/** The start of an engine on a server: connection, session, what the server does, and the base that it trains. */
import type { EngineInfo } from "../contract.js";
import { abilitiesOf } from "./abilities.js";
import { Connection, defaultLimits, type Limits } from "./connection.js";
import { faultOf } from "./faults.js";
import { ServerModel, type ServerTraits } from "./model.js";
import { baseOf, dialectOf, modelsOf, type TrainTraits, traitsOf } from "./probe.js";
import type { Server } from "./roles.js";
import { Session } from "./session.js";
import { type Maker, type State, Trainee } from "./trainee.js";

export interface TinkerOptions {
  /** Address of the server, such as http://127.0.0.1:8000. */
  readonly baseUrl: string;
  /** Sent as X-API-Key. */
  readonly key?: string;
  /** The server's name of the model to be trained; absent: its only one. */
  readonly baseModel?: string;
  /** Of the adapters. Default 16. */
  readonly rank?: number;
  /** Of the adapters' first numbers. Default 0. */
  readonly seed?: number;
  readonly limits?: Partial<Limits>;
  readonly heartbeatMs?: number;
  /** Steps between checkpoints of the client's own, from which lost models are made again. Default 10. */
  readonly saveEvery?: number;
  /** Whether anything is to be trained. Without, the server is not asked how it trains, which takes a model and seconds. Default true. */
  readonly trains?: boolean;
  /**
   * Response budgets are asked for in multiples of this, and cut here. A server that compiles for shapes (JAX) then compiles
   * once where budgets differ from call to call, as in conversations, and draws tokens that nobody reads. Default 1.
   */
  readonly roundTokens?: number;
  /** Told in a sentence what is waited for, or was made again. */
  readonly onNotice?: (text: string) => void;
}

export const defaultRank = 16;

export class ServerLink implements Server {
  readonly info: EngineInfo;
  readonly maker: Maker;

  private constructor(
    readonly connection: Connection,
    private readonly session: Session,
    server: ServerTraits,
    private readonly trains: TrainTraits | undefined,
    readonly baseModel: string,
    private readonly options: TinkerOptions,
  ) {
    this.info = {
      name: "tinker",
      ...abilitiesOf(trains),
      fingerprint: { server: { ...server, ...trains }, base: baseModel, rank: this.rank },
    };
    const { onNotice = () => undefined } = options;
    this.maker = {
      create: async () => this.create(server),
      holds: (model, held) => session.holds(model, held),
      notice: onNotice,
    };
  }

  /** Connects and probes. Throws ServerFault where nobody answers as the protocol says, ConfigError for a base that the server does not train. */
  static async open(options: TinkerOptions): Promise<ServerLink> {
    const { baseUrl, key, onNotice = () => undefined } = options;
    const connection = new Connection(baseUrl, key, { ...defaultLimits, ...options.limits }, onNotice);
    let session: Session | undefined;
    try {
      const base = baseOf(await modelsOf(connection), options.baseModel, connection.place);
      const dialect = await dialectOf(connection);
      session = new Session(connection, options);
      const opened = session;
      if (options.trains === false) return new ServerLink(connection, session, { dialect, deduplicates: false }, undefined, base, options);
      const make = async (): Promise<ServerModel> => {
        // Nothing of what is asked here matters if it is applied twice.
        const traits = { dialect, deduplicates: true };
        const model = await ServerModel.create(connection, traits, await opened.current(), { base, rank: options.rank ?? defaultRank, seed: 0 });
        opened.holds(model.id, true);
        return model;
      };
      const release = async (model: ServerModel): Promise<void> => {
        await model.unload(30_000).catch(() => undefined);
        opened.holds(model.id, false);
      };
      const { deduplicates, ...trains } = await traitsOf(connection, { make, release });
      return new ServerLink(connection, session, { dialect, deduplicates }, trains, base, options);
    } catch (error) {
      await session?.close();
      connection.close();
      throw error;
    }
  }

  get place(): string {
    return this.connection.place;
  }

  get multiple(): number {
    return this.options.roundTokens ?? 1;
  }

  /** Of an engine that trains: whatever trains was refused before where it was opened without. */
  get reduction(): TrainTraits["reduction"] {
    return (this.trains as TrainTraits).reduction;
  }

  get rank(): number {
    return this.options.rank ?? defaultRank;
  }

  trainee(name: string, state: State | undefined): Trainee {
    return new Trainee(name, this.maker, state, this.options.saveEvery ?? 10);
  }

  async archive(samplerPath: string): Promise<Uint8Array> {
    const [, model, name] = /^tinker:\/\/([^/]+)\/(?:sampler_weights\/)?([^/]+)$/.exec(samplerPath) ?? [];
    const what = `the archive of ${samplerPath}`;
    let path = `/api/v1/training_runs/${model}/checkpoints/${name}/archive`;
    for (let hops = 0; ; hops++) {
      const answer = await this.connection.raw({ method: "GET", path });
      const { location } = answer.headers;
      if (answer.status === 200) return answer.body;
      if (location === undefined || hops === 3) throw faultOf("failed", answer, this.place, what);
      path = new URL(location, this.connection.base).href;
    }
  }

  async close(): Promise<void> {
    await this.session.close();
    this.connection.close();
  }

  private async create(traits: ServerTraits): Promise<ServerModel> {
    return ServerModel.create(this.connection, traits, await this.session.current(), { base: this.baseModel, rank: this.rank, seed: this.options.seed ?? 0 });
  }
}
