export { default } from "./lib/multi-turn-proof.js";
