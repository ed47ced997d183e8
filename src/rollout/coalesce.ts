/** One call to the engine for all requests that are made in the same turn of the event loop: an engine decodes one call as one batch. */
import { Inbox } from "../core/inbox.js";
import type { Sample, SampleRequest } from "../engine/contract.js";

/** The engine's `sample`. */
export type SampleCall = (requests: readonly SampleRequest[]) => AsyncIterable<Sample>;

interface Part {
  readonly requests: readonly SampleRequest[];
  readonly first: number;
  readonly inbox: Inbox<Sample>;
}

/** A `sample` that joins calls of one turn. What a request is answered does not depend on what it was joined with. */
export function coalesced(sample: SampleCall): SampleCall {
  let open: Part[] = [];
  const flush = async (): Promise<void> => {
    const parts = open;
    open = [];
    try {
      for await (const answer of sample(parts.flatMap(({ requests }) => requests))) {
        const part = parts.find(({ first, requests }) => answer.index < first + requests.length) as Part;
        part.inbox.put({ ...answer, index: answer.index - part.first });
      }
      for (const { inbox } of parts) inbox.end();
    } catch (error) {
      for (const { inbox } of parts) inbox.fail(error);
    }
  };
  return (requests) => {
    const inbox = new Inbox<Sample>();
    if (requests.length === 0) {
      inbox.end();
      return inbox;
    }
    const last = open.at(-1);
    if (last === undefined) setImmediate(() => void flush());
    open.push({ requests, first: last ? last.first + last.requests.length : 0, inbox });
    return inbox;
  };
}
