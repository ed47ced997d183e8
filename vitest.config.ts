import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["{src,test,bench,proofs}/**/*.test.ts"],
    exclude: ["**/node_modules/**", "**/dist/**", "**/*.full.test.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
