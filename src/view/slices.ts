/** Long work in short pieces: between them the server answers others. */
import { setImmediate as nextTurn } from "node:timers/promises";

/** Milliseconds that one piece may take. */
const pieceMs = 15;

/** Await it within a loop: it gives way whenever this piece has taken its time. */
export function slices(): () => Promise<void> {
  let began = performance.now();
  return async () => {
    if (performance.now() - began < pieceMs) return;
    await nextTurn();
    began = performance.now();
  };
}
