/** What all commands share in how they print: results on stdout, all else on stderr, colours only for a terminal. */
import picocolors from "picocolors";

export type Colours = ReturnType<typeof picocolors.createColors>;

/** Colours for a stream: off when it is no terminal, when NO_COLOR is set, or on a terminal without them. */
export function colours(stream: { readonly isTTY?: boolean }, env: NodeJS.ProcessEnv = process.env): Colours {
  return picocolors.createColors(Boolean(stream.isTTY) && !env.NO_COLOR && env.TERM !== "dumb");
}

/** Prints a result. */
export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** Rows as columns of equal width, two spaces apart; columns named in `right` are set flush right. */
export function table(rows: readonly (readonly string[])[], right: readonly number[] = []): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? "").length)));
  return rows.map((row) =>
    row
      .map((cell, column) => (right.includes(column) ? cell.padStart(widths[column] as number) : cell.padEnd(widths[column] as number)))
      .join("  ")
      .trimEnd(),
  );
}
