// `npm start [-- options]`: installs and compiles what is missing, then runs `touchstone start`.
// From dist and not through a loader: every process that the command starts (engines, sandboxes) would pay the loader's half second again,
// while compiling takes about a second and only after a change.
import { build } from "./build.mjs";
import { node, ready } from "./ready.mjs";

ready();
await build();
process.exitCode = node(["dist/cli/main.js", "start", ...process.argv.slice(2)]);
