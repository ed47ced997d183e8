/** A word of a command line that is shown to be copied; quoted where a shell would part it. */
export function shellWord(word: string): string {
  if (/^[\w./:=@+,\\-]+$/.test(word)) return word;
  return process.platform === "win32" ? `"${word}"` : `'${word.replaceAll("'", `'\\''`)}'`;
}
