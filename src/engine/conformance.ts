/**
 * One suite for every engine: what the contract promises, as cases that name the capabilities they need. A case whose
 * capability an engine lacks is skipped with the engine's own reason, and at the end the suite prints what the engine
 * cannot do.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Bench, type Case, type Subject } from "./conformance-bench.js";
import { blindCases } from "./conformance-blind.js";
import { errorCases } from "./conformance-errors.js";
import { gradientCases } from "./conformance-gradient.js";
import { sampleCases } from "./conformance-sample.js";
import { scoreCases } from "./conformance-score.js";
import { stepCases } from "./conformance-step.js";
import { truncationCases } from "./conformance-truncation.js";
import { weightsCases } from "./conformance-weights.js";
import { capabilities, type EngineInfo } from "./contract.js";

export type { Subject, Tolerance } from "./conformance-bench.js";

const themes: { readonly [theme: string]: readonly Case[] } = {
  sample: sampleCases,
  truncation: truncationCases,
  score: scoreCases,
  gradient: gradientCases,
  step: stepCases,
  "training as log-probs show it": blindCases,
  weights: weightsCases,
  errors: errorCases,
};

/** What an engine cannot do, each with its reason. */
export function describeLacks({ name, has, lacks }: EngineInfo): string {
  const missing = capabilities.filter((capability) => !has.has(capability));
  if (missing.length === 0) return `engine ${name} can do all that the contract knows`;
  return [`engine ${name} cannot do:`, ...missing.map((capability) => `  ${capability}: ${lacks[capability]}`)].join("\n");
}

/** Registers the suite for the engine that `make` starts. It is closed at the end. */
export function conformance(name: string, make: () => Promise<Subject>): void {
  describe(`engine ${name}`, () => {
    let subject: Subject;

    beforeAll(async () => {
      subject = await make();
    });

    afterAll(async () => {
      if (!subject) return;
      console.log(describeLacks(subject.engine.info));
      await subject.engine.close();
    });

    it("says of every capability that it has it, or why not", () => {
      const { has, lacks } = subject.engine.info;
      for (const capability of capabilities) {
        if (has.has(capability)) expect(lacks[capability], capability).toBeUndefined();
        else expect(lacks[capability]?.length, capability).toBeGreaterThan(10);
      }
    });

    describe.each(Object.entries(themes))("%s", (_, cases) => {
      it.for(cases)("$name", async ({ needs, run }, { skip }) => {
        const { has, lacks } = subject.engine.info;
        const missing = needs.filter((capability) => !has.has(capability));
        if (missing.length > 0) return skip(missing.map((capability) => `${capability}: ${lacks[capability]}`).join("; "));
        const bench = new Bench(subject);
        try {
          await run(bench);
        } finally {
          await bench.end();
        }
      });
    });
  });
}
