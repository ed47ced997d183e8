/** Numbers as the page writes them. */

/** Three or four digits, whatever the size. */
export function digits(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-3) return value.toExponential(2).replace(/\.?0*e\+?/, "e");
  if (size >= 1000) return Math.round(value).toLocaleString("en");
  return Number(value.toPrecision(4)).toString();
}

export const signed = (value: number | null | undefined): string => (value !== null && value !== undefined && value > 0 ? `+${digits(value)}` : digits(value));

export function percent(share: number | null | undefined): string {
  if (share === null || share === undefined) return "–";
  const value = 100 * share;
  return `${value !== 0 && Math.abs(value) < 1e-3 ? digits(value) : Number(value.toPrecision(3))} %`;
}

export const count = (value: number): string => value.toLocaleString("en");

export const plural = (value: number, one: string, many = `${one}s`): string => `${count(value)} ${value === 1 ? one : many}`;
