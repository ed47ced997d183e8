/** What components share: loading with its faults, runs that change, sizes, and keys. */
import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { source } from "./data.js";

export interface Loaded<T> {
  readonly value?: T;
  readonly fault?: string;
  readonly loading: boolean;
}

/** Loads whenever `keys` change. What was there stays until the new value comes, unless `fresh`; answers that come too late are dropped. */
export function useLoad<T>(load: () => Promise<T>, keys: readonly unknown[], fresh = false): Loaded<T> {
  const [state, set] = useState<Loaded<T>>({ loading: true });
  useEffect(() => {
    let stale = false;
    set((before) => (fresh ? { loading: true } : { ...before, loading: true }));
    load().then(
      (value) => stale || set({ value, loading: false }),
      (error: unknown) => stale || set({ fault: error instanceof Error ? error.message : String(error), loading: false }),
    );
    return () => {
      stale = true;
    };
  }, keys);
  return state;
}

const listeners = new Set<(runs: readonly string[]) => void>();
const links = new Set<(is: boolean) => void>();
let listening = false;

function listen(): void {
  if (listening) return;
  listening = true;
  source.watch(
    (runs) => {
      for (const each of listeners) each(runs);
    },
    (is) => {
      for (const each of links) each(is);
    },
  );
}

/** Counts how often one of the runs has changed; any run where none is named. */
export function useNews(runs?: readonly string[]): number {
  const [count, set] = useState(0);
  const wanted = runs?.join(",");
  useEffect(() => {
    const heard = (changed: readonly string[]): void => {
      if (wanted === undefined || changed.some((id) => wanted.split(",").includes(id))) set((n) => n + 1);
    };
    listeners.add(heard);
    listen();
    return () => {
      listeners.delete(heard);
    };
  }, [wanted]);
  return count;
}

/** Whether the server can be reached; undefined before it is known, and of a page in one file. */
export function useLink(): boolean | undefined {
  const [is, set] = useState<boolean | undefined>(undefined);
  useEffect(() => {
    links.add(set);
    listen();
    return () => {
      links.delete(set);
    };
  }, []);
  return is;
}

/** Width of an element in pixels; 0 before it is laid out. */
export function useWidth<T extends Element>(): [RefObject<T | null>, number] {
  const ref = useRef<T | null>(null);
  const [width, set] = useState(0);
  useEffect(() => {
    const element = ref.current;
    if (!element) return;
    const observer = new ResizeObserver(([entry]) => entry && set(Math.floor(entry.contentRect.width)));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [ref, width];
}

/** Room above that the head of the page takes, and around what is brought into view. */
const headRoom = 64;
const edge = 12;

/** Scrolls, as far as it must, so that an element stands below the page's head and above what covers the lower end; in a frame of its own too. */
export function bringIntoView(element: Element | null | undefined, cover: Element | null | undefined): void {
  if (!element) return;
  const frame = element.parentElement;
  if (frame && frame.scrollHeight > frame.clientHeight) {
    const [inner, outer] = [element.getBoundingClientRect(), frame.getBoundingClientRect()];
    if (inner.top < outer.top) frame.scrollTop -= outer.top - inner.top + edge;
    else if (inner.bottom > outer.bottom) frame.scrollTop += inner.bottom - outer.bottom + edge;
  }
  const { top, bottom } = element.getBoundingClientRect();
  const low = innerHeight - edge - (cover?.getBoundingClientRect().height ?? 0);
  if (top < headRoom) scrollBy(0, top - headRoom - edge);
  else if (bottom > low) scrollBy(0, Math.min(bottom - low + edge, top - headRoom));
}

/** Keys of the page, where no field is being typed in. */
export function useKeys(keys: { readonly [key: string]: (() => void) | undefined }): void {
  const latest = useRef(keys);
  latest.current = keys;
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      const target = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName)) return;
      const act = latest.current[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
}
