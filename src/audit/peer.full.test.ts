/** Math-Verify audited beside `math` on the same references, in Python where it is installed (.ci/run installs it, 115 MB). */
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { repository } from "../../test/paths.js";
import { mathVerify, pythonOf } from "../../test/python/environment.js";
import { type AuditReport, audit, isClean } from "./audit.js";
import { contractOf } from "./contracts.js";
import { auditedVerifier } from "./find.js";

const python = await pythonOf(mathVerify);
const golds = 20;

const auditOf = async (name: string, options = {}): Promise<AuditReport> =>
  audit({ audited: await auditedVerifier(name, options), contract: contractOf(name), golds, seed: 0, deadlineMs: 30_000 });

describe.skipIf(!python)("Math-Verify, audited beside math", () => {
  it("is judged in both of its settings, and fails where math does not", async () => {
    const peer = (setting: string): Promise<AuditReport> =>
      auditOf(`python:${join(repository, "bench/peers/math_verify_reward.py")}:${setting}`, { python: python as string, deadline_ms: 60_000 });
    const [ours, wrapped, plain] = [await auditOf("math"), await peer("wrapped"), await peer("default")];
    expect(isClean(ours, 0)).toBe(true);
    for (const report of [wrapped, plain]) {
      expect(report.verdicts).toBe(ours.verdicts);
      expect(report.cells.map(({ n }) => n)).toEqual(ours.cells.map(({ n }) => n));
      // It ran: what it misses are rejections, and failures of the bridge would be errors.
      expect(report.cells.reduce((sum, { error }) => sum + error, 0)).toBe(0);
      expect(report.in_contract.failures).toBeGreaterThan(0);
      const { whitespace = 0, punctuation = 0 } = report.in_contract.budget;
      const wrong = [...report.mutants, ...report.hacks].reduce((sum, { accepted }) => sum + accepted, 0);
      console.log(
        `Math-Verify: ${report.self_validation.accepted} of ${golds} references accepted against themselves; ${report.in_contract.failures} of ${report.in_contract.n} right answers missed, ${(100 * (whitespace + punctuation)).toFixed(0)} % by blanks and punctuation; ${wrong} wrong ones accepted`,
      );
    }
    expect(plain.in_contract.failures).toBeGreaterThan(wrapped.in_contract.failures);
  });
});
