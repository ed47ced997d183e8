/** How likely a group of answers is to teach something, from a pass rate or from what is believed of it (P11). */

/** U(p) = 1 - p^G - (1 - p)^G: the probability that of G answers, each right with probability p, some are right and some wrong. */
export function learnability(p: number, group: number): number {
  return 1 - (p ** group + (1 - p) ** group);
}

/**
 * Its expectation for p ~ Beta(a, b): 1 - (a)_G / (a + b)_G - (b)_G / (a + b)_G with (a)_G = a (a + 1) ... (a + G - 1). As products of
 * quotients below 1, which neither overflow nor cancel; the same bits for (a, b) and (b, a).
 */
export function expectedLearnability(a: number, b: number, group: number): number {
  let right = 1;
  let wrong = 1;
  for (let i = 0; i < group; i++) {
    right *= (a + i) / (a + b + i);
    wrong *= (b + i) / (a + b + i);
  }
  return 1 - (right + wrong);
}
