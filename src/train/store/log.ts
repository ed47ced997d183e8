import { createHash, type Hash } from "node:crypto";
import { RunError } from "../../core/errors.js";
import { canonicalJson, type Json } from "../../core/json.js";
import { type Files, faultOf } from "./files.js";

/** An append-only file of JSON lines. Its length is known, so a line that could not be written whole is taken off again. */
export class Log {
  private fd: number | undefined;
  /** Set when a torn line could not be taken off: nothing may follow it. */
  private torn = false;
  /** Over all whole lines, once it was asked for. */
  private hash: Hash | undefined;

  constructor(
    private readonly files: Files,
    readonly path: string,
    /** Bytes of whole lines. */
    private length: number,
    /** What an error adds: what is left of the run. */
    private readonly left: () => string = () => "",
  ) {}

  get offset(): number {
    return this.length;
  }

  /** Appends lines; all of them or, when it throws, none. */
  append(lines: readonly Json[]): void {
    if (this.torn)
      throw new RunError({
        place: this.path,
        cause: `an earlier line could not be written whole${this.left()}`,
        mend: "resume the run: it cuts the line off",
      });
    const text = lines.map((line) => `${this.encode(line)}\n`).join("");
    const bytes = new TextEncoder().encode(text);
    try {
      this.fd ??= this.files.openAppend(this.path);
      this.files.write(this.fd, bytes);
    } catch (error) {
      this.takeOff();
      throw new RunError(
        { place: this.path, cause: `a line could not be written: ${faultOf(error)}${this.left()}`, mend: "free space or mend the disk, then resume the run" },
        { cause: error },
      );
    }
    this.length += bytes.length;
    this.hash?.update(bytes);
  }

  /** SHA-256 over all lines so far. */
  digest(): string {
    this.hash ??= hashPrefix(this.files, this.path, this.length);
    return this.hash.copy().digest("hex");
  }

  /** Takes lines off again, back to an offset of before. */
  rewind(offset: number): void {
    this.length = offset;
    this.hash = undefined;
    this.takeOff();
  }

  sync(): void {
    this.fd ??= this.files.openAppend(this.path);
    this.files.sync(this.fd);
  }

  close(): void {
    const { fd } = this;
    this.fd = undefined;
    if (fd !== undefined) this.files.close(fd);
  }

  private takeOff(): void {
    try {
      if ((this.files.size(this.path) ?? 0) > this.length) this.files.truncate(this.path, this.length);
    } catch {
      this.torn = true;
    }
  }

  private encode(line: Json): string {
    try {
      return canonicalJson(line);
    } catch (error) {
      throw new RunError({ place: this.path, cause: `a record cannot be written: ${(error as Error).message}`, mend: "give finite numbers" }, { cause: error });
    }
  }
}

const piece = 1 << 22;

/** SHA-256 over the first bytes of a file, still open for more. */
export function hashPrefix(files: Files, path: string, length: number): Hash {
  const hash = createHash("sha256");
  for (let at = 0; at < length; at += piece) hash.update(files.readRange(path, at, Math.min(length, at + piece)));
  return hash;
}

/** Whole lines of a JSONL file from an offset on, with the offset after each; a line that is still being written is left for later. */
export function* linesOf(files: Files, path: string, from = 0, to = Number.POSITIVE_INFINITY): Generator<{ text: string; end: number }> {
  const size = Math.min(files.size(path) ?? 0, to);
  const decoder = new TextDecoder();
  let rest = new Uint8Array(0);
  let start = from;
  for (let position = from; position < size; ) {
    const part = files.readRange(path, position, Math.min(size, position + (1 << 20)));
    if (part.length === 0) return;
    position += part.length;
    const bytes = new Uint8Array(rest.length + part.length);
    bytes.set(rest);
    bytes.set(part, rest.length);
    let begin = 0;
    for (let end = bytes.indexOf(10, rest.length); end >= 0; end = bytes.indexOf(10, begin)) {
      yield { text: decoder.decode(bytes.subarray(begin, end)), end: start + end + 1 };
      begin = end + 1;
    }
    rest = bytes.slice(begin);
    start += begin;
  }
}
