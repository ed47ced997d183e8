import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

const folders = "{src,test,bench,proofs}";
const minute = 60_000;

export default defineConfig({
  test: {
    pool: "forks",
    // All cores: half of the time a test waits for a program that it started.
    maxWorkers: Math.max(2, availableParallelism()),
    globalSetup: ["test/support/temporary.ts", "test/support/compiled.ts"],
    projects: [
      {
        extends: true,
        test: {
          name: "quick",
          include: [`${folders}/**/*.test.ts`],
          exclude: ["**/*.full.test.ts"],
          testTimeout: minute,
          hookTimeout: minute,
        },
      },
      {
        extends: true,
        // One at a time: they measure memory, fill all cores or start programs of their own.
        test: {
          name: "full",
          include: [`${folders}/**/*.full.test.ts`],
          testTimeout: 20 * minute,
          hookTimeout: 20 * minute,
          fileParallelism: false,
        },
      },
    ],
  },
});
