import { describe } from "vitest";
import { faultTests, prepareRuns } from "../../../test/support/run-faults.js";

describe("a process that dies at a file-system call", () => {
  prepareRuns();
  faultTests("dead");
});
