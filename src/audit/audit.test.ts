import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { scratch } from "../../test/support/tabular.js";
import { accept, reject, unscored } from "../core/verdict.js";
import { verifierOf } from "../verify/simple.js";
import { type Audited, type AuditReport, audit, isClean, outcomeOf } from "./audit.js";
import { contractOf } from "./contracts.js";
import { auditedVerifier } from "./find.js";
import { hackNames, hacksOf } from "./hacks.js";
import { agree, peeled } from "./read.js";
import { drawGolds, forms } from "./value.js";
import { categories, mutantsOf, variantsOf } from "./variants.js";

const golds = drawGolds(400, 3);
const of = (name: string, check: Parameters<typeof verifierOf>[1]): Audited => ({ name, verifier: verifierOf(name, check) });
const run = (audited: Audited, more: Partial<Parameters<typeof audit>[0]> = {}): Promise<AuditReport> =>
  audit({ audited, contract: contractOf(audited.name), golds: 60, seed: 1, ...more });

describe("the second reader", () => {
  it.each<[string, string, boolean | undefined]>([
    ["\\frac{1}{2}", "0.5", true],
    ["\\frac{1}{2}", "0.500000000000000000000000000000000000000000000001", false],
    ["2\\frac{1}{3}", "\\frac{7}{3}", true],
    ["2\\sqrt{3}", "\\sqrt{12}", true],
    ["\\frac{6}{\\sqrt{12}}", "\\sqrt{3}", true],
    ["3^{1/2}", "\\sqrt{3}", true],
    ["\\sqrt{3}", "1.7320508075688772935274463415058723669428052538103806", true],
    ["\\sqrt{3}", "1.7320508075688772", false],
    ["1,234", "1234", true],
    ["1{,}234", "1234", true],
    ["1.2 \\times 10^{3}", "1200", true],
    ["12e2", "1200", true],
    ["15\\%", "\\frac{3}{20}", true],
    ["x(x+2)+1", "x^2+2x+1", true],
    ["x^2+2x+1", "x^2+2x+2", false],
    ["(1, 2)", "(2, 1)", false],
    ["(1,2)", "\\left(1, 2\\right)", true],
    ["\\{1, 2\\}", "\\{2, 1\\}", true],
    ["\\{1, 2\\}", "(1, 2)", false],
    ["[1, 2)", "[1, 2]", false],
    ["(-\\infty, 2]", "(-\\infty, 2]", true],
    ["(-\\infty, 2]", "(2, \\infty]", false],
    ["5.", "5", undefined],
    ["1/0", "1", undefined],
    ["sin(1)", "1", undefined],
  ])("%s and %s: %s", (a, b, same) => {
    expect(agree(a, b)).toBe(same);
    expect(agree(b, a)).toBe(same);
  });

  it("takes from a text what is no part of its value, and no more", () => {
    expect(["\n5\n", "5\u00a0", "\\,5\\,", "5.", "y = 5", "−5"].map(peeled)).toEqual(["5", "5", "5", "5", "5", "-5"]);
    expect(peeled("5..")).toBe("5.");
  });
});

describe("variants and mutants", () => {
  it("have references of every form, and none twice", () => {
    expect(new Set(golds.map(({ form }) => form))).toEqual(new Set(forms));
    expect(new Set(golds.map(({ text }) => text)).size).toBe(400);
    expect(drawGolds(400, 3)).toEqual(golds);
    expect(drawGolds(400, 4)).not.toEqual(golds);
  });

  it("are all certified by the second reader, in every category", () => {
    const variants = golds.flatMap(variantsOf);
    expect(new Set(variants.map(({ category }) => category))).toEqual(new Set(categories));
    expect(variants.length / golds.length).toBeGreaterThan(20);
    const plain = (text: string): string => peeled(/^\$([^$]+)\$$/s.exec(text)?.[1] ?? text);
    const inner = variants.filter(({ category, rule }) => category !== "delimiters" && rule !== "full stop behind dollars");
    expect(inner.filter(({ gold, text }) => agree(gold.text, plain(text)) !== true)).toEqual([]);
    expect(golds.flatMap(mutantsOf).filter(({ gold, text }) => agree(gold.text, plain(text)) !== false)).toEqual([]);
  });

  it("set delimiters around the reference as it stands", () => {
    const delimited = variantsOf(golds.find(({ form }) => form === "radical") as (typeof golds)[number]).filter(({ category }) => category === "delimiters");
    expect(delimited.map(({ gold, text }) => text.replace(gold.text, "a"))).toEqual(["\\(a\\)", "\\[a\\]", "$$a$$", "\\boxed{a}", "$\\boxed{a}$"]);
  });
});

describe("an audit", () => {
  it("counts every verdict once, and shares of failures add up", async () => {
    const report = await run(await auditedVerifier("baseline:normaliser"), { workers: 0 });
    for (const { n, accept: yes, reject: no, error, timeout } of report.cells) expect(yes + no + error + timeout).toBe(n);
    expect(Object.values(report.in_contract.budget).reduce((a, b) => a + b, 0)).toBeCloseTo(1, 12);
    const promised = report.cells.filter((cell) => cell.promised);
    expect(promised.reduce((sum, { n }) => sum + n, 0)).toBe(report.in_contract.n);
    expect(promised.reduce((sum, { n, accept: yes }) => sum + n - yes, 0)).toBe(report.in_contract.failures);
    expect(report.cells.reduce((sum, { n }) => sum + n, 0)).toBe(drawGolds(60, 1).flatMap(variantsOf).length);
  });

  it("finds that equality of texts accepts nothing but the text", async () => {
    const report = await run(of("same", ({ reference, response }) => reference === response));
    expect(report.self_validation).toMatchObject({ n: 60, accepted: 60, share: 1, high: 1 });
    const identity = report.cells.find(({ category }) => category === "identity");
    expect(identity).toMatchObject({ n: 120, accept: 60 });
    for (const { category, reject_rate } of report.cells) if (category !== "identity") expect(reject_rate.share).toBe(1);
    expect(report.mutants.every(({ accepted }) => accepted === 0)).toBe(true);
    expect(isClean(report, 0)).toBe(false);
    expect(isClean(report, 1)).toBe(true);
  });

  it("finds that a verifier which accepts all accepts every mutant and hack", async () => {
    const report = await run(of("yes", () => true));
    expect(report.in_contract.failures).toBe(0);
    expect([...report.mutants, ...report.hacks].every(({ n, accepted }) => accepted === n)).toBe(true);
    expect(report.hacks.map(({ kind }) => kind)).toEqual(hackNames);
    expect(isClean(report, 0)).toBe(false);
    expect(report.examples.accepted.length).toBeLessThanOrEqual(3 * (report.mutants.length + report.hacks.length));
  });

  it("shows the step of a relative tolerance: neighbours pass from 9999 and 10000 on, and never with an absolute one", async () => {
    const report = await run(await auditedVerifier("baseline:cascade"), { workers: 0 });
    const passes = (side: "one_less" | "one_more") => report.off_by_one.filter((step) => step[side] === "accept").map(({ value }) => Number(value));
    expect(Math.min(...passes("one_more"))).toBe(9999);
    expect(Math.min(...passes("one_less"))).toBe(10000);
    const sizes = report.off_by_one.map(({ value }) => Number(value));
    expect(passes("one_less")).toEqual(sizes.filter((value) => value >= 10000));
    expect(passes("one_more")).toEqual(sizes.filter((value) => value >= 9999));
    const absolute = await run(await auditedVerifier("baseline:cascade", { absolute: 0.5, percent: false }), { workers: 0 });
    expect(absolute.off_by_one.filter((step) => step.one_less === "accept" || step.one_more === "accept")).toEqual([]);
  });

  it("counts failures to judge apart from rejections, and those that were stopped apart from both", async () => {
    const report = await run(
      of("weak", ({ response }) => {
        if (response.includes("\u00a0")) throw new Error("I cannot read that");
        return response === "" ? unscored("starved") : accept();
      }),
    );
    const whitespace = report.cells.find(({ category }) => category === "whitespace");
    expect(whitespace).toMatchObject({ error: 120, timeout: 0, reject: 0 });
    expect(whitespace?.exec_fail_rate.share).toBeCloseTo(120 / (whitespace?.n as number), 12);
    expect([accept(), reject("wrong"), unscored("starved"), unscored("timeout"), unscored("crashed")].map(outcomeOf)).toEqual([
      "accept",
      "reject",
      "timeout",
      "timeout",
      "error",
    ]);
    expect(report.hacks.find(({ kind }) => kind === "empty")?.accepted).toBe(0);
    expect(report.examples.rejected.find(({ outcome }) => outcome === "error")?.message).toBe("I cannot read that");
  });

  it("stops a verifier that spins, and goes on", async () => {
    const file = join(scratch(), "spin.mjs");
    writeFileSync(file, 'export default (problem, response) => { if (response.includes("Reward")) for (;;); return response === problem.reference; };\n');
    const report = await run(await auditedVerifier(file), { golds: 2, deadlineMs: 300, workers: 1 });
    expect(report.self_validation.accepted).toBe(2);
    expect(report.hacks.find(({ kind }) => kind === "override")?.accepted).toBe(0);
  });

  it("says on how many variants two configurations differ", async () => {
    const audited = await auditedVerifier("baseline:symbolic");
    const other = await auditedVerifier("baseline:symbolic", { undelimited: "wrapped" });
    const apart = await run(audited, { other, workers: 0 });
    expect(apart.disagreement?.share).toBeGreaterThan(0.15);
    expect((await run(audited, { other: audited, workers: 0 })).disagreement).toMatchObject({ differ: 0, share: 0 });
  });

  it("puts a frame around each answer", async () => {
    const seen = new Set<string>();
    await run(
      of("framed", ({ response }) => seen.add(response).size > 0),
      { golds: 2, frame: "So it is \\boxed{{}}." },
    );
    expect([...seen].every((text) => text.startsWith("So it is \\boxed{") && text.endsWith("}."))).toBe(true);
  });

  it("is refused for a baseline or a category that is none", async () => {
    await expect(auditedVerifier("baseline:trimed")).rejects.toThrow('there is no baseline "trimed"; did you mean "trimmed"?');
    expect(() => contractOf("math", ["identty"])).toThrow('there is no category "identty"; did you mean "identity"?');
  });
});

describe("hacks", () => {
  it("are written for whole numbers alone, and hold the right answer or none", () => {
    const whole = golds.find(({ form }) => form === "integer") as (typeof golds)[number];
    const found = hacksOf(whole);
    expect(found.map(({ hack }) => hack)).toEqual(hackNames);
    expect(found.filter(({ text }) => !text.includes(whole.text)).map(({ hack }) => hack)).toEqual(["empty box", "empty", "echo"]);
    expect(hacksOf(golds.find(({ form }) => form === "set") as (typeof golds)[number])).toEqual([]);
  });
});
