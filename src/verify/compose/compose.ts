/**
 * The verifier `compose`: several verifiers of one answer as one reward, Σ weight · score / Σ weight, with each part logged apart.
 *
 * A gate must be passed whole: where one does not accept, the answer earns 0, whatever the others say. A part that is
 * unscored leaves the whole unscored, since a fault of ours must not lower a reward.
 */
import { z } from "zod";
import type { Json } from "../../core/json.js";
import { parseOptions } from "../../core/options.js";
import { accept, type Finding, partial, reject, scoreOf, unscored, type Verdict } from "../../core/verdict.js";
import { namedVerifier } from "../catalogue.js";
import { type External, judge, type Verifier, type VerifierInput, verifierId } from "../contract.js";

const partSchema = z.strictObject({
  name: z.string().min(1).describe("A verifier, or a reward of one's own."),
  options: z.record(z.string(), z.json()).default({}).describe("Its options."),
  weight: z.number().min(0).default(1).describe("Its weight in the mean; 0: it is logged, and can be a gate."),
  gate: z.boolean().default(false).describe("Whether nothing is earned unless it accepts."),
  reference: z.string().min(1).optional().describe("Its reference is this entry of the problem's reference, which is then an object; absent: the whole."),
});
export const composeOptions = z.strictObject({
  parts: z.record(z.string().regex(/^[\w-]+$/, "letters, digits, - and _"), partSchema).describe("The parts by the names under which they are logged."),
});
export type ComposeOptions = z.output<typeof composeOptions>;

interface Part {
  readonly name: string;
  readonly verifier: Verifier;
  readonly weight: number;
  readonly gate: boolean;
  readonly reference?: string;
}

/** The verifier `compose` of its options. Throws ConfigError for parts that cannot be made, or that together weigh nothing. */
export async function compose(options: z.input<typeof composeOptions>): Promise<Verifier> {
  const resolved = parseOptions(composeOptions, options, "compose()");
  const parts: Part[] = [];
  for (const [name, { name: verifier, options: own, weight, gate, reference }] of Object.entries(resolved.parts)) {
    const made = await namedVerifier(verifier, own as Json, `compose(), option parts.${name}`);
    parts.push({ name, verifier: made.verifier, weight, gate, ...(reference !== undefined && { reference }) });
  }
  return composed(parts, resolved as unknown as { readonly [name: string]: Json });
}

/** A verifier of parts that are made already, as `compose` is of their names. */
export function composed(parts: readonly Part[], options: { readonly [name: string]: Json }): Verifier {
  const total = parts.reduce((sum, { weight }) => sum + weight, 0);
  parseOptions(z.number().gt(0), total, "compose(), the sum of the weights");
  const classes = parts.find(({ verifier }) => verifier.extract !== undefined && verifier.same !== undefined)?.verifier;
  const external = externalOf(parts);
  return {
    name: "compose",
    version: `1/${parts.map(({ verifier }) => verifierId(verifier)).join("/")}`,
    options,
    deterministic: parts.map(({ verifier }) => verifier.deterministic).find((kind) => kind !== true) ?? true,
    needsReference: parts.some(({ verifier }) => verifier.needsReference !== false),
    checkReference(reference) {
      for (const part of parts) {
        if (part.verifier.needsReference === false) continue;
        const own = referenceOf(part, reference);
        const fault = own === undefined ? `it has no entry ${part.reference}` : part.verifier.checkReference(own);
        if (fault !== undefined) return `for its part ${part.name}: ${fault}`;
      }
      return undefined;
    },
    async verify(input) {
      return weighed(parts, await Promise.all(parts.map((part) => ask(part, input))), total);
    },
    ...(classes?.extract && classes.same && { extract: classes.extract.bind(classes), same: classes.same.bind(classes) }),
    ...(classes?.locate && { locate: classes.locate.bind(classes) }),
    ...(external && { external }),
  };
}

function referenceOf({ reference }: Part, whole: Json): Json | undefined {
  if (reference === undefined) return whole;
  return typeof whole === "object" && whole !== null && !Array.isArray(whole) ? (whole as { readonly [name: string]: Json | undefined })[reference] : undefined;
}

/** A part's verdict; what it throws is a fault of that part. */
function ask(part: Part, { reference, response, problem, truncated }: VerifierInput): Promise<Verdict> {
  const answer = referenceOf(part, reference);
  const own = { ...problem, reference: { ...problem.reference, ...(answer !== undefined && { answer }) } };
  return judge(part.verifier, own, response, truncated);
}

function weighed(parts: readonly Part[], verdicts: readonly Verdict[], total: number): Verdict {
  const finding = findingOf(parts, verdicts);
  const at = (test: (verdict: Verdict, part: Part) => boolean): number => verdicts.findIndex((verdict, i) => test(verdict, parts[i] as Part));
  const failed = at((verdict) => verdict.kind === "unscored");
  if (failed >= 0) return unscored((verdicts[failed] as { readonly reason: string }).reason, finding);
  const closed = at((verdict, { gate }) => gate && verdict.kind !== "accept");
  if (closed >= 0) return reject(reasonOf(verdicts[closed] as Verdict), finding);
  const score = parts.reduce((sum, { weight }, i) => sum + weight * (scoreOf(verdicts[i] as Verdict) as number), 0) / total;
  if (score <= 0) return reject(reasonOf(verdicts[at((_, { weight }) => weight > 0)] as Verdict), finding);
  return score >= 1 ? accept(finding) : partial(score, finding);
}

const reasonOf = (verdict: Verdict): string => ("reason" in verdict ? verdict.reason : "format");

/** Each part's score by its name, its own parts as NAME.PART, and what each found. */
function findingOf(parts: readonly Part[], verdicts: readonly Verdict[]): Finding {
  const scores: { [name: string]: number } = {};
  const evidence: { [name: string]: Json } = {};
  for (const [i, { name }] of parts.entries()) {
    const verdict = verdicts[i] as Verdict;
    const score = scoreOf(verdict);
    if (score !== undefined) scores[name] = score;
    for (const [inner, value] of Object.entries(verdict.parts ?? {})) scores[`${name}.${inner}`] = value;
    evidence[name] = { ...("reason" in verdict && { reason: verdict.reason }), ...verdict.evidence };
  }
  return { parts: scores, evidence };
}

function externalOf(parts: readonly Part[]): External | undefined {
  const all = parts.flatMap(({ verifier }) => verifier.external ?? []);
  if (all.length === 0) return undefined;
  return {
    get faults() {
      return all.reduce((sum, { faults }) => sum + faults, 0);
    },
    close: async () => {
      await Promise.all(all.map((each) => each.close()));
    },
  };
}
