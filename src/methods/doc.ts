/** docs/methods.md: every method with its slots, options and source, and which of them clash. Made from the modules, so that it cannot lag behind. */
import { ConfigError } from "../core/errors.js";
import { optionsTable } from "../core/option-table.js";
import { type AnyMethod, withDefaults } from "./catalogue.js";
import type { Method, Need } from "./contract.js";
import { compose, oneSlots, resolve, type TableRow, tableOf } from "./resolve.js";

/** Two methods that are refused together, and why. */
export interface Clash {
  readonly pair: readonly [string, string];
  readonly why: string;
}

/** All pairs, in the order of the list. */
export function pairsOf<T>(list: readonly T[]): [T, T][] {
  return list.flatMap((a, i) => list.slice(i + 1).map((b): [T, T] => [a, b]));
}

/** The pairs that composition refuses, whichever comes first. */
export function clashes(methods: readonly Method[], fallback: Method): Clash[] {
  return pairsOf(methods).flatMap(([a, b]): Clash[] => {
    try {
      resolve(compose(a, b), fallback);
      return [];
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      return [{ pair: [a.name, b.name], why: error.message.slice(`${error.place}: `.length, -`; ${error.mend}`.length) }];
    }
  });
}

/** The whole page. */
export function methodsPage(list: readonly AnyMethod[]): string {
  const methods = list.map(withDefaults);
  const fallback = methods[0] as Method;
  const refused = clashes(methods, fallback);
  const answers = (slot: string): string[] =>
    methods.filter((method) => method.slots[slot as keyof Method["slots"]] !== undefined).map(({ name }) => `\`${name}\``);
  return `${[
    "# Methods",
    "This page is made from the methods themselves (`npm run docs`); a test fails when it is out of date.",
    "A method fills some slots, and what it leaves out is GRPO's. `--method dapo+rloo` composes several: of those that answer one slot the right-most does, unless one *owns* it; stages all run. " +
      "An option that is not at its default makes its slot's answer the user's, which beats both. `--dry-run` prints who answers what, and over whom.",
    `| method | source | slots |\n| --- | --- | --- |\n${list.map((each, i) => overviewRow(each, methods[i] as Method)).join("\n")}`,
    "`--method ./mine.ts` takes a method of your own: the default export of a TypeScript or JavaScript file. This one is whole; `decides`, `initial`, `paper` and further slots are in `src/methods/contract.ts`.",
    example,
    'In a program the method is an object: `train({ method: ["rloo", scaled], … })`, and `resume(folder, { methods: [scaled] })`, since a run keeps its name alone. With options: `train({ methods: [scaled], method: { name: "scaled", options: { factor: 0.25 } }, … })`.',
    "## Who answers one slot",
    "In a composition the right-most of a row does.",
    `| slot | methods that answer it |\n| --- | --- |\n${oneSlots.map((slot) => `| ${slot} | ${answers(slot).join(", ")} |`).join("\n")}`,
    "## Refused together",
    "With their defaults; all other pairs compose, and run two steps in `src/methods/laws.test.ts`.",
    refused.length === 0 ? "None." : `| methods | why |\n| --- | --- |\n${refused.map(({ pair, why }) => `| \`${pair.join("+")}\` | ${why} |`).join("\n")}`,
    ...list.flatMap((each, i) => sectionOf(each, methods[i] as Method, fallback)),
  ].join("\n\n")}\n`;
}

const example = `\`\`\`ts
import { defineMethod, z } from "touchstone-rl";

export default defineMethod({
  name: "scaled",
  options: z.strictObject({ factor: z.number().default(0.5).describe("What advantages are multiplied by.") }),
  make: ({ factor }) => ({
    slots: {
      shape: { level: "trajectory", about: \`times \${factor}\`, run: (_, credit) => credit.scaled("trajectory", credit.trajectory.map(() => factor)) },
    },
  }),
});
\`\`\``;

function overviewRow({ name, paper }: AnyMethod, { slots }: Method): string {
  return `| [\`${name}\`](#${name}) | ${paper} | ${Object.keys(slots).join(", ")} |`;
}

function sectionOf(each: AnyMethod, method: Method, fallback: Method): string[] {
  const own = tableOf(resolve(method, fallback)).filter(({ from, how }) => from === method.name && how !== "default");
  const needs = (method.needs ?? []).filter(({ oneOf }) => oneOf.some(({ roles = [] }) => roles.length > 0)).map(needText);
  const signal = { "reward-variance": "Filters groups whose rewards are equal.", beyond: "Learns from groups whose rewards are equal, too." };
  const references = {
    withheld: "Hides references and privileged data from training.",
    needed: "Reads references or privileged data.",
    judged: "Goes by verdicts, whatever rewards are made of.",
  };
  const notes = [...needs, ...(method.signal ? [signal[method.signal]] : []), ...(method.references ? [references[method.references]] : [])];
  const table = optionsTable(each.options);
  return [
    `## ${each.name}`,
    [`${each.paper}.`, ...notes].join(" "),
    `| slot | answer |\n| --- | --- |\n${own.map(slotRow).join("\n")}`,
    ...(table.split("\n").length > 2 ? [table] : []),
  ];
}

const slotRow = ({ slot, how, about }: TableRow): string => `| ${slot}${how === "prefers" ? "" : ` (${how})`} | ${about} |`;

const needText = ({ for: what, oneOf }: Need): string =>
  `Needs, for ${what}, ${oneOf.map(({ roles = [] }) => `the role ${roles.join(" and ")}`).join(" or ")}.`;
