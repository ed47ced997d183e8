/**
 * Stories that ask for a product, with one worked example before them:
 *
 *     Mia buys 7 boxes of 13 apples. How many apples?
 *
 * Each story has the key of its two numbers and its words (`7x13/0`, or `13x7/0` where there are 13 boxes). All stories of two numbers
 * are in the same split, so that no product of the held-out problems is ever trained on.
 */
import { createHash } from "node:crypto";
import { defineTask, number } from "touchstone-rl";

const names = ["Mia", "Tom", "Ana", "Ben", "Lena", "Sam", "Ida", "Max"];
const things = ["apples", "pens", "books", "stamps", "coins", "cards", "shells", "nuts"];
const packs = ["boxes", "bags", "jars", "baskets"];

const system = "Answer with one line.";
const example = ["Eva buys 3 boxes of 12 cups. How many cups?", "3 * 12 = 36"] as const;
/** One number is at most `small`, the other at most `large`; those of the example are left out. */
const [smallest, small, large] = [2, 9, 20];
const stories = 6;

/** A number from 0 to below 2^32 that is the same for the same text, everywhere. */
const hashOf = (text: string): number => createHash("sha256").update(text).digest().readUInt32BE(0);
const pick = (words: readonly string[], text: string): string => words[hashOf(text) % words.length] as string;

function row(first: number, second: number, story: number) {
  const key = `${first}x${second}/${story}`;
  const [name, thing, pack] = [pick(names, `name ${key}`), pick(things, `thing ${key}`), pick(packs, `pack ${key}`)];
  const pair = `${Math.min(first, second)}x${Math.max(first, second)}`;
  return {
    key,
    split: hashOf(`split ${pair}`) % 20 < 7 ? ("eval" as const) : ("train" as const),
    prompt: [
      { role: "system" as const, content: system },
      { role: "user" as const, content: example[0] },
      { role: "assistant" as const, content: example[1] },
      { role: "user" as const, content: `${name} buys ${first} ${pack} of ${second} ${thing}. How many ${thing}?` },
    ],
    answer: first * second,
  };
}

const from = (low: number, high: number): number[] => Array.from({ length: high - low + 1 }, (_, i) => low + i);
const pairs = from(smallest, small)
  .flatMap((a) => from(a, large).map((b) => [a, b] as const))
  .filter(([a, b]) => a !== 3 || b !== 12);
const rows = pairs.flatMap(([a, b]) => {
  const both = from(0, stories - 1).map((story) => row(a, b, story));
  return a === b ? both : [...both, ...from(0, stories - 1).map((story) => row(b, a, story))];
});

export default defineTask({ name: "boxes", rows, verifier: number(), maxTokens: 24 });
