/**
 * Packing: sequences of unequal lengths are laid end to end in rows of equal length, several a row, each seeing only
 * itself. Few places stay empty, and a pack is one rectangle [B, T] for the graphs.
 */

/** Tokens of a pack unless the engine is told otherwise: enough for full-speed products, few enough that what lies between them stays near the processor. */
export const defaultPackPlaces = 2048;

/** Where a sequence lies: its row and the first place in it. */
export interface Place {
  readonly sequence: number;
  readonly row: number;
  readonly start: number;
}

/** One rectangle of places. */
export interface Pack {
  readonly rows: number;
  readonly length: number;
  readonly places: readonly Place[];
}

/**
 * Lengths of softmax rows that fill whole vectors, so that a longer row of masked places cannot change the order of its sum.
 * A safeguard: with the token's own score first, no processor tried so far changed a bit at other lengths either.
 */
export const evenLength = (n: number): number => (n <= 64 ? Math.ceil(n / 16) * 16 : Math.ceil(n / 64) * 64);

/** Puts lengths (longest first) into as few rows of `capacity` as first fit does. */
function firstFit(items: readonly { readonly sequence: number; readonly length: number }[], capacity: number): Pack {
  const used: number[] = [];
  const places = items.map(({ sequence, length }) => {
    let row = used.findIndex((u) => u + length <= capacity);
    if (row < 0) row = used.push(0) - 1;
    const start = used[row] as number;
    used[row] = start + length;
    return { sequence, row, start };
  });
  return { rows: used.length, length: Math.max(...used), places };
}

/** Empty places allowed, as a share of all. */
const waste = 0.1;

/**
 * Packs sequences into rectangles of at most `budget` tokens each (a longer sequence has one of its own), empty places
 * not counted. Within a rectangle the row length is the one of least cost, where a place costs 1 and attention `attention` times the row length more.
 * At most a tenth of all places is empty. Depends only on the lengths and their order among equals.
 */
export function pack(lengths: readonly number[], budget: number, attention: number): Pack[] {
  const items = lengths.map((length, sequence) => ({ sequence, length })).sort((a, b) => b.length - a.length || a.sequence - b.sequence);
  const packs: Pack[] = [];
  let batch: typeof items = [];
  let total = 0;
  const flush = () => {
    if (batch.length) packs.push(best(batch, total, attention));
    batch = [];
    total = 0;
  };
  for (const item of items) {
    if (total + item.length > budget) flush();
    batch.push(item);
    total += item.length;
  }
  flush();
  return packs;
}

function best(items: readonly { readonly sequence: number; readonly length: number }[], total: number, attention: number): Pack {
  const longest = items[0]?.length as number;
  let chosen: { pack: Pack; cost: number } | undefined;
  // Row lengths between the longest sequence and one row for all; a few dozen candidates find the cheapest closely enough.
  const steps = Math.min(32, total - longest);
  for (let i = 0; i <= steps; i++) {
    const capacity = steps === 0 ? longest : Math.round(longest * (total / longest) ** (i / steps));
    const candidate = firstFit(items, capacity);
    const slots = candidate.rows * candidate.length;
    if (total < (1 - waste) * slots) continue;
    const cost = slots * (1 + attention * candidate.length);
    if (!chosen || cost < chosen.cost) chosen = { pack: candidate, cost };
  }
  return (chosen as { pack: Pack }).pack;
}

/**
 * The additive mask of a pack: 0 where a place may look (itself and earlier places of its own sequence), −1e9 elsewhere.
 * [rows, 1, length, length], or [1, 1, length, length] where every row holds one sequence, so that causality is all there is.
 */
export function packMask({ rows, length, places }: Pack, lengths: readonly number[]): { data: Float32Array; rows: number } {
  const single = places.length === rows;
  const data = new Float32Array((single ? 1 : rows) * length * length).fill(-1e9);
  if (single) {
    for (let i = 0; i < length; i++) data.fill(0, i * length, i * length + i + 1);
    return { data, rows: 1 };
  }
  for (const { sequence, row, start } of places) {
    const end = start + (lengths[sequence] as number);
    for (let i = start; i < end; i++) {
      const at = (row * length + i) * length;
      data.fill(0, at + start, at + i + 1);
    }
  }
  // An empty place looks at itself only, so that its softmax has something to divide by.
  const filled = new Uint8Array(rows * length);
  for (const { sequence, row, start } of places) filled.fill(1, row * length + start, row * length + start + (lengths[sequence] as number));
  for (let i = 0; i < filled.length; i++) if (!filled[i]) data[i * length + (i % length)] = 0;
  return { data, rows };
}
