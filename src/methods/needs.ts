import { CapabilityError } from "../core/errors.js";
import type { EngineInfo } from "../engine/contract.js";
import type { Method, Need } from "./contract.js";

/** What every method needs that changes the policy. */
export const training: Need = { for: "training", oneOf: [{ capabilities: ["sample", "train"] }] };

/** Whether the specification of one of the methods asks for answers that are drawn from a part of the distribution and trained on (C8). */
export function trainsOnTruncated(methods: readonly Method[]): boolean {
  const needs = methods.flatMap((part) => part.needs ?? []);
  return needs.some(({ oneOf }) => oneOf.some(({ capabilities }) => capabilities?.includes("sample.truncation")));
}

/** A way that was taken although the paper goes another. */
export interface Difference {
  readonly method: string;
  readonly for: string;
  readonly difference: string;
}

/**
 * Checks what a method or composition needs against an engine and the roles of a run. Of several ways the first that can
 * be gone is taken (C25); the differences from the papers are returned. Throws a CapabilityError that names what is missing.
 */
export function checkNeeds(method: Method, engine: EngineInfo, roles: ReadonlySet<string>): Difference[] {
  const differences: Difference[] = [];
  for (const part of method.parts ?? [method]) {
    for (const need of part.needs ?? []) {
      const missing = need.oneOf.map((way) => [
        ...(way.capabilities ?? [])
          .filter((c) => !engine.has.has(c))
          .map((c) => `${c} of the engine ${engine.name}${engine.lacks[c] ? ` (${engine.lacks[c]})` : ""}`),
        ...(way.roles ?? []).filter((r) => !roles.has(r)).map((r) => `a role named ${r}`),
      ]);
      const taken = missing.findIndex((m) => m.length === 0);
      if (taken < 0) {
        throw new CapabilityError({
          place: `method ${part.name}`,
          cause: `${need.for} needs ${missing.map((m) => m.join(" and ")).join(", or ")}`,
          mend: missing.some((m) => m.some((x) => x.startsWith("a role")))
            ? "give the run that role, or turn the option off"
            : "use another engine, or turn the option off",
          data: { method: part.name, missing },
        });
      }
      const difference = need.oneOf[taken]?.difference;
      if (difference !== undefined) differences.push({ method: part.name, for: need.for, difference });
    }
  }
  return differences;
}
