/** One shortened case of each proof, in rotation. */
import { expect, it } from "vitest";
import { beyondLimits, caseDue, loadProof, proofNames } from "./record.js";

for (const name of proofNames()) {
  const { short } = await loadProof(name);
  const due = caseDue({ short });
  it(`${name}: ${due}`, async () => {
    expect(due).toBeDefined();
    const { limits, run } = short[due as string];
    expect(beyondLimits(name, limits, await run())).toEqual([]);
  });
}
