/** Reports that lie in files: what touchstone reproduce and touchstone audit wrote. */
import { readFileSync } from "node:fs";
import type { AuditReport } from "../audit/audit.js";
import { RunError } from "../core/errors.js";
import type { ReproductionRecord } from "../reproduce/record.js";

/** Names under which they lie in their folders. */
export const reportNames = ["reproduction.json", "audit.json"];

/** As the file of an audit has it: whether it was clean is told by the options of its command. */
type AuditFile = AuditReport & { readonly clean: boolean };

export interface NamedReport {
  readonly name: string;
  readonly record?: ReproductionRecord;
  readonly audit?: AuditFile;
}

const lists = (value: { readonly [name: string]: unknown }, names: readonly string[]): boolean => names.every((name) => Array.isArray(value[name]));

/** Reads one. Throws RunError for any other file. */
export function namedReport(file: string, name: string): NamedReport {
  try {
    const report = JSON.parse(readFileSync(file, "utf8")) as { readonly [name: string]: unknown };
    if (typeof report.id === "string" && lists(report, ["claims", "arms"]))
      return { name, record: { earlier: [], remark: "", ...report } as unknown as ReproductionRecord };
    if (typeof report.verifier === "string" && lists(report, ["cells", "mutants", "hacks", "off_by_one"]))
      return { name, audit: report as unknown as AuditFile };
  } catch {
    // Said below, as for any other file.
  }
  throw new RunError({
    place: file,
    cause: "it is no report of a reproduction or an audit",
    mend: "give the folder or file that touchstone reproduce or touchstone audit wrote",
  });
}
