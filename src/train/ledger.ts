import type { Json } from "../core/json.js";
import type { Booking } from "../methods/contract.js";

type Entry = "sampled" | "scored";
const bookings: readonly Booking[] = ["train", "aux", "discarded", "evaluation"];

/** Tokens by what they were spent for (C23), over the whole run; part of every checkpoint. */
export class Ledger {
  private counts: { [entry in Entry]: { [booking in Booking]: number } } = { sampled: zeros(), scored: zeros() };
  /** Tokens that went through backward, summed over epochs. */
  trained = 0;
  rollouts = 0;

  book(entry: Entry, booking: Booking, tokens: number): void {
    this.counts[entry][booking] += tokens;
  }

  /** Adds the books of a batch that was drawn ahead; of one that is dropped, what was sampled for training is discarded. */
  add(other: Ledger, dropped = false): void {
    for (const entry of ["sampled", "scored"] as const) {
      for (const booking of bookings) {
        const lost = dropped && entry === "sampled" && booking === "train";
        this.counts[entry][lost ? "discarded" : booking] += other.counts[entry][booking];
      }
    }
    this.trained += other.trained;
    this.rollouts += other.rollouts;
  }

  /** Sampled tokens, whatever for. */
  get sampled(): number {
    return bookings.reduce((sum, booking) => sum + this.counts.sampled[booking], 0);
  }

  /** Sampled tokens booked as training that did not end up in a batch. */
  discard(tokens: number): void {
    this.counts.sampled.train -= tokens;
    this.counts.sampled.discarded += tokens;
  }

  toJson(): { readonly [name: string]: Json } {
    const { sampled, scored } = this.counts;
    return { sampled: { ...sampled }, scored: { ...scored }, trained: this.trained, rollouts: this.rollouts };
  }

  restore(json: Json): void {
    const { sampled, scored, trained, rollouts } = json as ReturnType<Ledger["toJson"]>;
    this.counts = { sampled: { ...zeros(), ...(sampled as object) }, scored: { ...zeros(), ...(scored as object) } };
    this.trained = trained as number;
    this.rollouts = rollouts as number;
  }
}

function zeros(): { [booking in Booking]: number } {
  return Object.fromEntries(bookings.map((booking) => [booking, 0])) as { [booking in Booking]: number };
}
