/** The test server of the Tinker protocol in a process of its own, so that what the client computes can be told apart: options as JSON, then its address on stdout. */
import { type StubOptions, TinkerStub } from "../../test/support/tinker-stub.js";

const stub = await TinkerStub.start(JSON.parse(process.argv[2] as string) as StubOptions);
process.stdout.write(`${stub.url}\n`);
process.stdin.resume().once("end", () => process.exit(0));
