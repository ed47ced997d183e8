/** Text files are read whole or in pieces, to the same text; what is no text says so with its place. */
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readText, refuseData, textLines } from "./text-file.js";

const folder = mkdtempSync(join(tmpdir(), "touchstone-text-"));
function file(content: string | Uint8Array): string {
  const path = join(folder, "text");
  writeFileSync(path, content);
  return path;
}
const refuse = refuseData("give another");
const lines = (content: string | Uint8Array): (string | undefined)[] => [...textLines(file(content), refuse)].map((line) => line.text);

describe("lines", () => {
  it("are the same wherever a piece of a megabyte ends, within a character too", () => {
    for (const shift of [0, 1, 2, 3]) {
      const long = `${"x".repeat(2 ** 20 - shift)}é€😀`;
      expect(lines(`a\n${long}\n\nb\r\nc`)).toEqual(["a", long, "", "b", "c"]);
    }
  });

  it("are none in an empty file, and lack no line without a line end", () => {
    expect(lines("")).toEqual([]);
    expect(lines("a\n")).toEqual(["a"]);
    expect(lines("\ufeffa\n\ufeffb")).toEqual(["a", "\ufeffb"]);
  });

  it("that are no UTF-8 are told by column, and the others stay readable", () => {
    const bytes = Buffer.concat([Buffer.from("é1\nö2"), Buffer.from([0xc3]), Buffer.from("3\nend\n")]);
    expect([...textLines(file(bytes), refuse)]).toEqual([
      { number: 1, text: "é1" },
      { number: 2, fault: "it is not UTF-8 (from column 3)" },
      { number: 3, text: "end" },
    ]);
  });
});

describe("a whole text", () => {
  it("comes without its byte order mark", () => {
    expect(readText(file("\ufeffa\nb"), 100, refuse)).toBe("a\nb");
  });

  it("is refused by size, by line and column where it is no UTF-8, and where it is none", () => {
    expect(() => readText(file("x".repeat(2 ** 20 + 1)), 2 ** 19, refuse)).toThrow("it has 1 MB, more than the 0.5 MB that are read; give another");
    expect(() => readText(file(Buffer.from([0x61, 0x0a, 0xc3, 0xa9, 0xff])), 100, refuse)).toThrow(
      /text, line 2, column 2: the text is not UTF-8; save it in UTF-8$/,
    );
    expect(() => readText(join(folder, "text", "below"), 100, refuse)).toThrow("there is no such file; check the path");
    expect(() => readText(folder, 100, refuse)).toThrow("it is a folder; give a plain file");
  });
});
