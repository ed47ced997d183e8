// A Vitest reporter that writes how many tests passed, failed and were skipped, and the seconds of each file, to the file of
// TOUCHSTONE_TEST_COUNTS. A file that cannot be loaded and an error outside of tests count as one failed test each.
import { writeFileSync } from "node:fs";

export default class CountReporter {
  onTestRunEnd(modules, unhandled) {
    const counts = { passed: 0, failed: unhandled.length, skipped: 0, files: [] };
    for (const module of modules) {
      let failed = 0;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state === "passed") counts.passed += 1;
        else if (state === "failed") failed += 1;
        else counts.skipped += 1;
      }
      if (module.state() === "failed" && failed === 0) failed = 1;
      counts.failed += failed;
      const { duration, collectDuration, setupDuration, environmentSetupDuration, prepareDuration } = module.diagnostic();
      counts.files.push({
        name: module.relativeModuleId,
        seconds: (duration + collectDuration + setupDuration + environmentSetupDuration + prepareDuration) / 1000,
      });
    }
    writeFileSync(process.env.TOUCHSTONE_TEST_COUNTS, JSON.stringify(counts));
  }
}
