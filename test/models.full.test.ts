import { statSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { smollm2 } from "./models.js";

const model = await smollm2();

describe.skipIf(!model)("the fetched model", () => {
  it("is the whole file, and is found again without fetching", async () => {
    expect(statSync(model as string).size).toBe(98_362_432);
    expect(await smollm2()).toBe(model);
  });
});
