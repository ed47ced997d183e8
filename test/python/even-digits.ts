/** A reward that a policy learns in a few steps, with answers that have none. */

/** The share of even digits among the digits, 0 without any; nothing where the answer begins with a 7. */
export default function evenDigits(problem: { readonly reference: unknown }, response: string): number | null {
  if (!/^\d+$/.test(String(problem.reference))) throw new Error("the reference did not come");
  const digits = [...response].filter((each) => each >= "0" && each <= "9");
  if (response.startsWith("7")) return null;
  return digits.length === 0 ? 0 : digits.filter((digit) => Number(digit) % 2 === 0).length / digits.length;
}
