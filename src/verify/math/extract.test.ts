import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { type ExtractOptions, extractAnswer } from "./extract.js";

interface CaseGroup {
  readonly about: string;
  readonly fault?: string;
  readonly cases: readonly (readonly [response: string, ...texts: string[]])[];
}
const groups = JSON.parse(readFileSync(new URL("./extract.cases.json", import.meta.url), "utf8")) as CaseGroup[];
const options: ExtractOptions = { kind: "response", thinking: "tags", committed: true, unfinished: false, unclosed: false };
const long = "We go on adding one after another, as the problem says. ".repeat(400);

const outcome = (response: string, more: Partial<ExtractOptions> = {}): string | readonly string[] => {
  const found = extractAnswer(response, { ...options, ...more });
  return found.kind === "found" ? found.texts : found.fault;
};

describe.each(groups)("extraction: $about", ({ fault, cases }) => {
  it.each(cases)("%j: %j", (response, ...texts) => {
    expect(outcome(response)).toEqual(fault ?? texts);
  });
});

describe("extraction", () => {
  it("finds a committed answer behind and before a long text: there is no window", () => {
    for (const answer of ["\\boxed{18}", "The answer is 18.", "#### 18\n", "<answer>18</answer>"]) {
      for (const response of [`${long}\n${answer}`, `${answer}\n${long}`, `${long}\n${answer}\n${long}`]) expect(outcome(response)).toEqual(["18"]);
    }
  });

  it("says where the answer stands, what opens and closes it included", () => {
    const spans = (response: string): string | undefined => {
      const found = extractAnswer(response, options);
      return found.kind === "found" ? response.slice(found.span.start, found.span.end) : undefined;
    };
    expect(spans("<think> \\boxed{7} </think> so \\boxed{ 18 }.")).toBe("\\boxed{ 18 }");
    expect(spans("a\n#### 18 \nyes")).toBe("#### 18 ");
    expect(spans("It is $x=\\boxed{1}$ or $x=\\boxed{2}$.")).toBe("\\boxed{1}$ or $x=\\boxed{2}");
    expect(spans("<answer>so \\boxed{5}</answer>")).toBe("\\boxed{5}");
  });

  it("reads a declared place and nothing else", () => {
    expect(outcome("\\boxed{5} <a>6</a>", { from: { between: ["<a>", "</a>"] } })).toEqual(["6"]);
    expect(outcome("\\boxed{5} <a>6", { from: { between: ["<a>", "</a>"] } })).toBe("format");
    expect(outcome("Result >> \\boxed{6}\n\\boxed{5}", { from: { after: ">>" } })).toEqual(["6"]);
    expect(outcome("\\boxed{5}", { from: { after: ">>" } })).toBe("no-answer");
    expect(outcome("so\n6", { from: "last-line" })).toEqual(["6"]);
  });

  it("reads by policy what is not committed, not finished, not closed", () => {
    expect(outcome("We add 5 and 7, and it was easy to see that this makes 12 apples.", { committed: false })).toEqual(["12"]);
    expect(outcome("We add 5 and 7, and it was easy to see that this makes $12$ apples.", { committed: false })).toEqual(["12"]);
    expect(outcome("<think>perhaps \\boxed{5}, let me check", { unfinished: true })).toEqual(["5"]);
    expect(outcome("so \\boxed{42", { unclosed: true })).toEqual(["42"]);
  });

  it("takes a bare answer whole", () => {
    const bare = (text: string) => outcome(text, { kind: "answer" });
    expect(bare("4 10/3")).toEqual(["4 10/3"]);
    expect(bare("\\forall x>0, f(x) = 0")).toEqual(["\\forall x>0, f(x) = 0"]);
    expect(bare("$a.$")).toEqual(["$a.$"]);
    expect(bare("\\boxed{a.}")).toEqual(["a"]);
    expect(bare("The answer is $a$.")).toEqual(["$a$"]);
    expect(bare("a book of twelve pages and the reader who has read all of it")).toEqual(["a book of twelve pages and the reader who has read all of it"]);
    expect(bare("\\boxed{}")).toBe("no-answer");
  });

  it("comes to an end on long texts that are hard for patterns", () => {
    const pieces = [
      "\\boxed{",
      "{",
      "}",
      "$",
      "\\(",
      "answer:",
      "The answer is ",
      "####",
      "<answer>",
      "**",
      " ",
      "\n",
      "1,",
      "(",
      "wait no ",
      "or ",
      "\\frac{",
      "<think>",
      ". ",
      "= 1 ",
      "So 1",
      "So x < 1",
      "a = 1, ",
      '"answer": "a',
      "<!-- \\boxed{1} ",
    ];
    const hard = ["So DIGITS.", "So x < DIGITS", "The answer is $3$BLANKSx", "A isBLANKS5", "So **3**BLANKSx **4**", "The answer is 3 (BLANKS"];
    for (const text of hard.map((each) => each.replace("DIGITS", "1".repeat(100_000)).replace("BLANKS", " ".repeat(100_000))))
      expect(["found", "none"]).toContain(extractAnswer(text, { ...options, kind: "response", committed: false }).kind);
    for (const piece of pieces) {
      for (const text of [
        piece.repeat(100_000 / piece.length),
        `\\boxed{1}${piece.repeat(50_000 / piece.length)}`,
        `${piece.repeat(50_000 / piece.length)}The answer is 5.`,
      ]) {
        for (const kind of ["response", "answer", "auto"] as const)
          expect(["found", "none"]).toContain(extractAnswer(text, { ...options, kind, committed: false }).kind);
      }
    }
  });
});
