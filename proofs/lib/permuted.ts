/** The control of every learning claim: rewards dealt out anew, so that no answer is paid for what it is. */
import { z } from "zod";
import { Stream } from "../../src/core/random.js";
import { anyMethod } from "../../src/methods/catalogue.js";
import type { MethodModule } from "../../src/methods/contract.js";
import { rowsByGroup, rowsOf } from "../../src/methods/credit.js";

const options = z.strictObject({
  over: z.enum(["group", "batch"]).default("group").describe("Among which answers the rewards are dealt: those of one problem, or all of a batch."),
});

/** Composed with a method (`method: ["grpo", "permuted"]`) it permutes the rewards of scored answers by the run's keyed randomness. */
export const permuted = anyMethod({
  name: "permuted",
  paper: "our choice",
  options,
  initial: null,
  make: ({ over }) => ({
    name: "permuted",
    slots: {
      adjust: {
        about: `rewards permuted over the ${over}`,
        run(batch, rewards, lab) {
          const rows = rowsOf(batch);
          const sets = over === "group" ? rowsByGroup(batch) : [rows.map((_, i) => i)];
          const values = [...rewards.values];
          sets.forEach((indices, g) => {
            const scored = indices.filter((i) => rewards.values[i] !== undefined);
            const stream = new Stream(lab.key({ purpose: "permuted rewards", step: lab.step, member: g }));
            stream.shuffle(scored).forEach((from, n) => {
              values[scored[n] as number] = rewards.values[from];
            });
          });
          return { ...rewards, values };
        },
      },
    },
  }),
} satisfies MethodModule<z.output<typeof options>, null>);
