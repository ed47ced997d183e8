import type { Socket } from "node:net";
import { EngineError } from "../../core/errors.js";
import { encodeFrame, FrameDecoder } from "./frames.js";

export interface LinkEvents {
  /** Names the other side in errors. */
  readonly place: string;
  readonly limit?: number;
  readonly onMessage: (message: unknown) => void;
  /** Called once, when nothing more will come; the error tells why, where it was not an orderly end. */
  readonly onEnd: (error?: EngineError) => void;
}

/** One connection that carries whole messages both ways. */
export class Link {
  private readonly decoder: FrameDecoder;
  private draining: Promise<void> | undefined;
  private ended = false;

  constructor(
    private readonly socket: Socket,
    private readonly events: LinkEvents,
  ) {
    this.decoder = new FrameDecoder(events);
    socket.setNoDelay(true);
    // A machine that vanished never closes its socket; the kernel asks on our behalf, also while the engine computes.
    socket.setKeepAlive(true, 10_000);
    socket.on("data", (chunk) => this.receive(chunk));
    socket.on("error", (error) =>
      this.finish(new EngineError({ place: events.place, cause: `the connection failed (${error.message})`, mend: "check that the engine still runs" })),
    );
    socket.on("close", () => this.atEnd());
  }

  /** Frames of more bytes are refused from now on. */
  set limit(bytes: number) {
    this.decoder.limit = bytes;
  }

  /** Sends a message; resolves when the socket takes more. A closed link drops it: `onEnd` tells. */
  async send(message: unknown): Promise<void> {
    const chunks = encodeFrame(message);
    if (!this.socket.writable) return;
    this.socket.cork();
    let room = true;
    for (const chunk of chunks) room = this.socket.write(chunk);
    this.socket.uncork();
    if (!room || this.draining) await this.drain();
  }

  /** Ends the connection after what was sent. */
  close(): void {
    this.socket.end();
  }

  destroy(): void {
    this.socket.destroy();
  }

  /** Whether this connection keeps the process alive. */
  hold(alive: boolean): void {
    if (alive) this.socket.ref();
    else this.socket.unref();
  }

  private drain(): Promise<void> {
    this.draining ??= new Promise((resolve) => {
      const done = (): void => {
        this.socket.off("drain", done).off("close", done);
        this.draining = undefined;
        resolve();
      };
      this.socket.on("drain", done).on("close", done);
    });
    return this.draining;
  }

  private receive(chunk: Uint8Array): void {
    if (this.ended) return;
    let messages: unknown[];
    try {
      messages = this.decoder.push(chunk);
    } catch (error) {
      this.finish(error as EngineError);
      return;
    }
    for (const message of messages) this.events.onMessage(message);
  }

  private atEnd(): void {
    if (this.ended) return;
    try {
      this.decoder.end();
      this.finish();
    } catch (error) {
      this.finish(error as EngineError);
    }
  }

  private finish(error?: EngineError): void {
    if (this.ended) return;
    this.ended = true;
    this.events.onEnd(error);
    // What onEnd sent (a refusal) still goes out.
    this.socket.destroySoon();
  }
}
