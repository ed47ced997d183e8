import type { JSX } from "preact";
import type { Home } from "../shapes.js";
export function Compare(_: { readonly home: Home; readonly query: { readonly [name: string]: string } }): JSX.Element {
  return <p>soon</p>;
}
