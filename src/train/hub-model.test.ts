/** Models by hub id, from a local server that serves the hub's paths. */
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { fixture } from "../../test/paths.js";
import { inspectFolder } from "../engine/onnx/folder.js";
import { fetchModel, hubId } from "./hub-model.js";

const commit = "c".repeat(40);
const source = fixture("models", "qwen3");
const listed = ["config.json", "generation_config.json", "model.safetensors", "expected.json"];

interface Hub {
  readonly server: Server;
  readonly endpoint: string;
  readonly asked: string[];
  readonly tokens: Set<string | undefined>;
}
const started: Server[] = [];
afterEach(() => {
  for (const server of started.splice(0)) server.close();
});

/** A hub with one model; `spoil` changes what is sent of a file. */
async function hub(spoil: (name: string, bytes: Buffer) => Buffer = (_name, bytes) => bytes): Promise<Hub> {
  const asked: string[] = [];
  const tokens = new Set<string | undefined>();
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url as string, "http://hub");
    asked.push(pathname);
    tokens.add(request.headers.authorization);
    const json = (value: unknown): void => void response.setHeader("content-type", "application/json").end(JSON.stringify(value));
    const bytes = (name: string): Buffer => readFileSync(join(source, name));
    if (pathname.startsWith("/api/models/me/tiny/revision/"))
      return json({ _id: "1", id: "me/tiny", sha: commit, private: false, downloads: 1, likes: 1, gated: false, lastModified: "2026-01-01T00:00:00.000Z" });
    if (pathname === `/api/models/me/tiny/tree/${commit}`) {
      return json(
        listed.map((path) => ({
          type: "file",
          path,
          oid: createHash("sha1").update(path).digest("hex"),
          size: bytes(path).length,
          ...(path.endsWith(".safetensors")
            ? { lfs: { oid: createHash("sha256").update(bytes(path)).digest("hex"), size: bytes(path).length, pointerSize: 130 } }
            : {}),
        })),
      );
    }
    const name = new RegExp(`^/me/tiny/resolve/${commit}/(.+)$`).exec(pathname)?.[1];
    if (name !== undefined && listed.includes(name)) {
      const whole = spoil(name, bytes(name));
      const [, from, to] = /bytes=(\d+)-(\d*)/.exec(request.headers.range ?? "") ?? [];
      const end = to === undefined || to === "" ? whole.length - 1 : Math.min(Number(to), whole.length - 1);
      response.setHeader("etag", '"1"');
      if (from === undefined) return void response.end(whole);
      response.statusCode = 206;
      response.setHeader("content-range", `bytes ${from}-${end}/${whole.length}`);
      return void response.end(whole.subarray(Number(from), end + 1));
    }
    response.statusCode = pathname.includes("secret") ? 401 : 404;
    response.end("{}");
  });
  started.push(server);
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  return { server, endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked, tokens };
}

const cacheOf = (): string => mkdtempSync(join(tmpdir(), "hub-"));
const tiny = hubId("me/tiny") as NonNullable<ReturnType<typeof hubId>>;

describe("a hub id", () => {
  it("is read with its revision and file", () => {
    expect(hubId("a/b")).toEqual({ name: "a/b", revision: "main" });
    expect(hubId("a/b@v1.0")).toEqual({ name: "a/b", revision: "v1.0" });
    expect(hubId("a/b/sub/x.Q4_0.gguf")).toEqual({ name: "a/b", revision: "main", file: "sub/x.Q4_0.gguf" });
    for (const text of ["model", "./a/b", "../a", "/a/b", "a/b/c", "a b/c"]) expect(hubId(text), text).toBeUndefined();
  });
});

describe("fetching a model", () => {
  it("brings what is needed, with the token, and asks for no file twice", async () => {
    const { endpoint, asked, tokens } = await hub();
    const cache = cacheOf();
    const folder = await fetchModel(tiny, { endpoint, cache, token: "hf_x" });
    expect((await inspectFolder(folder)).family).toBe("qwen3");
    expect(
      readdirSync(folder)
        .filter((name) => !name.startsWith("."))
        .sort(),
    ).toEqual(["config.json", "generation_config.json", "model.safetensors"]);
    expect(tokens).toEqual(new Set(["Bearer hf_x"]));
    const before = asked.length;
    expect(await fetchModel(tiny, { endpoint, cache, token: "hf_x" })).toBe(folder);
    expect(asked.slice(before).filter((path) => path.includes("resolve"))).toEqual([]);
  });

  it("uses what was fetched where the hub is away", async () => {
    const { endpoint, server } = await hub();
    const cache = cacheOf();
    const folder = await fetchModel(tiny, { endpoint, cache });
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
    expect(await fetchModel(tiny, { endpoint, cache })).toBe(folder);
    await expect(fetchModel(tiny, { endpoint, cache: cacheOf() })).rejects.toThrow(
      /model me\/tiny: the hub at \S+ cannot be reached .*; give the model's folder/,
    );
  });

  it("leaves nothing of a file that arrives damaged", async () => {
    const { endpoint } = await hub((name, bytes) =>
      name.endsWith(".safetensors") ? Buffer.from(bytes.map((byte, i) => (i === 5000 ? byte ^ 1 : byte))) : bytes,
    );
    const cache = cacheOf();
    await expect(fetchModel(tiny, { endpoint, cache })).rejects.toThrow(/model me\/tiny, model.safetensors: it arrived damaged/);
    expect(existsSync(join(cache, "me--tiny", commit, "model.safetensors"))).toBe(false);
  });

  it.each([
    ["me/none", /model me\/none: the hub has no such model, or no revision main/],
    ["me/secret", /the hub refuses it \(401\); set HF_TOKEN/],
    ["me/tiny/x.gguf", /it has no file x.gguf; name the model alone/],
  ])("refuses %s in a sentence", async (text, says) => {
    const { endpoint } = await hub();
    await expect(fetchModel(hubId(text) as typeof tiny, { endpoint, cache: cacheOf() })).rejects.toThrow(says);
  });
});
