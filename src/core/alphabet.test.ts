import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { alphabetFile, alphabetTokenizer, loadAlphabet, saveAlphabet } from "./alphabet.js";
import { randomKey, Stream } from "./random.js";

const numbers = ["0", "1", "2", "10", "100", "+", "\n", "é", "<eos>", "😀"];
const tokenizer = alphabetTokenizer(numbers);
const idOf = (symbol: string): number => 5 + numbers.indexOf(symbol);

describe("the alphabet tokenizer", () => {
  it("takes the longest symbol that fits", () => {
    expect([...tokenizer.encode("10+1")]).toEqual(["10", "+", "1"].map(idOf));
    expect([...tokenizer.encode("1001010")]).toEqual(["100", "10", "10"].map(idOf));
    expect([...tokenizer.encode("")]).toEqual([]);
    expect(tokenizer.size).toBe(15);
  });

  it("gives any encoded text back, whole and in pieces", () => {
    const random = new Stream(randomKey({ seed: 3, purpose: "texts" }));
    for (let i = 0; i < 200; i++) {
      const text = Array.from({ length: random.int(20) }, () => random.pick(numbers)).join("");
      const ids = tokenizer.encode(text);
      expect(tokenizer.decode(ids)).toBe(text);
      const stream = tokenizer.stream();
      expect([...ids].map((id) => stream.push(id)).join("") + stream.end()).toBe(text);
    }
  });

  it("refuses text outside of the alphabet, with character and position", () => {
    expect(() => tokenizer.encode("10+3")).toThrow('text "10+3", character 4: "3" is not in the alphabet of 10 symbols; use only "0" "1"');
    expect(() => tokenizer.encode("1😁")).toThrow('character 2: "😁"');
  });

  it("never makes a special token of typed text", () => {
    expect([...tokenizer.encode("<eos>")]).toEqual([idOf("<eos>")]);
    expect(() => tokenizer.encode("1<user>")).toThrow('character 2: "<"');
    const ids = tokenizer.render([{ role: "user", content: "<eos>1" }], { addGenerationPrompt: true });
    expect([...ids].filter((id) => tokenizer.eosIds.includes(id))).toEqual([]);
  });

  it("decodes any list of numbers", () => {
    expect(tokenizer.decode([])).toBe("");
    expect(tokenizer.decode([idOf("1"), -1, 15, 1e9, 1.5, Number.NaN, idOf("2")])).toBe("1�����2");
    expect(tokenizer.decode([0, idOf("1"), 2, 0])).toBe("1");
    expect(tokenizer.decode([3, idOf("1"), 0], "show")).toBe("<assistant>1<eos>");
  });

  it("renders a conversation: role, text, and an end after each answer", () => {
    const messages = [
      { role: "system", content: "" },
      { role: "user", content: "1+10" },
      { role: "assistant", content: "2" },
      { role: "tool", content: "0" },
    ] as const;
    const shown = (ids: Int32Array): string => tokenizer.decode(ids, "show");
    expect(shown(tokenizer.render(messages, { addGenerationPrompt: false }))).toBe("<system><user>1+10<assistant>2<eos><tool>0");
    expect(shown(tokenizer.render(messages.slice(1, 2), { addGenerationPrompt: true }))).toBe("<user>1+10<assistant>");
    // What was sampled after a prompt extends that prompt exactly: a later turn keeps the earlier tokens.
    const prompt = tokenizer.render(messages.slice(0, 2), { addGenerationPrompt: true });
    const later = tokenizer.render(messages, { addGenerationPrompt: true });
    expect([...later.subarray(0, prompt.length + 2)]).toEqual([...prompt, idOf("2"), 0]);
  });

  it("is known by its symbols and their order", () => {
    expect(alphabetTokenizer(numbers).id).toBe(tokenizer.id);
    expect(alphabetTokenizer([...numbers].reverse()).id).not.toBe(tokenizer.id);
    expect(alphabetTokenizer(["ab"]).id).not.toBe(alphabetTokenizer(["a", "b"]).id);
  });

  it("refuses symbols that cannot be told apart or are no text", () => {
    expect(() => alphabetTokenizer(["a", "b", "a"])).toThrow('alphabet, symbols[2]: it repeats "a"; give each symbol once');
    expect(() => alphabetTokenizer(["a", ""])).toThrow("alphabet, option symbols[1]: got the text");
    expect(() => alphabetTokenizer([])).toThrow("give a list of at least 1");
    expect(() => alphabetTokenizer(["\ud83d"])).toThrow("half a character");
  });
});

describe("the alphabet's file", () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "alphabet-"));
  });
  afterEach(() => rm(folder, { recursive: true }));

  it("gives the same tokenizer back", async () => {
    await saveAlphabet(tokenizer, folder);
    const loaded = await loadAlphabet(folder);
    expect(loaded.id).toBe(tokenizer.id);
    expect([...loaded.encode("10+é😀")]).toEqual([...tokenizer.encode("10+é😀")]);
  });

  it("is refused in one sentence when missing, torn or of another kind", async () => {
    await expect(loadAlphabet(folder)).rejects.toThrow(/touchstone_tokenizer\.json: it cannot be read \(ENOENT\); give a model folder/);
    const write = (text: string): Promise<void> => writeFile(join(folder, alphabetFile), text);
    await write('{"format":"touchstone-alph');
    await expect(loadAlphabet(folder)).rejects.toThrow(/it is not JSON/);
    await write('{"format":"other","symbols":["a"]}');
    await expect(loadAlphabet(folder)).rejects.toThrow(/option format: got the text "other"/);
    await write('{"format":"touchstone-alphabet-1","symbols":["a","a"]}');
    await expect(loadAlphabet(folder)).rejects.toThrow(/symbols\[1\]: it repeats "a"/);
    await write('{"format":"touchstone-alphabet-1","symbol":["a"]}');
    await expect(loadAlphabet(folder)).rejects.toThrow(/did you mean "symbols"/);
  });
});
