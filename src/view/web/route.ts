/** Addresses behind the `#`, so that every state of the page can be linked to, from a server or from a file. */
import { useEffect, useState } from "preact/hooks";

export interface Route {
  /** Parts of the path. */
  readonly path: readonly string[];
  readonly query: { readonly [name: string]: string };
}

export function parse(hash: string): Route {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const parts = path.split("/").filter(Boolean);
  try {
    return { path: parts.map(decodeURIComponent), query: Object.fromEntries(new URLSearchParams(query)) };
  } catch {
    return { path: parts, query: {} };
  }
}

export type Query = { readonly [name: string]: string | number | undefined };

/** An address; what is undefined or empty is left out. */
export function address(path: readonly string[], query: Query = {}): string {
  const given = Object.entries(query).flatMap(([name, value]): [string, string][] => (value === undefined || value === "" ? [] : [[name, String(value)]]));
  const text = new URLSearchParams(given).toString();
  return `#/${path.map(encodeURIComponent).join("/")}${text === "" ? "" : `?${text}`}`;
}

/** Goes to an address; `quietly` without a step in the history, for what changes while one looks. */
export function go(to: string, quietly = false): void {
  if (quietly) {
    history.replaceState(null, "", to);
    dispatchEvent(new HashChangeEvent("hashchange"));
  } else location.hash = to;
}

export function useRoute(): Route {
  const [route, set] = useState(() => parse(location.hash));
  useEffect(() => {
    const changed = (): void => set(parse(location.hash));
    addEventListener("hashchange", changed);
    // What was gone to between the first drawing and now has told nobody.
    changed();
    return () => removeEventListener("hashchange", changed);
  }, []);
  return route;
}
