import type { JSX } from "preact";
import type { Home } from "../shapes.js";
export function Reports(_: { readonly home: Home }): JSX.Element {
  return <p>soon</p>;
}
export function Report(_: { readonly id: string }): JSX.Element {
  return <p>soon</p>;
}
