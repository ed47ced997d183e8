import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { isLoopback, sameSecret } from "../../core/access.js";
import { ConfigError, EngineError, errorToJson } from "../../core/errors.js";
import type { Engine, Forward, SampleRequest } from "../contract.js";
import { dispatch } from "./dispatch.js";
import { defaultFrameLimit } from "./frames.js";
import { Link } from "./link.js";
import { type Address, describeAddress, infoToWire, type Reply, type Request } from "./messages.js";

export interface ServeOptions {
  readonly engine: Engine;
  /** A TCP port of 0 takes any free one. */
  readonly listen: Address;
  /** What a client must present; required for addresses that other machines reach. */
  readonly token?: string;
  /** The largest frame taken, in bytes. */
  readonly frameLimit?: number;
}

export interface EngineServer {
  /** Where it listens, with the port that was free. */
  readonly address: Address;
  /** Cuts all connections, which aborts their calls. The engine stays open. */
  close(): Promise<void>;
}

/** Until a client has shown its token it gets no more memory than this. */
const helloLimit = 65536;
const beatMs = 1000;

/** Serves an engine over a socket to any number of clients, each with any number of calls in flight. */
export async function serveEngine(options: ServeOptions): Promise<EngineServer> {
  const { listen } = options;
  if ("host" in listen && !isLoopback(listen.host) && !options.token) {
    throw new ConfigError({
      place: `engine address ${describeAddress(listen)}`,
      cause: "other machines can reach it and no token is set",
      mend: "set a token or listen on 127.0.0.1",
    });
  }
  const clients = new Set<Client>();
  const server = createServer((socket) => {
    const client = new Client(socket, options, () => clients.delete(client));
    clients.add(client);
  });
  await listening(server, listen);
  // A beat tells that the engine's thread is free; one that computes for long sends none, so silence proves nothing.
  const beat = setInterval(() => {
    for (const client of clients) client.beat();
  }, beatMs);
  beat.unref();
  return {
    address: "path" in listen ? listen : { host: listen.host, port: (server.address() as AddressInfo).port },
    close: async () => {
      clearInterval(beat);
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const client of clients) client.destroy();
      await closed;
    },
  };
}

function listening(server: Server, listen: Address): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (error) =>
      reject(
        new EngineError({
          place: `engine address ${describeAddress(listen)}`,
          cause: `cannot listen there (${error.message})`,
          mend: "choose another address, or remove a socket that is left over",
        }),
      ),
    );
    server.listen(listen, () => resolve());
  });
}

/** One connected client: its calls, and the forward handles that are freed when it goes. */
class Client {
  private readonly link: Link;
  private readonly calls = new Map<number, AbortController>();
  /** Of sample calls: the responses that the client ends. */
  private readonly stopped = new Map<number, Set<number>>();
  private readonly handles = new Set<string>();
  private welcome = false;
  private gone = false;

  constructor(
    socket: Socket,
    private readonly options: ServeOptions,
    onGone: () => void,
  ) {
    this.link = new Link(socket, {
      place: "engine client",
      limit: helloLimit,
      onMessage: (message) => this.receive(message as Request),
      onEnd: (error) => {
        if (error) this.reply({ type: "refused", error: errorToJson(error) });
        this.leave();
        onGone();
      },
    });
  }

  beat(): void {
    if (this.welcome) this.reply({ type: "beat", calls: this.calls.size });
  }

  destroy(): void {
    this.link.destroy();
  }

  private get engine(): Engine {
    return this.options.engine;
  }

  private reply(reply: Reply): Promise<void> {
    return this.link.send(reply);
  }

  private receive(message: Request): void {
    if (this.gone) return;
    if (!this.welcome) this.greet(message);
    else if (message.type === "call") void this.run(message.id, message.method, message.args);
    else if (message.type === "cancel") this.calls.get(message.id)?.abort();
    else if (message.type === "stop") this.stopped.get(message.id)?.add(message.index);
  }

  private greet(message: Request): void {
    const { token } = this.options;
    if (message.type !== "hello" || (token !== undefined && !sameSecret(message.token ?? "", token))) {
      const error = new EngineError({
        place: "engine",
        cause: "it refused the connection because the token is missing or wrong",
        mend: "give the token that the engine was started with",
      });
      void this.reply({ type: "refused", error: errorToJson(error) });
      this.gone = true;
      this.link.close();
      return;
    }
    this.welcome = true;
    this.link.limit = this.options.frameLimit ?? defaultFrameLimit;
    void this.reply({ type: "welcome", info: infoToWire(this.engine.info), pid: process.pid });
  }

  private async run(id: number, method: string, args: readonly unknown[]): Promise<void> {
    const controller = new AbortController();
    const { signal } = controller;
    this.calls.set(id, controller);
    try {
      if (method === "sample") {
        await this.sample(id, args[0] as SampleRequest[], args[1] === true, signal);
        await this.reply({ type: "done", id });
      } else await this.reply({ type: "done", id, value: await this.call(method, args, signal) });
    } catch (error) {
      await this.reply({ type: "failed", id, error: errorToJson(error), cancelled: signal.aborted });
    } finally {
      this.calls.delete(id);
      this.stopped.delete(id);
    }
  }

  /** `tell`: each token too, those of one decoded step in one message. */
  private async sample(id: number, requests: readonly SampleRequest[], tell: boolean, signal: AbortSignal): Promise<void> {
    const stopped = new Set<number>();
    this.stopped.set(id, stopped);
    let pairs: number[] = [];
    const flush = (): void => {
      if (pairs.length > 0) void this.reply({ type: "tokens", id, pairs: Int32Array.from(pairs) });
      pairs = [];
    };
    const onToken = (index: number, token: number): boolean => {
      if (pairs.length === 0) setImmediate(flush);
      pairs.push(index, token);
      return stopped.has(index);
    };
    for await (const value of this.engine.sample(requests, { signal, ...(tell && { onToken }) })) {
      if (this.gone) break;
      flush();
      await this.reply({ type: "item", id, value });
    }
  }

  /** Makes a call, keeping account of the forward handles that this client holds. */
  private async call(method: string, args: readonly unknown[], signal: AbortSignal): Promise<unknown> {
    const used = method === "backward" || method === "release" ? (args[0] as string) : undefined;
    const held = used !== undefined && this.handles.delete(used);
    try {
      const value = await dispatch(this.engine, method, args, { signal });
      if (method === "forward") this.keep((value as Forward).handle);
      return value;
    } catch (error) {
      if (held && method === "backward") this.keep(used);
      throw error;
    }
  }

  private keep(handle: string): void {
    this.handles.add(handle);
    if (this.gone) this.releaseAll();
  }

  private leave(): void {
    this.gone = true;
    for (const controller of this.calls.values()) controller.abort();
    this.releaseAll();
  }

  private releaseAll(): void {
    for (const handle of this.handles) {
      // Nobody is left to be told when the engine is closing already.
      this.engine.release(handle).catch(() => undefined);
    }
    this.handles.clear();
  }
}
