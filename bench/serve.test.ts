/** The short version of `npm run bench serve`: two hundred graders at once for some seconds, and those who mean harm beside them. No time is asked here. */
import { connect } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Running, startTouchstone } from "../test/support/touchstone.js";
import { grading } from "./lib/graders.js";

const problems = Array.from({ length: 50 }, (_, i) => ({ solution: `Twice ${i} and one is \\boxed{${2 * i + 1}}.`, answer: String(2 * i + 1) }));
let server: Running;
beforeAll(async () => {
  server = await startTouchstone(["serve", "--verifier", "math", "--port", "0"]);
});
afterAll(async () => {
  expect(await server.end()).toBe(0);
});

it("200 graders at once have no error and no wrong verdict, while others send what is huge, deep, binary, slow or half", async () => {
  const { hostname, port } = new URL(server.address);
  let hostile = true;
  const sent = { refused: 0, broken: 0 };
  const raw = (text: string | Buffer, thenEnd: boolean): Promise<void> =>
    new Promise((resolve) => {
      const socket = connect(Number(port), hostname, () => {
        socket.write(text);
        if (thenEnd) socket.end();
        else setTimeout(() => socket.destroy(), 300);
      });
      socket.on("data", (data) => {
        if (/^HTTP\/1\.1 4\d\d/.test(data.toString("latin1"))) sent.refused++;
      });
      socket.on("error", () => sent.broken++);
      socket.on("close", () => resolve());
    });
  const head = (length: number): string => `POST /reward HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`;
  const attacks: (() => Promise<void>)[] = [
    () => raw(head(20_000_000), false),
    () => raw(head(200_000) + "[".repeat(200_000), true),
    () => raw(Buffer.concat([Buffer.from(head(5000)), Buffer.from(Uint8Array.from({ length: 5000 }, (_, i) => (i * 7919) % 256))]), true),
    () => raw(`${head(1000)}{"items": [`, false),
    () => raw("\u0000\u0001\u0002 / HTTP/9.9\r\n\r\n", true),
    () => raw(`GET /${"a".repeat(100_000)} HTTP/1.1\r\nHost: localhost\r\n\r\n`, true),
  ];
  const harm = Promise.all(
    attacks.map(async (attack) => {
      while (hostile) await attack();
    }),
  );
  const { count, errors, wrong } = await grading({ address: server.address, problems, graders: 200, seconds: 4, thinkMs: 300 });
  hostile = false;
  await harm;
  expect(errors).toEqual([]);
  expect(wrong).toBe(0);
  expect(count).toBeGreaterThan(200);
  expect(sent.refused).toBeGreaterThan(5);
  expect(server.told()).not.toMatch(/Error/);
});
