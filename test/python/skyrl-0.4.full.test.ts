/** SkyRL 0.4.0, which speaks protobuf, as people run it: on this machine's processor. */
import { skyrlSuite } from "../support/skyrl-suite.js";

await skyrlSuite("0.4");
