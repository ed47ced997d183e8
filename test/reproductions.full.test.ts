/** Two demonstrations as `touchstone reproduce --quick` runs them, the next two at the next commit (`TOUCHSTONE_TURN` picks others). */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { turn } from "../proofs/record.js";
import { demonstrations } from "../src/reproduce/find.js";
import { reproduce } from "../src/reproduce/reproduce.js";

const atATime = 2;
const all = await demonstrations();
const first = atATime * turn();
const due = Array.from({ length: Math.min(atATime, all.length) }, (_, i) => all[(first + i) % all.length] as (typeof all)[number]);

describe("demonstrations that are due", () => {
  it.each(due.map((found) => [found.id, found] as const))("%s ends in a quick run, with the numbers that its claims compare", async (id, found) => {
    const result = await reproduce(found, { quick: true, atOnce: 2, out: join(mkdtempSync(join(tmpdir(), "touchstone-quick-")), id) });
    expect(result).toMatchObject({ id, outcome: null, failed: [] });
    for (const { arm, metrics } of result?.arms ?? []) expect(Object.values(metrics).filter(({ mean }) => mean !== null).length, arm).toBeGreaterThan(0);
    expect(result?.claims.length).toBeGreaterThan(0);
  });
});
