import type { JSX } from "preact";
import type { Home } from "../shapes.js";
export function Rollouts(_: { readonly id: string; readonly query: { readonly [name: string]: string } }): JSX.Element {
  return <p>soon</p>;
}
