/** Two texts beside each other as they grow: a line is printed once neither can change it any more. */

/** Characters that take two cells of a terminal. */
const wide = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}]/u;
const gap = " │ ";

const cells = (text: string): number => [...text].reduce((sum, character) => sum + (wide.test(character) ? 2 : 1), 0);

export class Columns {
  private readonly sides: readonly [Column, Column];
  private printed = 0;

  /** `width`: cells of the terminal. */
  constructor(
    width: number,
    private readonly write: (line: string) => void,
  ) {
    const each = Math.max(10, Math.floor((width - gap.length - 1) / 2));
    this.sides = [new Column(each), new Column(each)];
  }

  push(side: 0 | 1, text: string): void {
    this.sides[side].push(text);
    this.flush();
  }

  end(side: 0 | 1): void {
    this.sides[side].end();
    this.flush();
  }

  private flush(): void {
    const [left, right] = this.sides;
    for (; left.settled(this.printed) && right.settled(this.printed); this.printed++) {
      const [a, b] = [left.lines[this.printed], right.lines[this.printed]];
      if (a === undefined && b === undefined) return;
      this.write(`${a ?? ""}${" ".repeat(left.width - cells(a ?? ""))}${gap}${b ?? ""}`.trimEnd());
    }
  }
}

/** A text broken into lines of at most `width` cells, at a blank where there is one. */
class Column {
  readonly lines: string[] = [];
  private open = "";
  private ended = false;

  constructor(readonly width: number) {}

  push(text: string): void {
    const parts = (this.open + text.replaceAll("\t", "  ")).split("\n");
    this.open = parts.pop() as string;
    for (const part of parts) this.lines.push(...this.broken(part));
    const growing = this.broken(this.open);
    this.open = growing.pop() as string;
    this.lines.push(...growing);
  }

  end(): void {
    if (this.open !== "") this.lines.push(this.open);
    this.open = "";
    this.ended = true;
  }

  /** Whether line i will be what it is. */
  settled(i: number): boolean {
    return this.ended || i < this.lines.length;
  }

  private broken(text: string): string[] {
    const lines: string[] = [];
    let rest = text;
    while (cells(rest) > this.width) {
      let most = "";
      for (const character of rest) {
        if (cells(most + character) > this.width) break;
        most += character;
      }
      const blank = most.lastIndexOf(" ");
      const at = blank > 0 ? blank : most.length;
      lines.push(rest.slice(0, at));
      rest = rest.slice(blank > 0 ? at + 1 : at);
    }
    return [...lines, rest];
  }
}
