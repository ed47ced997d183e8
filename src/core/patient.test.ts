/** Calls to a real server that fails in every way. */
import { afterEach, describe, expect, it } from "vitest";
import { type StubReply, type StubRequest, type StubServer, stubServer } from "../../test/support/stub-server.js";
import { Http, LostAnswer } from "./http.js";
import { CallFault, Patient, type PatientOptions, waitOf } from "./patient.js";

const open: StubServer[] = [];
afterEach(async () => {
  for (const server of open.splice(0)) await server.close();
});

async function start(reply: (request: StubRequest) => StubReply, options: Partial<PatientOptions> = {}) {
  const server = await stubServer(reply);
  open.push(server);
  const http = new Http(server.url, { headers: { authorization: "Bearer secret-key" } });
  const patient = new Patient(http, { concurrency: 4, deadlineMs: 300, retries: 2, ...options });
  const call = (signal?: AbortSignal): Promise<string> =>
    patient.call({ method: "POST", path: "/x", body: "{}", ...(signal && { signal }) }, ({ body }) => body.toString());
  return { server, http, call };
}

const faultOf = (promise: Promise<unknown>): Promise<CallFault> =>
  promise.then(
    () => expect.fail("it was answered"),
    (error: unknown) => {
      if (error instanceof CallFault) return error;
      throw error;
    },
  );

describe("a call", () => {
  it.each<[string, StubReply]>([
    ["a cut connection", "drop"],
    ["half a body", { half: '{"a":' }],
    ["silence", "silence"],
    ["status 500", { status: 500 }],
    ["status 429", { status: 429, headers: { "retry-after": "0" } }],
    ["status 408", { status: 408 }],
  ])("is tried again after %s", async (_, fault) => {
    const { server, call } = await start(({ number }) => (number === 0 ? fault : { body: "whole" }));
    expect(await call()).toBe("whole");
    expect(server.requests).toHaveLength(2);
  });

  it.each([400, 401, 404, 422])("is not tried again after status %d, and says what the server said", async (status) => {
    const { server, call } = await start(() => ({ status, body: "no such thing\nmore" }));
    const fault = await faultOf(call());
    expect(fault).toMatchObject({ reason: "refused", status, passing: false });
    expect(fault.message).toBe(`server at ${server.url}: status ${status} (no such thing)`);
    expect(server.requests).toHaveLength(1);
  });

  it("gives up after its tries, with the last fault", async () => {
    const { server, call } = await start(() => "silence", { deadlineMs: 100 });
    expect(await faultOf(call())).toMatchObject({ reason: "timeout", message: `server at ${server.url}: no answer within 100 ms` });
    expect(server.requests).toHaveLength(3);
  });

  it("never tells its key", async () => {
    const { server, call } = await start(() => ({ status: 401 }));
    expect((await faultOf(call())).message).not.toContain("secret");
    expect(server.requests[0]?.headers.authorization).toBe("Bearer secret-key");
  });

  it("waits as long as the server asks, and all others wait with it", async () => {
    const times: number[] = [];
    const { call } = await start(({ number }) => {
      times.push(Date.now());
      return number === 0 ? { status: 429, headers: { "retry-after": "0.6" } } : { body: "done" };
    });
    const first = call();
    while (times.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    await new Promise((resolve) => setTimeout(resolve, 100));
    await Promise.all([first, call(), call()]);
    // The other two came after the refusal, and none was sent before the time was over.
    for (const time of times.slice(1)) expect(time - (times[0] as number)).toBeGreaterThanOrEqual(590);
  });

  it("is given up at once where the server asks for more patience than there is", async () => {
    const { server, call } = await start(() => ({ status: 429, headers: { "retry-after": "3600" } }));
    expect((await faultOf(call())).message).toBe(`server at ${server.url}: status 429 ({}), and it asks to wait for 3600 s`);
    expect(server.requests).toHaveLength(1);
  });

  it("ends with its signal, in line and under way", async () => {
    const { server, call } = await start(() => "silence", { concurrency: 1, deadlineMs: 60_000 });
    const stop = new AbortController();
    const calls = [call(stop.signal), call(stop.signal)].map((promise) => promise.catch((error: unknown) => error));
    while (server.requests.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    stop.abort(new Error("enough"));
    expect(await Promise.all(calls)).toEqual([new Error("enough"), new Error("enough")]);
    expect(server.requests).toHaveLength(1);
  });
});

describe("many calls", () => {
  it("keep to their number at once, and all are answered", async () => {
    const { server, call } = await start(({ number }) => ({ body: String(number), afterMs: 5 }), { concurrency: 3 });
    const answers = await Promise.all(Array.from({ length: 30 }, () => call()));
    expect(new Set(answers).size).toBe(30);
    expect(server.most).toBe(3);
  });
});

describe("an exchange", () => {
  it("tells its body piece by piece, and that it broke off", async () => {
    const { http } = await start(({ number }) => (number === 0 ? { pieces: ["one ", "two"] } : { half: "thr" }));
    const told: string[] = [];
    const call = { method: "GET", path: "/", deadlineMs: 300, onPiece: (piece: Buffer) => void told.push(piece.toString()) } as const;
    expect((await http.send(call)).body).toHaveLength(0);
    expect(told.join("")).toBe("one two");
    await expect(http.send(call)).rejects.toBeInstanceOf(LostAnswer);
  });

  it.each([
    ["nothing", "it is no address"],
    ["ftp://host", "it begins with ftp:"],
    ["http://me:word@host", "it holds a name or password"],
  ])("refuses the address %s", (address, cause) => {
    expect(() => new Http(address, { place: "option --base-url" })).toThrow(cause.slice(3));
  });
});

describe("Retry-After", () => {
  it("is read as seconds, as a date, and in milliseconds", () => {
    const now = Date.parse("2026-01-01T00:00:00Z");
    expect(waitOf({}, now)).toBeUndefined();
    expect(waitOf({ "retry-after": "2" }, now)).toBe(2000);
    expect(waitOf({ "retry-after": "Thu, 01 Jan 2026 00:00:05 GMT" }, now)).toBe(5000);
    expect(waitOf({ "retry-after": "Wed, 31 Dec 2025 00:00:00 GMT" }, now)).toBe(0);
    expect(waitOf({ "retry-after": "soon" }, now)).toBeUndefined();
    expect(waitOf({ "retry-after-ms": "15", "retry-after": "9" }, now)).toBe(15);
  });
});
