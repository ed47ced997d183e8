import { describe } from "vitest";
import { faultTests, prepareRuns } from "../../../test/support/run-faults.js";

describe.each(["once", "full"] as const)("a file-system call that fails (%s)", (mode) => {
  prepareRuns();
  faultTests(mode);
});
