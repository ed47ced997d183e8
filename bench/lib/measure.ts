/** Runs workers (worker.ts) and collects what they found. */
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { allocator } from "./peers.js";
import type { Found, Work } from "./worker.js";

const worker = fileURLToPath(new URL("./worker.ts", import.meta.url));

/** Runs equal workers at the same time. */
export async function measure(works: readonly Work[]): Promise<Found[]> {
  const children = works.map((work) => fork(worker, [JSON.stringify(work)], { execArgv: ["--import", "tsx"], env: { ...process.env, ...allocator } }));
  const next = (child: (typeof children)[number]) =>
    new Promise<unknown>((resolve, reject) => {
      child.once("message", resolve);
      child.once("exit", (code) => reject(new Error(`the worker ended with ${code}`)));
    });
  await Promise.all(children.map(next));
  const results = children.map(next);
  for (const child of children) child.send("go");
  return (await Promise.all(results)) as Found[];
}
