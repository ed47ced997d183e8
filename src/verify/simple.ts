/** A verifier from a plain function: for tasks of one's own. */
import type { Json } from "../core/json.js";
import { accept, type Verdict } from "../core/verdict.js";
import { rejectFor, type Verifier, type VerifierInput } from "./contract.js";

/** A check of one response: `true` accepts, `false` rejects as `wrong`; a verdict says more. */
export type Check<A extends Json = Json> = (input: VerifierInput & { readonly reference: A }) => boolean | Verdict | Promise<boolean | Verdict>;

/**
 * A verifier from a check. It is known by name and version: the text of a function is another in a source and in what each loader
 * makes of it. Truncated responses reach the check too.
 */
export function verifierOf<A extends Json = Json>(name: string, check: Check<A>, version = "1"): Verifier {
  return {
    name,
    version,
    options: {},
    deterministic: true,
    checkReference: () => undefined,
    verify: async (input) => {
      const result = await check(input as VerifierInput & { readonly reference: A });
      if (typeof result !== "boolean") return result;
      return result ? accept() : rejectFor("wrong");
    },
  };
}
