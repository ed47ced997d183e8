export { default } from "./lib/family.js";
