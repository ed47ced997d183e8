/**
 * Stories that ask for a product of a small and a two-digit number, with one worked example before them:
 *
 *     Mia has 7 boxes with 23 apples each. How many apples does Mia have?
 *
 * Each story has the key of its two numbers and its words (`7x23/0`, or `23x7/0` where there are 23 boxes). All stories of two numbers
 * are in the same split, so that no product of the held-out problems is ever trained on.
 */
import { createHash } from "node:crypto";
import { defineTask, number } from "touchstone-rl";

const names = ["Mia", "Tom", "Ana", "Ben", "Lena", "Sam", "Ida", "Max"];
const things = ["apples", "pens", "books", "stamps", "coins", "cards", "shells", "nuts"];
const packs = ["boxes", "bags", "jars", "baskets"];

const system = "Answer with one line.";
const example = ["Eva has 3 boxes with 12 cups each. How many cups does Eva have?", "3 * 12 = 36"] as const;

/** A number from 0 to below 2^32 that is the same for the same text, everywhere. */
const hashOf = (text: string): number => createHash("sha256").update(text).digest().readUInt32BE(0);
const pick = (words: readonly string[], text: string): string => words[hashOf(text) % words.length] as string;

function row(first: number, second: number, story: number) {
  const key = `${first}x${second}/${story}`;
  const [name, thing, pack] = [pick(names, `name ${key}`), pick(things, `thing ${key}`), pick(packs, `pack ${key}`)];
  const pair = [first, second].sort((a, b) => a - b).join("x");
  return {
    key,
    split: hashOf(`split ${pair}`) % 20 < 7 ? ("eval" as const) : ("train" as const),
    prompt: [
      { role: "system" as const, content: system },
      { role: "user" as const, content: example[0] },
      { role: "assistant" as const, content: example[1] },
      { role: "user" as const, content: `${name} has ${first} ${pack} with ${second} ${thing} each. How many ${thing} does ${name} have?` },
    ],
    answer: first * second,
  };
}

/** 2 to 9 by 11 to 49, but not the example's, in both orders and in two stories each. */
const rows = Array.from({ length: 8 }, (_, i) => i + 2).flatMap((small) =>
  Array.from({ length: 39 }, (_, i) => i + 11)
    .filter((large) => small !== 3 || large !== 12)
    .flatMap((large) => [0, 1].flatMap((story) => [row(small, large, story), row(large, small, story)])),
);

export default defineTask({ name: "boxes", rows, verifier: number(), maxTokens: 24 });
