import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { ModelError } from "../core/errors.js";
import { refuseUnlessSavable, savePolicy } from "./save-policy.js";

const scratch = (): string => mkdtempSync(join(tmpdir(), "touchstone-save-"));
const writer = (text: string) => async (folder: string) => {
  mkdirSync(folder);
  writeFileSync(join(folder, "weights"), text);
};
/** Writes half of it, and finds the disk full under one folder. */
const fullUnder = (top: string) => async (folder: string) => {
  await writer("half")(folder);
  if (folder.startsWith(top)) throw Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" });
};

describe("a folder for a policy", () => {
  it("is new or empty, in a place that can be written to, with room for the weights", () => {
    const folder = scratch();
    refuseUnlessSavable(folder, 1000, "option --out");
    refuseUnlessSavable(join(folder, "new/deeper"), 1000, "option --out");
    expect(() => refuseUnlessSavable(folder, 1e15, "option --out")).toThrow(
      /^option --out: the policy needs 4000000001\.0 MB, and [\d.]+ MB are free there; free space, or give a folder on another disk$/,
    );
    writeFileSync(join(folder, "model.safetensors"), "");
    expect(() => refuseUnlessSavable(folder, 1000, "option --out")).toThrow(
      `option --out: ${folder} holds something already (model.safetensors); give a new or empty folder, or remove that one`,
    );
    expect(() => refuseUnlessSavable(join(folder, "model.safetensors"), 1000, "option --out")).toThrow("is a file; give another folder");
    expect(() => refuseUnlessSavable(join(folder, "model.safetensors/x"), 1000, "option --out")).toThrow("x leads through a file; give another folder");
  });
});

describe("saving a policy", () => {
  it("makes the folder whole, and replaces what it saved before", async () => {
    const folder = join(scratch(), "deep/policy");
    await savePolicy(folder, writer("one"));
    await savePolicy(folder, writer("two"));
    expect(readFileSync(join(folder, "weights"), "utf8")).toBe("two");
    expect(readdirSync(dirname(folder))).toEqual(["policy"]);
  });

  it("on a full disk keeps it elsewhere, says where, and leaves nothing half and the save before as it was", async () => {
    const [full, gone, free] = [scratch(), join(scratch(), "none"), scratch()] as [string, string, string];
    const folder = join(full, "policy");
    await savePolicy(folder, writer("before"));
    const error = await savePolicy(folder, fullUnder(full), [gone, free]).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ModelError);
    const kept = String((error as ModelError).data.kept);
    expect((error as Error).message).toBe(
      `${folder}: the policy could not be saved there: the disk is full (ENOSPC); it is kept in ${kept}: move it from there`,
    );
    expect(dirname(dirname(kept))).toBe(free);
    expect(readFileSync(join(kept, "weights"), "utf8")).toBe("half");
    expect(readdirSync(full)).toEqual(["policy"]);
    expect(readFileSync(join(folder, "weights"), "utf8")).toBe("before");
  });

  it("says so where it can be kept nowhere", async () => {
    const folder = scratch();
    await expect(savePolicy(join(folder, "policy"), fullUnder(folder), [folder])).rejects.toThrow(
      "the disk is full (ENOSPC); free space or mend the disk, and train again: nothing could be kept elsewhere either",
    );
    expect(existsSync(join(folder, "policy"))).toBe(false);
    expect(readdirSync(folder)).toEqual([]);
  });
});
