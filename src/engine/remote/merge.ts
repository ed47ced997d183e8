/**
 * Several streams as one, in the order in which their values arrive. The first failure, or a consumer that stops,
 * calls `stop` and ends the others.
 */
export async function* merge<T>(streams: readonly AsyncIterable<T>[], stop: () => void): AsyncGenerator<T> {
  type Arrival = { readonly iterator: AsyncIterator<T>; readonly result: IteratorResult<T> };
  const next = (iterator: AsyncIterator<T>): Promise<Arrival> => {
    const arrival = iterator.next().then((result) => ({ iterator, result }));
    arrival.catch(() => undefined); // one that fails while the consumer is busy is met at the next race
    return arrival;
  };
  const waiting = new Map<AsyncIterator<T>, Promise<Arrival>>();
  for (const stream of streams) {
    const iterator = stream[Symbol.asyncIterator]();
    waiting.set(iterator, next(iterator));
  }
  try {
    while (waiting.size > 0) {
      const { iterator, result } = await Promise.race(waiting.values());
      if (result.done) waiting.delete(iterator);
      else {
        waiting.set(iterator, next(iterator));
        yield result.value;
      }
    }
  } finally {
    if (waiting.size > 0) stop();
    await Promise.allSettled(
      [...waiting].map(async ([iterator, arrival]) => {
        await arrival;
        await iterator.return?.();
      }),
    );
  }
}

/** A controller that aborts with the outer signal, and the way to take it off that signal again. */
export function linkedController(outer: AbortSignal | undefined): { controller: AbortController; unlink: () => void } {
  const controller = new AbortController();
  const abort = (): void => controller.abort(outer?.reason);
  if (outer?.aborted) abort();
  else outer?.addEventListener("abort", abort, { once: true });
  return { controller, unlink: () => outer?.removeEventListener("abort", abort) };
}
