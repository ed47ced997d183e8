import type { Files } from "./files.js";
import { linesOf } from "./log.js";
import { runPaths } from "./reader.js";
import { parseJson, stepRow } from "./schema.js";

/**
 * Cuts the logs of a run to the offsets of a checkpoint. What lies beyond, token columns of later steps and the given
 * folders go to `cut/NNNN` first, so nothing is lost, and doing it twice does no harm. Returns that folder, or undefined
 * when there was nothing to cut.
 */
export function cutLogs(
  files: Files,
  folder: string,
  offsets: { readonly events: number; readonly rollouts: number; readonly index: number },
  aside: readonly string[],
): string | undefined {
  const paths = runPaths(folder);
  const logs = (["events", "rollouts", "index"] as const).filter((name) => (files.size(paths[name]) ?? 0) > offsets[name]);
  const kept = new Set(
    [...linesOf(files, paths.index, 0, offsets.index)].map(({ text }) => parseJson(paths.index, text, stepRow, "take the file from a copy").columns),
  );
  const columns = files.list(paths.columns).filter((name) => !kept.has(name));
  if (logs.length === 0 && columns.length === 0 && aside.length === 0) return undefined;

  const number = Math.max(0, ...files.list(paths.cut).map(Number).filter(Number.isInteger)) + 1;
  const target = `${paths.cut}/${String(number).padStart(4, "0")}`;
  files.makeFolder(target);
  for (const name of logs) copyTail(files, paths[name], offsets[name], `${target}/${name}.jsonl`);
  for (const name of columns) {
    files.makeFolder(`${target}/columns`);
    files.rename(`${paths.columns}/${name}`, `${target}/columns/${name}`);
  }
  for (const path of aside) {
    files.makeFolder(`${target}/checkpoints`);
    files.rename(path, `${target}/checkpoints/${path.split("/").at(-1)}`);
  }
  files.syncFolder(target);
  for (const name of logs) {
    files.truncate(paths[name], offsets[name]);
    files.syncFile(paths[name]);
  }
  return target;
}

function copyTail(files: Files, path: string, from: number, to: string): void {
  const size = files.size(path) ?? 0;
  const fd = files.openWrite(to);
  try {
    for (let position = from; position < size; position += 1 << 24) files.write(fd, files.readRange(path, position, Math.min(size, position + (1 << 24))));
    files.sync(fd);
  } finally {
    files.close(fd);
  }
}
