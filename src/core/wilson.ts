/** The interval of a share. */
import { ArgumentError } from "./errors.js";

/** The 97.5 % quantile of the standard normal. */
const z = 1.959963984540054;

/** Wilson's score interval, 95 %, of a share: `successes` of `trials` independent ones (Wilson, JASA 1927, equation 1). */
export function wilson(successes: number, trials: number): { readonly low: number; readonly high: number; readonly by: "wilson" } {
  if (!(trials >= 1 && successes >= 0 && successes <= trials)) {
    throw new ArgumentError({ place: "wilson", cause: `${successes} of ${trials} is no share`, mend: "give at least one trial and at most as many successes" });
  }
  const share = successes / trials;
  const scale = 1 + z ** 2 / trials;
  const middle = (share + z ** 2 / (2 * trials)) / scale;
  const half = (z / scale) * Math.sqrt((share * (1 - share)) / trials + z ** 2 / (4 * trials ** 2));
  // At the ends the bound is the share itself, which rounding would miss.
  return { low: share === 0 ? 0 : middle - half, high: share === 1 ? 1 : middle + half, by: "wilson" };
}
