/** The programs of docs/serve.md and examples/, as they stand there, against `touchstone serve` in a process of its own. */
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { repository } from "./paths.js";
import { run } from "./run.js";
import { type Running, startTouchstone } from "./support/touchstone.js";

const page = readFileSync(join(repository, "docs", "serve.md"), "utf8");
const folder = mkdtempSync(join(tmpdir(), "touchstone-serve-"));
let server: Running;
let env: NodeJS.ProcessEnv;
beforeAll(async () => {
  for (const [, name, text] of page.matchAll(/```\w+\n(?:#|\/\/) ([\w.]+)\n(.*?)```/gs)) writeFileSync(join(folder, name as string), text as string);
  symlinkSync(join(repository, "node_modules"), join(folder, "node_modules"), "junction");
  server = await startTouchstone(["serve", "starters/calculator", "--verifier", "math", "--port", "0", "--token", "word", "--threads", "1"]);
  env = { ...process.env, TOUCHSTONE_SERVE_URL: server.address, TOUCHSTONE_SERVE_TOKEN: "word" };
});
afterAll(async () => {
  expect(await server.end("SIGTERM")).toBe(0);
  rmSync(folder, { recursive: true, force: true });
});

const python = (code: string) => run("python3", ["-c", code], { cwd: folder, env: { ...env, PYTHONPATH: join(repository, "examples") } });

describe("an example client", () => {
  it("for TRL gets a number an answer, of texts and of messages, and None where there is none", async () => {
    const asked = `import trl_reward
print(trl_reward.reward(["p"] * 3, ["\\\\boxed{1/2}", "\\\\boxed{3}", "x"], answer=["0.5", "4", ""], other=[1, 2, 3]))
print(trl_reward.reward([[]], [[{"role": "assistant", "content": "it is \\\\boxed{7}"}]], answer=["7"]))`;
    expect(await python(asked)).toMatchObject({ code: 0, out: "[1, 0, None]\n[1]\n" });
    expect(
      readFileSync(join(repository, "examples", "trl_reward.py"), "utf8")
        .trim()
        .split("\n").length,
    ).toBeLessThanOrEqual(23);
  });

  it("for verl gets its object, and fails where there is no score", async () => {
    const asked =
      "import verl_reward\nprint(verl_reward.compute_score('gsm8k', '\\\\boxed{12}', '12', {'index': 1}))\nverl_reward.compute_score('gsm8k', '1', '', tries=1)";
    const ran = await python(asked);
    expect(ran.out).toBe("{'score': 1, 'acc': 1, 'kind': 'accept', 'reason': ''}\n");
    expect([ran.code, ran.err.trim().split("\n").at(-1)]).toEqual([1, "RuntimeError: no score: bad-reference"]);
  });

  it("as an agent plays several turns with a tool", async () => {
    const ran = await run("python3", ["agent.py", "7+3-4+2"], { cwd: folder, env });
    expect(ran.err).toBe("");
    expect(ran.out).toBe("calc(7+3)\ncalc(10-4)\ncalc(6+2)\n#8\n");
  });

  it("of OpenAI's kind streams and reads log-probs", async () => {
    const ran = await run(process.execPath, ["policy.mjs"], { cwd: folder, env });
    expect(ran.err).toBe("");
    const [streamed, ...tokens] = ran.out.trimEnd().split("\n");
    expect(streamed).toMatch(/^(calc\(|#)/);
    expect(tokens[0]).toMatch(/^"calc\(" -?\d\.\d{3} \[ 'calc\(', '.*' \]$/);
    expect(tokens.length).toBeGreaterThan(3);
  });

  it("in a shell is the command of the page", async () => {
    const command = /^ {4}(curl .*)$/m.exec(page)?.[1] as string;
    const authorised = command.replace("http://127.0.0.1:7400", server.address).replace("-H ", "-H 'Authorization: Bearer word' -H ");
    const ran = await run("sh", ["-c", authorised], { env });
    expect(JSON.parse(ran.out).results).toMatchObject([{ kind: "accept", reward: 1 }]);
  });
});

describe("the process", () => {
  const post = (body: unknown, path = "/reward?token=word") =>
    fetch(server.address + path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: typeof body === "string" ? body : JSON.stringify(body),
    });

  it("refuses a port that is taken, a host without a token and nothing to serve, each in a sentence", async () => {
    const { port } = new URL(server.address);
    await expect(startTouchstone(["serve", "--verifier", "math", "--port", port])).rejects.toThrow(
      /ended with 2: [\s\S]*EADDRINUSE\); give another with --port/,
    );
    await expect(startTouchstone(["serve", "--verifier", "math", "--port", "0", "--host", "203.0.113.1"])).rejects.toThrow(
      /EADDRNOTAVAIL\); give an address of this machine/,
    );
    await expect(startTouchstone(["serve"])).rejects.toThrow("there is nothing to be served");
    await expect(startTouchstone(["serve", "--verifier", "math", "--port", "99999"])).rejects.toThrow(/ended with 2: [\s\S]*error: option --port: it is 99999/);
    await expect(startTouchstone(["serve", "--verifier", "math", "--port", "0", "--token", "wo rd"])).rejects.toThrow(/ended with 2: error: option --token/);
  });

  it("answers on IPv6 by its own name there", async () => {
    const six = await startTouchstone(["serve", "--verifier", "math", "--port", "0", "--host", "::1", "--verifier-workers", "0"]);
    expect(six.address).toMatch(/^http:\/\/\[::1\]:\d+$/);
    expect((await fetch(`${six.address}/health`)).status).toBe(200);
    expect(await six.end("SIGINT")).toBe(0);
  });

  it("that is killed leaves its clients an error at once, and its port free", async () => {
    const killed = await startTouchstone(["serve", "--verifier", "./test/support/slow-reward.ts", "--port", "0"]);
    const asked = fetch(`${killed.address}/reward`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ items: Array.from({ length: 500 }, () => ({ response: "1 slow", reference: "1" })) }),
    }).then(
      () => "answered",
      () => "failed",
    );
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(await killed.end("SIGKILL")).toBe("SIGKILL");
    expect(await asked).toBe("failed");
    const again = await startTouchstone(["serve", "--verifier", "math", "--port", new URL(killed.address).port, "--verifier-workers", "0"]);
    expect(await again.end()).toBe(0);
  });

  it("ends with a word where its engine was ended", async () => {
    const lost = await startTouchstone(["serve", "starters/chain-100k", "--port", "0", "--threads", "1"]);
    const ask = () =>
      fetch(`${lost.address}/v1/completions`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ prompt: "5+3", max_tokens: 8 }),
      });
    expect((await ask()).status).toBe(200);
    const children = (await run("ps", ["-o", "pid=,args=", "--ppid", String(lost.child.pid)])).out;
    const [, pid] = /^\s*(\d+) .*engine\/onnx\/process/m.exec(children) as RegExpExecArray;
    const ended = new Promise((resolve) => lost.child.once("exit", resolve));
    process.kill(Number(pid), "SIGKILL");
    expect((await ask()).status).toBe(500);
    expect(await ended).toBe(1);
    expect(lost.told()).toMatch(/^error: .*its process \d+ ended \(killed by SIGKILL/m);
  });

  it("takes what nobody means, from many at once, and answers the next as before", async () => {
    const chat = (more: object) =>
      post({ messages: [{ role: "user", content: "7+3-4+2" }], temperature: 0, max_tokens: 12, ...more }, "/v1/chat/completions?token=word");
    const statuses = await Promise.all(
      [
        post({ items: Array.from({ length: 9000 }, () => ({ response: "1", reference: "1" })) }),
        post({ items: [{ response: "\ud800\udfff\u0000\u202e".repeat(10_000), reference: "1" }] }),
        post({ items: [{ response: "((((".repeat(50_000), reference: "1" }] }),
        post({ items: [{ response: `\\boxed{9^{9^{9^{9}}}}`, reference: "1" }] }),
        post('{"items": [{"response": "1", "__proto__": {"reference": "1"}}]}'),
        post('{"items": [{"response": "1", "reference": 1e999}]}'),
        chat({ n: 1e9 }),
        chat({ max_tokens: 1e9 }),
        chat({ max_tokens: -1 }),
        chat({ seed: 1e300 }),
        chat({ stop: ["", "(", "😀", "\n".repeat(1000)] }),
        chat({ stop: Array.from({ length: 65 }, (_, i) => `s${i}`) }),
        chat({ messages: [{ role: "user", content: "日本 😀" }] }),
        chat({ messages: [{ role: "wizard", content: "1" }] }),
        chat({ messages: [{ role: "user", content: "1+".repeat(5000) }] }),
        chat({ stream: true, temperature: 1e308 }),
        chat({ n: 128, temperature: 1 }),
      ].map(async (asked) => (await asked).status),
    );
    expect(statuses).toEqual([413, 200, 200, 200, 400, 400, 400, 200, 400, 400, 200, 400, 400, 400, 400, 400, 200]);
    const { choices } = (await (await chat({})).json()) as { choices: { message: { content: string } }[] };
    expect(choices[0]?.message.content).toBe("calc(7+3)");
    expect((await (await chat({ stop: ["7+"] })).json()).choices[0]).toMatchObject({ message: { content: "calc(" }, finish_reason: "stop" });
    expect(server.told()).not.toMatch(/Error|at .*\.js:/);
  });
});
