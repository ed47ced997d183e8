import { describe, expect, it } from "vitest";
import { Columns } from "./columns.js";

function shown(width: number, pushes: readonly (readonly [side: 0 | 1, text: string | undefined])[]): string[][] {
  const lines: string[] = [];
  const columns = new Columns(width, (line) => lines.push(line));
  return pushes.map(([side, text]) => {
    if (text === undefined) columns.end(side);
    else columns.push(side, text);
    return lines.splice(0);
  });
}

describe("two texts beside each other", () => {
  it("come line by line, once neither side can change the line any more", () => {
    const steps = shown(28, [
      [0, "one two three four"],
      [1, "a"],
      [1, "b\nc"],
      [0, undefined],
      [1, " d"],
      [1, undefined],
    ]);
    expect(steps).toEqual([[], [], ["one two      │ ab"], [], [], ["three four   │ c d"]]);
  });

  it("are broken at blanks, within a long word, and by the width of characters", () => {
    const steps = shown(24, [
      [0, "aaaaaaaaaaaaaa bb"],
      [1, "日本語日本語"],
      [0, undefined],
      [1, undefined],
    ]);
    expect(steps.flat()).toEqual(["aaaaaaaaaa │ 日本語日本", "aaaa bb    │ 語"]);
  });

  it("may be of unequal length, or nothing", () => {
    const [, , last] = shown(28, [
      [0, "1\n2\n"],
      [1, undefined],
      [0, undefined],
    ]);
    expect(last).toEqual([]);
    expect(
      shown(28, [
        [1, undefined],
        [0, "1\n2\n"],
      ])[1],
    ).toEqual(["1            │", "2            │"]);
  });
});
