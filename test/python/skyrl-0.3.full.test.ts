/** SkyRL 0.3.0, which speaks JSON and applies a repeated step twice, as people run it: on this machine's processor. */
import { skyrlSuite } from "../support/skyrl-suite.js";

await skyrlSuite("0.3");
