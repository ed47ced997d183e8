/** `touchstone export`: what it writes is read by the other commands, and what cannot be written is refused first. */
import { existsSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { repository } from "../../test/paths.js";
import { run } from "../../test/run.js";
import { command } from "../../test/support/touchstone.js";
import { GgufFile } from "../engine/gguf/file.js";

const touchstone = (...args: string[]) => run(process.execPath, [...command, ...args], { cwd: repository });
const folder = mkdtempSync(join(tmpdir(), "export-"));
const starter = "starters/chain-100k";

describe("touchstone export", () => {
  it("writes a GGUF file that the commands take as a model, with the starter's own answer", async () => {
    const file = join(folder, "starter.gguf");
    const { code, out } = await touchstone("export", starter, "--to", "gguf", "--out", file, "--json");
    expect([code, JSON.parse(out)]).toEqual([0, { model: starter, format: "gguf", type: "f16", out: file, parameters: expect.any(Number) }]);
    const ask = ["--prompt", "3+4*2", "--chat", "--greedy", "--max-tokens", "24", "--json"];
    const answers = await Promise.all([starter, file].map(async (model) => JSON.parse((await touchstone("sample", model, ...ask)).out)));
    expect(answers[1].prompt_ids).toEqual(answers[0].prompt_ids);
    expect(answers[1].text).toBe(answers[0].text);
  });

  it("writes Q8_0 and an ONNX folder", async () => {
    const file = join(folder, "eight.gguf");
    expect((await touchstone("export", starter, "--to", "gguf", "--type", "q8_0", "--out", file)).out).toMatch(/0\.1M parameters as GGUF, q8_0/);
    const opened = await GgufFile.open(file);
    expect(opened.tensor("blk.0.ffn_up.weight").type).toBe("Q8_0");
    await opened.close();
    const onnx = join(folder, "onnx");
    expect((await touchstone("export", starter, "--to", "onnx", "--out", onnx)).out).toMatch(/0\.1M parameters as ONNX, float32/);
    expect(
      ["config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "onnx/model.onnx"].filter((name) => existsSync(join(onnx, name))),
    ).toHaveLength(5);
  });

  const taken = join(folder, "taken");
  writeFileSync(taken, "");
  it.each([
    [["--to", "gguf", "--out", taken], /option --out: .*taken is a file that is there already; give the name of a new file/],
    [["--to", "gguf", "--out", join(folder, "none", "x.gguf")], /option --out: there is no folder .*none; make it, or give another path/],
    [["--to", "gguf", "--type", "q4_0", "--out", join(folder, "x")], /option --type: it is "q4_0", and --to gguf has f16 and q8_0; give one of these/],
    [["--to", "onnx", "--type", "f16", "--out", join(folder, "x")], /option --type: it is "f16", and --to onnx has f32; give one of these, or leave it out/],
    [["--to", "onnx", "--out", folder], /option --out: .* holds something already/],
    [["--to", "mlx", "--out", join(folder, "x")], /option --to: got "mlx"; give one of folder, gguf, onnx/],
  ])("refuses %j", async (flags, says) => {
    const { code, err } = await touchstone("export", starter, ...flags);
    expect([code, err]).toEqual([2, expect.stringMatching(says)]);
  });
});
