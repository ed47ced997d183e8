import { afterAll } from "vitest";
import { baseFolder } from "../../../test/support/tinker-base.js";
import { TinkerStub } from "../../../test/support/tinker-stub.js";
import { conformance } from "../conformance.js";
import { connectTinker } from "./start.js";

const stubs: TinkerStub[] = [];
afterAll(async () => {
  await Promise.all(stubs.map((stub) => stub.stop()));
});

const source = { from: "folder", path: baseFolder() } as const;
// The server computes in float64 and tells float32.
const tolerance = { logp: 2e-6, gradient: 1e-5, update: 1e-5 };

for (const { name, options, roundTokens } of [
  { name: "JSON, means of means", options: { dialect: "json" }, roundTokens: 1 },
  { name: "protobuf, means of means", options: { dialect: "protobuf" }, roundTokens: 1 },
  { name: "protobuf, sums, budgets rounded up", options: { dialect: "protobuf", reduction: "sum" }, roundTokens: 16 },
] as const) {
  conformance(`tinker (${name})`, async () => {
    const stub = await TinkerStub.start(options);
    stubs.push(stub);
    return { engine: await connectTinker({ baseUrl: stub.url, roundTokens }), source, tolerance };
  });
}
