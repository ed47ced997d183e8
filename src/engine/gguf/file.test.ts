import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { fixture } from "../../../test/paths.js";
import { SafetensorsFile } from "../safetensors.js";
import { readable } from "./blocks.js";
import { GgufFile } from "./file.js";

const models = ["llama-f32", "llama-f16", "llama-q8_0", "llama-q4_0", "llama-q4_1", "llama-mixed", "qwen2-q8_0"];

describe.each([...models, "types"])("%s.gguf", (name) => {
  it("has the reference's numbers bit for bit", async () => {
    const file = await GgufFile.open(fixture("gguf", `${name}.gguf`));
    const expected = await SafetensorsFile.open(fixture("gguf", `${name}.expected.safetensors`));
    const read = new Set<string>();
    try {
      for (const { name: tensor, type, shape } of file.tensors.values()) {
        if (!readable.includes(type)) {
          await expect(file.read(tensor)).rejects.toThrow(new RegExp(`tensor ${tensor} is of the type ${type}, which cannot be read`));
          continue;
        }
        read.add(type);
        const stored = [`tensor.${tensor}`, tensor.replace("types.", "")].find((key) => expected.entries.has(key)) as string;
        const want = await expected.readFloat32(stored);
        expect(expected.entry(stored).shape).toEqual(shape);
        expect(Buffer.compare(Buffer.from((await file.read(tensor)).buffer), Buffer.from(want.buffer)), `${tensor} of ${type}`).toBe(0);
      }
      if (name === "types") expect([...read].sort()).toEqual(readable.filter((type) => type !== "F32" && type !== "F16").sort());
    } finally {
      await file.close();
      await expected.close();
    }
  });
});

describe("a damaged file", () => {
  const bytes = readFileSync(fixture("gguf", "llama-q8_0.gguf"));
  const written = (content: Uint8Array): string => {
    const path = join(mkdtempSync(join(tmpdir(), "gguf-")), "model.gguf");
    writeFileSync(path, content);
    return path;
  };

  it.each<[string, Uint8Array, RegExp]>([
    ["that is cut among its tensors", bytes.subarray(0, bytes.length - 1000), /it is truncated: tensor \S+ ends at byte \d+ of \d+/],
    ["that is cut in its header", bytes.subarray(0, 300), /it is truncated: its header alone needs \d+ bytes, and it has 300/],
    ["that is another kind of file", Buffer.from("PK\u0003\u0004 and more"), /it does not begin as a GGUF file does/],
    ["that is empty", new Uint8Array(), /it does not begin as a GGUF file does/],
  ])("%s is refused in a sentence", async (_what, content, says) => {
    await expect(GgufFile.open(written(content))).rejects.toThrow(says);
  });

  it("that is not there is refused", async () => {
    await expect(GgufFile.open("/nowhere/model.gguf")).rejects.toThrow(/it cannot be read \(ENOENT\)/);
  });
});
